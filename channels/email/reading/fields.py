"""The header of a mail, or of a part of one: bytes to fields, within limits (RFC 5322, section 2.2)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

MOST_FIELDS = 1_000
MOST_BYTES = 1_000_000
"""Of a whole header."""
MOST_VALUE_BYTES = 100_000
"""Of one field; a thousand recipients need some 50 kB."""

# A blank before the colon is the obsolete grammar, which receivers have to read (RFC 5322, section 4.5.8).
_NAME = re.compile(rb"([!-9;-~]{1,200}+)[ \t]{0,20}+:")
# A line that begins with a blank belongs to the field before.
_FIELD_END = re.compile(rb"\n(?![ \t])")
_EMPTY_LINE = re.compile(rb"\n\r?\n")
_FOLD = re.compile(rb"\r?\n(?=[ \t])")


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before the body."""

    fields: tuple[tuple[str, bytes], ...]
    """Topmost first: the name in lower case, the value unfolded and otherwise as it came."""
    body: int
    """Where the body begins."""
    missing: bool = False
    """Whether fields were left out because a limit was reached."""
    shortened: bool = False
    """Whether a value was."""

    @property
    def cut(self) -> bool:
        """Whether it is not read whole."""
        return self.missing or self.shortened

    def first(self, name: str) -> bytes:
        """The value of the topmost field of a name (in lower case); empty when there is none."""
        return next((value for field, value in self.fields if field == name), b"")


def read_header(
    raw: bytes, start: int = 0, stops: Callable[[int], bool] = lambda _: False, most: int = MOST_FIELDS
) -> Header:
    """Read the header that begins at an offset.

    It ends at an empty line, and at a line that is no field, which belongs to the body then: an empty line was
    forgotten.

    Args:
        raw: A whole mail.
        start: Where the header begins.
        stops: Tells of the beginning of a line whether something else ends the header there.
        most: Fields.
    """
    fields: list[tuple[str, bytes]] = []
    at, shortened = start, False
    if start == 0 and raw.startswith((b"From ", b">From ")):  # the line that divides the mails of an mbox
        at = _line_end(raw, at)
    while at < len(raw):
        if raw.startswith(b"\n", at) or raw.startswith(b"\r\n", at):
            return Header(tuple(fields), _line_end(raw, at), shortened=shortened)
        name = None if stops(at) else _NAME.match(raw, at)
        if name is None:
            break
        value, at = name.end(), _field_end(raw, at)
        if len(fields) == most or at - start > MOST_BYTES:
            end = _EMPTY_LINE.search(raw, value)
            return Header(tuple(fields), end.end() if end else len(raw), missing=True, shortened=shortened)
        shortened = shortened or at - value > MOST_VALUE_BYTES
        unfolded = _FOLD.sub(b"", raw[value : min(at, value + MOST_VALUE_BYTES)])
        fields.append((name[1].decode("ascii").lower(), unfolded.strip(b" \t\r\n")))
    return Header(tuple(fields), at, shortened=shortened)


def _line_end(raw: bytes, at: int) -> int:
    """Where the next line begins."""
    return raw.find(b"\n", at) + 1 or len(raw)


def _field_end(raw: bytes, at: int) -> int:
    """Where the next field begins."""
    end = _FIELD_END.search(raw, at)
    return end.end() if end else len(raw)
