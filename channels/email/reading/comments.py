"""Comments in fields: they nest, and a backslash takes the next character's meaning (RFC 5322, section 3.2.2)."""

from __future__ import annotations

import re

_MARK = re.compile(r"\\.|[()]", re.DOTALL)
_BEGINS = re.compile(r'\\.|"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|(\()', re.DOTALL)


def end_of_comment(value: str, at: int) -> int | None:
    """Find where a comment ends.

    Args:
        value: Of a field.
        at: Where its opening bracket stands.

    Returns:
        The position behind its closing bracket; None when it is never closed.
    """
    depth = 0
    for mark in _MARK.finditer(value, at):
        depth += (mark[0] == "(") - (mark[0] == ")")
        if depth == 0:
            return mark.end()
    return None


def without_comments(value: str) -> str:
    """Leave out the comments of a field; each leaves a blank.

    A bracket in a quoted string is none; a comment that never ends goes to the end.
    """
    pieces: list[str] = []
    at = looked = 0
    while (mark := _BEGINS.search(value, looked)) is not None:
        looked = mark.end()
        if mark[1]:
            pieces += (value[at : mark.start()], " ")
            at = looked = end_of_comment(value, mark.start()) or len(value)
    return "".join((*pieces, value[at:]))
