"""Pieces of LLVM text that the functions of effects share."""

from ..machine.state import HEADER, LANES


def field(name: str) -> str:
    """Return text that loads a header field into a register of its name."""
    at = HEADER.fields[name][1]
    return f"  %{name}_at = getelementptr i8, ptr %base, i64 {at}\n  %{name} = load i64, ptr %{name}_at\n"


def unwatched(bit: int) -> str:
    """Return text that leaves for the machine if somebody watches."""
    return (
        field("cautious")
        + f"""  %watch = and i64 %cautious, {bit}
  %watched = icmp ne i64 %watch, 0
  br i1 %watched, label %slow, label %start
slow:
  ret i1 false
start:
"""
    )


def lane_loop(name: str, before: str, body: str, after: str) -> str:
    """Return a loop over active lanes; ``body`` falls through to ``{name}_next``."""
    return f"""  br label %{name}
{name}:
  %{name}_t = phi i64 [0, %{before}], [%{name}_t1, %{name}_next]
  %{name}_m = getelementptr i8, ptr %mask, i64 %{name}_t
  %{name}_b = load i8, ptr %{name}_m
  %{name}_on = icmp ne i8 %{name}_b, 0
  br i1 %{name}_on, label %{name}_body, label %{name}_next
{name}_body:
{body}  br label %{name}_next
{name}_next:
  %{name}_t1 = add i64 %{name}_t, 1
  %{name}_more = icmp ult i64 %{name}_t1, {LANES}
  br i1 %{name}_more, label %{name}, label %{after}
"""
