"""Our Markdown as Telegram messages: a text and its entities, which Telegram never refuses for their markup.

Telegram's rules, from the Bot API's "Formatting options" and from what TDLib (`MessageEntity.cpp`) does to a text:

- lengths and offsets count UTF-16 code units; a message has at most 4096 of them and 100 entities;
- entities nest or are apart; `pre` and `code` hold nothing and stand in nothing but a quote; quotes hold no quotes;
- blanks and line feeds at the ends of a message are trimmed, and an entity gives up the blanks that it begins with;
- control characters become blanks, some characters vanish, and a message without a visible character is refused.

All of it is done here already, so that what is stored is what Telegram shows, and an edit is known to change something.
"""

from __future__ import annotations

import unicodedata
from itertools import accumulate
from typing import TYPE_CHECKING

from channels._text.cut import cut
from channels._text.layout import GUARD, Layout, Span, lay_out, span_order
from channels._text.measure import utf16_len
from channels._text.parse import parse
from channels.telegram.units import MESSAGE_UNITS, REPEAT_UNITS
from zerobot.core.channel import MessageBody

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from channels._text.layout import SpanKind

MESSAGE_LIMIT = MESSAGE_UNITS - REPEAT_UNITS
"""UTF-16 code units of one message, after entities parsing, with room for the mark of a possible repeat."""

ENTITY_LIMIT = 100
"""Entities of one message; Telegram ignores what comes after them."""

ADDRESS_LIMIT = 120
"""Longer addresses, in characters, are shown by their beginning; the link still goes to the whole address."""

_TYPES: Mapping[SpanKind, str] = {
    "bold": "bold",
    "italic": "italic",
    "underline": "underline",
    "strike": "strikethrough",
    "code": "code",
    "pre": "pre",
    "quote": "blockquote",
    "link": "text_link",
}
# Of too many entities the least telling ones go first.
_IMPORTANCE: Sequence[SpanKind] = ("pre", "link", "code", "quote", "strike", "bold", "underline", "italic")

_TRIMMED = " \n"
# Telegram takes these out: lines drawn over and under letters, and a ring that it mistakes for one.
_VANISHING = dict.fromkeys((0x0333, 0x033F, 0x030A))
_BLANK = frozenset(
    "\n\t \u00a0\u1680\u180e\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u200b\u200c\u200d"
    "\u200e\u200f\u202e\u202f\u205f\u2060\u2800\u3000\ufeff\ufffc"
) | {chr(code) for code in range(0xE0000, 0xE0080)}


def render(markdown: str) -> list[MessageBody]:
    """Render a model's Markdown, or the beginning of it, as the messages that show it.

    Args:
        markdown: Any text; there is none that cannot be rendered.

    Returns:
        In order, each within Telegram's limits, with `entities` in its format; none at all when nothing is visible.
    """
    layout = lay_out(parse(_without_vanishing(markdown), address_limit=ADDRESS_LIMIT))
    return [
        MessageBody(text, {"entities": entities} if entities else {}) for text, entities in _messages(layout) if text
    ]


def plain(markdown: str) -> list[MessageBody]:
    """Render Markdown as text without any formatting, for when Telegram refuses the formatted one.

    Args:
        markdown: As for `render`.

    Returns:
        Messages as from `render`, with an empty format; addresses are written out whole.
    """
    layout = lay_out(parse(_without_vanishing(markdown)))
    return [MessageBody(text) for text, _ in _messages(Layout(layout.text, ())) if text]


def _without_vanishing(text: str) -> str:
    if "\u030a" in text:
        text = unicodedata.normalize("NFC", text)  # an å in two characters would lose its ring
    return text if text.isascii() else text.translate(_VANISHING)


def _messages(layout: Layout) -> list[tuple[str, list[dict[str, object]]]]:
    keep = [(span.start, span.end) for span in layout.spans if span.kind == "pre"]
    messages = []
    start = 0
    for piece in cut(layout.text, MESSAGE_LIMIT, utf16_len, keep):
        if not _BLANK.issuperset(piece):
            messages.append(_message(piece, _within(layout.spans, start, start + len(piece))))
        start += len(piece)
    return messages


def _within(spans: Sequence[Span], start: int, end: int) -> list[Span]:
    """Return what of the spans is between two places, counted from the first."""
    return [
        Span(max(span.start, start) - start, min(span.end, end) - start, span.kind, span.value)
        for span in spans
        if span.start < end and span.end > start
    ]


def _message(piece: str, spans: list[Span]) -> tuple[str, list[dict[str, object]]]:
    text = piece.lstrip("\n")
    spans = _moved(spans, len(text) - len(piece))
    guarded = _is_indented_code(text, spans) and utf16_len(text.rstrip(_TRIMMED)) < MESSAGE_LIMIT
    trimmed = GUARD + text if guarded else text.lstrip(_TRIMMED)
    spans = _moved(spans, len(trimmed) - len(text))
    text = trimmed.rstrip(_TRIMMED)
    spans = [tight for span in spans if (tight := _tightened(text, span, guarded=guarded))]
    return text, _entities(text, _most_important(spans))


def _moved(spans: list[Span], by: int) -> list[Span]:
    if not by:
        return spans
    return [Span(max(span.start + by, 0), max(span.end + by, 0), span.kind, span.value) for span in spans]


def _is_indented_code(text: str, spans: Sequence[Span]) -> bool:
    """Whether a message begins inside code with an indented line, whose blanks Telegram would trim."""
    return text.startswith(" ") and any(span.kind == "pre" and span.start == 0 for span in spans)


def _tightened(text: str, span: Span, *, guarded: bool) -> Span | None:
    """Return a span without the blanks at its ends, or None when nothing else is in it."""
    start, end = span.start, min(span.end, len(text))
    if guarded and start == len(GUARD) and span.kind in {"pre", "quote"}:
        start = 0
    while start < end and text[start] in _TRIMMED:
        start += 1
    while end > start and text[end - 1] in _TRIMMED:
        end -= 1
    return Span(start, end, span.kind, span.value) if end > start else None


def _most_important(spans: list[Span]) -> list[Span]:
    if len(spans) <= ENTITY_LIMIT:
        return spans
    ranked = sorted(range(len(spans)), key=lambda index: (_IMPORTANCE.index(spans[index].kind), index))
    return [spans[index] for index in sorted(ranked[:ENTITY_LIMIT])]


def _entities(text: str, spans: list[Span]) -> list[dict[str, object]]:
    spans.sort(key=span_order)
    offsets = _utf16_offsets(text)
    entities: list[dict[str, object]] = []
    for span in spans:
        offset = offsets[span.start]
        entity: dict[str, object] = {
            "type": _TYPES[span.kind],
            "offset": offset,
            "length": offsets[span.end] - offset,
        }
        if span.kind == "link":
            entity["url"] = span.value
        elif span.kind == "pre" and span.value:
            entity["language"] = span.value
        entities.append(entity)
    return entities


def _utf16_offsets(text: str) -> Sequence[int]:
    """Return the place of each code point, and of the end, in UTF-16 code units."""
    if utf16_len(text) == len(text):
        return range(len(text) + 1)
    return [0, *accumulate(2 if char > "\uffff" else 1 for char in text)]
