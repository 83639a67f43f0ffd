"""Takes out of a text what no reader sees and what a platform refuses or uses against the reader."""

from __future__ import annotations

import re

# Terminal colours and cursor moves: without their escape character they would be left as visible rubbish.
_TERMINAL_SEQUENCE = re.compile(r"\x1b\[[0-?]{0,32}[ -/]{0,8}[@-~]")

_BREAKS = dict.fromkeys((0x0B, 0x0C, 0x85, 0x2028, 0x2029), "\n")
_CONTROLS = dict.fromkeys(
    code for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in {0x09, 0x0A, 0x0D} and code not in _BREAKS
)
# Embeddings, overrides and isolates turn the order of what follows: a file name or an address reads as another one.
_BIDI = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
_BYTE_ORDER_MARK = {0xFEFF: None}
_TABLE: dict[int, str | None] = {**_CONTROLS, **_BREAKS, **_BIDI, **_BYTE_ORDER_MARK}


def clean(text: str) -> str:
    """Return the text without control characters, bidirectional overrides and halves of characters.

    Line ends of all kinds become a line feed; tabs stay. Two surrogates that belong together become their character.
    """
    if text.isprintable() and text.isascii():
        return text
    if "\x1b" in text:
        text = _TERMINAL_SEQUENCE.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _whole_characters(text.translate(_TABLE))


def _whole_characters(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        # A stream of JSON that was cut in the middle of an emoji leaves surrogates; no platform takes one.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
