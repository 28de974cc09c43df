"""Literals of PTX."""

import re
import struct

_HEX_FLOAT = re.compile(r"0[fF]([0-9a-fA-F]{8})")
_HEX_DOUBLE = re.compile(r"0[dD]([0-9a-fA-F]{16})")
_INTEGER = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?")
_OCTAL = re.compile(r"0[0-7]+")
_DECIMAL = re.compile(r"[-+]?(\d+\.\d*|\.\d+)([eE][-+]?\d+)?|[-+]?\d+[eE][-+]?\d+")


def parse_number(text: str) -> int | float | None:
    """Return the value of a PTX literal, or None if ``text`` is none."""
    if match := _HEX_FLOAT.fullmatch(text):
        return struct.unpack(">f", bytes.fromhex(match[1]))[0]
    if match := _HEX_DOUBLE.fullmatch(text):
        return struct.unpack(">d", bytes.fromhex(match[1]))[0]
    if match := _INTEGER.fullmatch(text):
        sign, digits = match.groups()
        if digits.isdigit() and digits[0] == "0" and len(digits) > 1:
            if not _OCTAL.fullmatch(digits):
                return None
            value = int(digits, 8)
        else:
            value = int(digits, 0)
        return -value if sign == "-" else value
    if _DECIMAL.fullmatch(text):
        return float(text)
    return None
