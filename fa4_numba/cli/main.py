"""Argument parsing; each command is a function in a module of its own."""

import argparse
import sys

from ..errors import Fa4Error
from . import config as config_command
from . import demo, doctor, emulate

_SHAPE = (
    ("--q-heads", 2, "query heads"),
    ("--group", 2, "query heads per key/value head"),
    ("--qk-dim", 128, "head dimension of q and k"),
    ("--v-dim", None, "head dimension of v (default: as q)"),
)


def _shape_arguments(parser, *, config: bool = False):
    for flag, default, text in _SHAPE:
        parser.add_argument(
            flag, type=int, default=default, help=f"{text} (default {default})" if default else text
        )
    parser.add_argument("--dtype", default="bfloat16", help="bfloat16 (default) or float16")
    if not config:
        parser.add_argument("--causal", action="store_true", help="bottom-right causal mask")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="python -m fa4_numba",
        description="FlashAttention-4 in Python: compile the Blackwell kernel, look at it, run it on any CPU.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    sub = commands.add_parser("demo", help="compile the kernel, run it in the emulator, check it, draw it")
    sub.add_argument("--out", default="fa4_demo", help="folder for the pictures (default fa4_demo)")
    sub.add_argument("--seq", type=int, default=300, help="queries and keys (default 300)")
    sub.set_defaults(run=demo.run)

    sub = commands.add_parser("doctor", help="what works on this machine, what is missing, how to get it")
    sub.set_defaults(run=doctor.run)

    sub = commands.add_parser("config", help="derive the layout of a shape: table, maps, JSON, reasons")
    _shape_arguments(sub, config=True)
    sub.add_argument("--bm", type=int, default=256, help="rows per work tile: 256 (default), 128, 64, 32")
    sub.add_argument("--bn-cap", type=int, default=0, help="limit of the keys per tile; 0 (default) for none")
    sub.add_argument("--page-size", type=int, default=0, help="keys per page of a paged cache; 0: contiguous")
    sub.add_argument("--json", action="store_true", help="print the fields as JSON")
    sub.add_argument("--why", action="store_true", help="print how each field came about")
    sub.set_defaults(run=config_command.run)

    for name, text in (
        ("ptx", "the PTX that Numba emits"),
        ("sass", "the machine code that ptxas makes of it"),
    ):
        sub = commands.add_parser(name, help=f"print {text}")
        _shape_arguments(sub)
        sub.set_defaults(run=emulate.show)

    sub = commands.add_parser("emulate", help="run the kernel in the emulator, on random data or .npy files")
    _shape_arguments(sub)
    sub.add_argument("--batch", type=int, default=1, help="batch size (default 1)")
    sub.add_argument("--seq-q", type=int, default=256, help="queries (default 256)")
    sub.add_argument("--seq-k", type=int, default=256, help="keys (default 256)")
    sub.add_argument("--inputs", nargs=3, metavar=("Q", "K", "V"), help=".npy files (batch, seq, heads, dim)")
    sub.add_argument("--output", help="write O to this .npy file (as float32)")
    sub.add_argument(
        "--schedule", default="eager", help="eager (default), late, random:SEED or delay:ROLE-OR-UNIT"
    )
    sub.add_argument(
        "--schedules",
        type=int,
        default=0,
        metavar="N",
        help="also run N random schedules and compare bit for bit; a failing one is minimised",
    )
    sub.add_argument("--check", action="store_true", help="track hazards (slower) and print what was found")
    sub.set_defaults(run=emulate.run)
    return parser


def main(argv=None) -> int:
    """Run one command; an error of ours is one line and exit status 2."""
    arguments = build_parser().parse_args(argv)
    try:
        return arguments.run(arguments) or 0
    except Fa4Error as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        sys.stderr.close()  # the reader (head, less) has left
        return 0
