"""Finds the signature at the end of a text, and the line by which a device or a program tells of itself."""

from __future__ import annotations

import re

from channels.email.said.lines import Line, Mark
from channels.email.said.phrases import DEVICES, TAGLINE_ENDINGS, TAGLINE_OPENINGS

_MAX_LINES = 40
_MAX_LINE = 120
_DELIMITERS = frozenset(("-- ", "--\xa0"))
"""RFC 3676, section 4.3."""
_LOST_BLANK = frozenset(("--", "—", "__"))
"""What is left of it where a blank at the end of a line is not kept, and what some write instead."""
_WEB = re.compile(r"[<(\[]?https?://[^\s>)\]]{1,500}[>)\]]?")


def signature_start(lines: list[Line], stop: int) -> int | None:
    """Where the signature begins that ends before a line.

    Args:
        lines: Of the mail.
        stop: The end of the text; the line before it is not empty.

    Returns:
        None when there is none for sure: a greeting and a name are words of the person.
    """
    if not stop or lines[stop - 1].quote:
        return None
    if lines[stop - 1].mark is Mark.SIGNATURE:
        return _marked(lines, stop)
    if _tells_device(lines[stop - 1].text):
        return stop - 1
    return _delimited(lines, stop)


def _marked(lines: list[Line], stop: int) -> int:
    start = stop
    while start and (lines[start - 1].mark is Mark.SIGNATURE or lines[start - 1].blank) and not lines[start - 1].quote:
        start -= 1
    return start


def _delimited(lines: list[Line], stop: int) -> int | None:
    """The first delimiter of the last lines, so that of two signatures both go."""
    start = None
    said = 0
    index = stop
    while index and said <= _MAX_LINES and not lines[index - 1].quote:
        index -= 1
        text = lines[index].text
        if text in _DELIMITERS or (text in _LOST_BLANK and (index + 1 == stop or _names(lines[index + 1 : stop]))):
            start = index
        elif not lines[index].blank:
            said += 1
    return start


def _names(lines: list[Line]) -> bool:
    """Whether lines look like a name and what belongs to it: short, no sentences, the first in capitals."""
    said = [line.text.strip() for line in lines if not line.blank]
    if not 1 <= len(said) <= 6 or any(len(text) > 60 or text.endswith((".", "?", "!", ":", ",", ";")) for text in said):
        return False
    words = said[0].split()
    return len(words) <= 4 and all(word[0].isalpha() and word[0] == word[0].upper() for word in words)


def _tells_device(text: str) -> bool:
    """Whether a line is one like "Sent from my iPhone"."""
    if len(text) > _MAX_LINE + 500:
        return False
    words = _WEB.sub("", text.replace("\xa0", " ")).strip(" *_-–—.").casefold()
    if len(words) > _MAX_LINE or not any(device in words for device in DEVICES):
        return False
    return words.startswith(TAGLINE_OPENINGS) or words.endswith(TAGLINE_ENDINGS)
