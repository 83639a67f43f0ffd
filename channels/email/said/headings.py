"""The lines that mail clients put above an older mail, in their languages: pure tables and tests of single lines."""

from __future__ import annotations

import re
from enum import Enum

from channels.email.said.lines import Line
from channels.email.said.phrases import (
    DATE,
    FORWARDED,
    FROM,
    OPENINGS,
    ORIGINAL,
    OTHER,
    SUBJECT,
    TO,
    WROTE,
)

_MAX_LINE = 400
"""Characters; no client's line is longer."""

_RULE = re.compile(r"[\s>*]*[-_=─━—–‐]{3,}[-_=─━—–‐\s*]*")
_MARKER = re.compile(r"[\s*]*[-_=─—–‐]{2,}[\s*]*([^\W_][^\n]{2,60}?)[\s*]*[-_=─—–‐]{2,}[\s*]*")
_ADDRESS = re.compile(r"[^\s@<>\"(]{1,64}@[^\s@<>]{1,255}")
_DATE = re.compile(
    r"(?<!\d)(?:19|20|25)\d\d(?!\d)|(?<!\d)\d{1,2}(?:[./-] ?\d{1,2}[./-] ?\d{2,4}|(?:\. ?)\w{3,12}\.? \d{2,4})(?!\d)"
)
_TIME = re.compile(r"(?<!\d)\d{1,2} ?[:.時时시h] ?\d{2}(?!\d)|\d{1,2} ?[ap]\.?m", re.IGNORECASE)

_OPENINGS = re.compile(rf"(?:{'|'.join(map(re.escape, OPENINGS))})\b", re.IGNORECASE)


class Field(Enum):
    """What a line of the block says that clients put above an older mail."""

    FROM = 1
    DATE = 2
    TO = 3
    SUBJECT = 4
    OTHER = 5


_FIELDS = {
    name: field
    for field, names in (
        (Field.FROM, FROM),
        (Field.DATE, DATE),
        (Field.TO, TO),
        (Field.SUBJECT, SUBJECT),
        (Field.OTHER, OTHER),
    )
    for name in names
}
_FIELD = re.compile(r"[\s*•]{0,8}([^\W\d_][^:：\t|]{0,24}?)[\s*]{0,4}(?:[:：][\s*|]*|\t)(.*)")


def is_rule(text: str) -> bool:
    """Whether a line is nothing but a line drawn."""
    return len(text) <= _MAX_LINE and bool(_RULE.fullmatch(text))


def marked_phrase(text: str) -> str:
    """The words between the dashes of a line (`-----Original Message-----`), for comparison; empty: there are none."""
    if len(text) > 120 or text.lstrip(" *\t")[:1] not in ("-", "_", "=", "─", "—", "–", "‐"):
        return ""
    found = _MARKER.fullmatch(text.replace("\xa0", " "))
    return found[1].strip(" *:：").casefold() if found else ""


def is_original(text: str) -> bool:
    """Whether a line says that the original message follows, as `-----Original Message-----` does."""
    return marked_phrase(text) in ORIGINAL


def is_forward(text: str) -> bool:
    """Whether a line says that a mail follows that is passed on, as `--- Forwarded message ---` does."""
    if marked_phrase(text) in FORWARDED:
        return True
    words = text.strip(" *\t\xa0")
    return len(words) <= 60 and words[-1:] in (":", "：") and words[:-1].strip().casefold() in FORWARDED


def field_of(text: str) -> tuple[Field, str] | None:
    """Which field of a mail's head a line is, and what it says (`Von: Ann` is a From)."""
    if ":" not in text[:40] and "：" not in text[:40] and "\t" not in text[:40]:
        return None
    found = _FIELD.match(text[:_MAX_LINE])
    if found is None or (kind := _FIELDS.get(found[1].strip().casefold())) is None:
        return None
    return kind, found[2]


def has_address(text: str) -> bool:
    """Whether an address stands in a line."""
    return bool(_ADDRESS.search(text[:_MAX_LINE]))


def has_date(text: str) -> bool:
    """Whether a day or a time stands in a line."""
    text = text[:_MAX_LINE]
    return bool(_DATE.search(text) or _TIME.search(text))


def attributes(text: str, *, quoted: bool) -> bool:
    """Whether a line tells who wrote what follows, and when.

    Args:
        text: The line, or the lines that one was broken into, joined.
        quoted: Whether quote marks follow. They are half of the evidence, so that less is asked of the line; else it
            must have a day, a time, and an address or a known form of "wrote".
    """
    text = " ".join(text.split()).strip("* \u200e\u200f")
    if not 8 <= len(text) <= _MAX_LINE:
        return False
    if not text.endswith((":", "：", *WROTE)):
        return False
    date, time = bool(_DATE.search(text)), bool(_TIME.search(text))
    if not quoted and not (date and time):
        return False
    wrote, address = any(word in text.casefold() for word in WROTE), bool(_ADDRESS.search(text))
    if quoted:
        return (date and wrote) or (address and (date or time or wrote))
    return address or wrote


def attribution_start(lines: list[Line], stop: int, *, quoted: bool) -> int | None:
    """Where the attribution begins that ends before a line; None: there is none.

    Clients break it into up to four lines, none of them empty.
    """
    start, best, joined = stop, None, ""
    while start > max(0, stop - 4) and (line := lines[start - 1]).own:
        text = line.text.strip()
        if best is not None and not _begins(text, joined):
            break
        start -= 1
        joined = f"{text} {joined}"
        if attributes(joined, quoted=quoted):
            best = start
        elif best is not None:
            break
    return best


def _begins(text: str, rest: str) -> bool:
    """Whether a line is the first part of an attribution whose rest would do as one by itself.

    The line above may as well be the last one of what the person says.
    """
    if text.endswith((".", "!", "?", "。", "！", "？", ":")):
        return False
    return text.endswith(",") and bool(_OPENINGS.match(text)) if has_date(rest) else has_date(text)
