"""Tables and a progress bar for the terminal."""

import sys


def region_table(title: str, regions, unit: str) -> str:
    """Return a map as a table."""
    lines = [title, f"  {'from':>8} {'to':>8} {unit:>8}  name"]
    for r in regions:
        lines.append(f"  {r.start:>8} {r.end:>8} {r.size:>8}  {r.name:<12} {r.note}")
    return "\n".join(lines)


def progress_bar(done: int, total: int, width: int = 40, what: str = "CTA") -> None:
    """Draw progress on standard error, on one line."""
    if not sys.stderr.isatty() and done < total:
        return
    filled = width * done // max(total, 1)
    print(
        f"\r  [{'#' * filled}{'.' * (width - filled)}] {what} {done}/{total}",
        end="",
        file=sys.stderr,
        flush=True,
    )
    if done == total:
        print(file=sys.stderr)
