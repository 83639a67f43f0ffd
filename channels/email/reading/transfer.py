"""Content-Transfer-Encoding: what a part carries, piece by piece, whatever faults its encoding has (RFC 2045)."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator

_PIECE_BYTES = 1 << 20
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_NOT_BASE64 = bytes(set(range(256)) - set(_ALPHABET) - {ord("=")})
_BLANKS_BEHIND = re.compile(rb"=[ \t]++(?=\r?\n)")


def decode_transfer(raw: bytes, start: int, end: int, encoding: str) -> Iterator[bytes]:
    """Decode a part; a megabyte is held at a time, or one line.

    Args:
        raw: A whole mail.
        start: Where the part's body begins.
        end: Where it ends.
        encoding: As the part names it, in lower case; an unknown one is no encoding.

    Yields:
        Pieces of the content, in order. What does not belong into the encoding is skipped.
    """
    if encoding == "base64":
        yield from _base64(raw, start, end)
    elif encoding == "quoted-printable":
        yield from _quoted_printable(raw, start, end)
    else:
        yield from (raw[at : min(at + _PIECE_BYTES, end)] for at in range(start, end, _PIECE_BYTES))


def decode_base64(data: bytes) -> bytes:
    """Decode a short base64 text; what does not belong into it is skipped."""
    return b"".join(_base64(data, 0, len(data)))


def _quoted_printable(raw: bytes, start: int, end: int) -> Iterator[bytes]:
    at = start
    while at < end:
        line_end = raw.find(b"\n", min(at + _PIECE_BYTES, end), end) + 1 or end
        # `binascii` knows no blanks between `=` and the line end, and takes a carriage return alone for one.
        data = _BLANKS_BEHIND.sub(b"=", raw[at:line_end])
        yield binascii.a2b_qp(data.replace(b"=\r\n", b"=\n").replace(b"=\r", b"=3D\r"))
        at = line_end


def _base64(raw: bytes, start: int, end: int) -> Iterator[bytes]:
    rest = b""
    for at in range(start, end, _PIECE_BYTES):
        data = rest + raw[at : min(at + _PIECE_BYTES, end)].translate(None, _NOT_BASE64)
        padding = data.find(b"=")
        if padding >= 0 and padding % 4 >= 2:
            yield _quads(data[:padding])
            return
        # A `=` where none can stand is noise, and the others are not looked at any more.
        data = data.translate(None, b"=") if padding >= 0 else data
        whole = len(data) - len(data) % 4
        yield binascii.a2b_base64(data[:whole])
        rest = data[whole:]
    yield _quads(rest)


def _quads(data: bytes) -> bytes:
    """Decode the last letters, whose padding is missing; a single letter left over carries no byte."""
    data = data[: len(data) - 1] if len(data) % 4 == 1 else data
    return binascii.a2b_base64(data + b"=" * (-len(data) % 4))
