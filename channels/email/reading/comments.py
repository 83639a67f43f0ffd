"""Comments in fields (RFC 5322, section 3.2.2)."""

from __future__ import annotations

import re

_MARK = re.compile(r"\\.|[()\"]", re.DOTALL)


def without_comments(value: str) -> str:
    """Leave out the comments of a field, which may hold comments; each leaves a blank.

    A bracket in a quoted string is none; a comment that never ends goes to the end.
    """
    pieces: list[str] = []
    depth, at, quoted = 0, 0, False
    for mark in _MARK.finditer(value):
        if mark[0] == '"' and depth == 0:
            quoted = not quoted
        elif mark[0] == "(" and not quoted:
            if depth == 0:
                pieces += (value[at : mark.start()], " ")
            depth += 1
        elif mark[0] == ")" and depth > 0:
            depth -= 1
            at = mark.end() if depth == 0 else at
    return "".join(pieces) if depth else "".join((*pieces, value[at:]))
