"""Our Markdown as text for a terminal: nothing in it moves a cursor, and its formatting stands beside it.

A body's format has `spans`: lists of start, end (in code points of the text), kind and value, as the text kit lays them
out. A terminal that knows no formatting shows the text alone.
"""

from __future__ import annotations

import unicodedata
from itertools import pairwise
from typing import TYPE_CHECKING

from channels._text.cut import cut
from channels._text.layout import GUARD, Layout, Span, lay_out
from channels._text.parse import parse
from zerobot.core.channel import MessageBody

if TYPE_CHECKING:
    from collections.abc import Callable

MESSAGE_LIMIT = 50_000
"""Characters of one message: with every one of them escaped it fits into a line of the control socket."""

REPEAT_MARK = "(possibly a repeat) "

# Terminals and fonts disagree about what these make of the character before them; without them it is the plain one.
_PRESENTATION = frozenset("\ufe0e\ufe0f")
_JOINER = "\u200d"
_SYMBOLS = frozenset({"So", "Sk", "Sm", "Po", "Me"})


def render(markdown: str, escape: Callable[[str], str]) -> list[MessageBody]:
    """Render a model's Markdown, or the beginning of it.

    Args:
        markdown: Any text; there is none that cannot be rendered.
        escape: Makes control, bidirectional and invisible characters visible.

    Returns:
        In order, each within `MESSAGE_LIMIT`; none at all when nothing is visible.
    """
    layout = _escaped(lay_out(parse(_with_plain_emoji(markdown))), escape)
    bodies: list[MessageBody] = []
    start = 0
    for piece in cut(layout.text, MESSAGE_LIMIT, len, [(s.start, s.end) for s in layout.spans if s.kind == "pre"]):
        end = start + len(piece.rstrip())
        begin = start + len(piece) - len(piece.lstrip("\n"))
        if begin < end:
            bodies.append(_body(layout, begin, end))
        start += len(piece)
    return bodies


def plain(body: MessageBody) -> MessageBody:
    """The same text without its formatting."""
    return MessageBody(body.text)


def mark_repeat(body: MessageBody) -> MessageBody:
    """The same message with a mark before it; the mark moves its spans, so it has none."""
    return MessageBody(REPEAT_MARK + body.text)


def _body(layout: Layout, begin: int, end: int) -> MessageBody:
    spans = [
        [max(span.start, begin) - begin, min(span.end, end) - begin, span.kind, span.value]
        for span in layout.spans
        if span.start < end and span.end > begin
    ]
    return MessageBody(layout.text[begin:end], {"spans": spans} if spans else {})


def _escaped(layout: Layout, escape: Callable[[str], str]) -> Layout:
    """The layout with its text escaped, piece by piece, so that the spans still fit."""
    edges = sorted({0, len(layout.text), *(edge for span in layout.spans for edge in (span.start, span.end))})
    code = {span.start for span in layout.spans if span.kind == "pre"}
    moved, pieces, length = {0: 0}, [], 0
    for start, end in pairwise(edges):
        piece = layout.text[start:end]
        # The guard is for platforms that trim blanks; a terminal does not.
        pieces.append(escape(piece.removeprefix(GUARD) if start in code else piece))
        length += len(pieces[-1])
        moved[end] = length
    spans = tuple(Span(moved[span.start], moved[span.end], span.kind, escape(span.value)) for span in layout.spans)
    return Layout("".join(pieces), spans)


def _with_plain_emoji(text: str) -> str:
    """Take out what only chooses between two looks of a symbol, or joins symbols to one; else it would be escaped."""
    if text.isascii() or not (_JOINER in text or _PRESENTATION & set(text)):
        return text
    return "".join(char for place, char in enumerate(text) if not _only_styles(text, place, char))


def _only_styles(text: str, place: int, char: str) -> bool:
    if char in _PRESENTATION:
        return place > 0 and (_is_symbol(text[place - 1]) or text[place + 1 : place + 2] == "\u20e3")
    if char == _JOINER:
        before = text[:place].rstrip("\ufe0e\ufe0f")[-1:]
        return bool(before) and _is_symbol(before) and _is_symbol(text[place + 1 : place + 2] or " ")
    return False


def _is_symbol(char: str) -> bool:
    return char > "\x7f" and unicodedata.category(char) in _SYMBOLS
