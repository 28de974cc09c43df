"""A parser for the PTX that compilers emit: entries, functions, variables; bodies are read by ``body``."""

import re

from ...errors import PtxSyntaxError
from .body import BodyParser
from .declarations import functions, module_variables, parse_declaration, shared_variables
from .module import Entry, Module
from .operands import split

DYNAMIC_SHARED_START = 1024  # ptxas reserves the first kilobyte of the window
MAX_PARAM_BYTES = 32764

_MARKER = re.compile(r"//\s*fa4:[^\n]*")
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*")
_COUNTS = r"\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?"


def parse(text: str) -> Module:
    """Parse PTX text.

    Raises
    ------
    PtxSyntaxError
        Naming the line, for text that is no PTX or uses what the parser does not know.
    """
    if not isinstance(text, str):
        raise PtxSyntaxError(f"PTX must be text (str), got {type(text).__name__}")
    clean = _strip_comments(text)
    if ".entry" not in clean:
        raise PtxSyntaxError("no .entry in the PTX: nothing to run (is the text complete?)")
    shared, dynamic, size = shared_variables(clean)
    variables, headers = module_variables(clean), functions(clean)
    entries = {}
    for match in _ENTRY.finditer(clean):
        entry, position = _header(clean, match)
        names = {*shared, *dynamic, *variables, *(name for name, _, _ in entry.params)}
        BodyParser(clean, entry, names, headers).parse(position)
        entries[entry.name] = entry
    if not entries:
        raise PtxSyntaxError("the .entry in the PTX has no name: nothing to run")
    return Module(entries, shared, dynamic, size, text, variables)


def _strip_comments(text: str) -> str:
    """Blank out comments (newlines stay), turning our markers into statements ``//fa4 text;``."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    text = re.sub(r"/\*.*?\*/", blank, text, flags=re.S)
    lines = []
    for line in text.split("\n"):
        marker = _MARKER.search(line)
        if marker:
            # \x01 stands for the marker's opcode until statements are split
            words = marker.group().split("fa4:", 1)[1].strip().replace(";", ",")
            lines.append(line[: marker.start()] + f"\x01{words};")
        else:
            lines.append(line.split("//")[0])
    return "\n".join(lines)


def _header(text: str, match: re.Match) -> tuple[Entry, int]:
    """Return an entry with its parameters and launch directives, and where its body starts."""
    entry, position = Entry(match[1], []), match.end()
    line = text.count("\n", 0, position) + 1
    if text.startswith("(", position):
        end = text.find(")", position)
        if end < 0:
            raise PtxSyntaxError(f"PTX line {line}: the parameter list of {entry.name} is not closed")
        entry.params = [_param(part, line) for part in split(text[position + 1 : end])]
        position = end + 1
    _check_params(entry, line)
    body = text.find("{", position)
    if body < 0:
        raise PtxSyntaxError(f"PTX line {line}: entry {entry.name} has no body")
    directives = text[position:body]
    if threads := re.search(rf"\.(?:maxntid|reqntid){_COUNTS}", directives):
        entry.max_threads = 1
        for n in threads.groups():
            entry.max_threads *= int(n or 1)
    if cluster := re.search(rf"\.reqnctapercluster{_COUNTS}", directives):
        entry.cluster = tuple(int(n or 1) for n in cluster.groups())
    if registers := re.search(r"\.maxnreg\s+(\d+)", directives):
        entry.max_registers = int(registers[1])
    return entry, body + 1


def _param(text: str, line: int) -> tuple[str, int, int]:
    try:
        found = parse_declaration(text, "parameter")
    except PtxSyntaxError as error:
        raise PtxSyntaxError(f"PTX line {line}: {error}") from error
    if found.space != "param" or found.size is None:
        raise PtxSyntaxError(f"PTX line {line}: cannot read the parameter {text.strip()!r}")
    return found.name, found.size, found.alignment


def _check_params(entry: Entry, line: int) -> None:
    if len({name for name, _, _ in entry.params}) != len(entry.params):
        raise PtxSyntaxError(f"PTX line {line}: two parameters of {entry.name} have one name")
    _, size = entry.param_offsets()
    if size > MAX_PARAM_BYTES:
        raise PtxSyntaxError(
            f"PTX line {line}: {size} bytes of parameters; a kernel has at most {MAX_PARAM_BYTES}"
        )
