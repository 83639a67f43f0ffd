"""The hash of a mail's body, as DKIM makes it (RFC 6376, section 3.4); pure.

It works on pieces, so that other threads get their turn in between, in a time that grows with the body and no faster.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

_PIECE = 65_536
"""Bytes."""
_END = re.compile(rb"[^ \t\r\n]|\n")
"""Where a piece may end: runs of blanks and line ends stay together."""
_BLANKS = re.compile(rb"[\t ]+")


def body_hash(body: bytes, *, relaxed: bool) -> bytes:
    """Hash a body by SHA-256.

    Args:
        body: What follows the empty line.
        relaxed: Blanks within a line count as one, and not at all at its end.
    """
    hasher = hashlib.sha256()
    empty_lines, started = 0, False
    for piece in _pieces(body):
        lines = piece.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        if relaxed:
            lines = _BLANKS.sub(b" ", lines).replace(b" \r\n", b"\r\n")
        end = _end_of_text(lines)
        if end:
            hasher.update(b"\r\n" * empty_lines)
            hasher.update(lines[:end])
            empty_lines, started = 0, True
        empty_lines += (len(lines) - end) // 2
    # Empty lines at the end don't count; what is left ends with a line end, and of nothing one is left as well.
    if started or not relaxed:
        hasher.update(b"\r\n")
    return hasher.digest()


def _end_of_text(lines: bytes) -> int:
    """Where the empty lines at the end begin, and the end of the line before them."""
    end = len(lines.rstrip(b"\r\n"))
    if lines.count(b"\r\n", end) * 2 == len(lines) - end:
        return end
    end = len(lines)  # a carriage return alone is text
    while lines.endswith(b"\r\n", 0, end):
        end -= 2
    return end


def _pieces(body: bytes) -> Iterator[bytes]:
    """Cut a body; a last line that lacks its end gets one."""
    start = 0
    while start < len(body):
        cut = _END.search(body, start + _PIECE)
        end = cut.end() if cut else len(body)
        piece = body[start:end]
        yield piece if end < len(body) or piece.endswith(b"\n") else piece + b"\r\n"
        start = end
