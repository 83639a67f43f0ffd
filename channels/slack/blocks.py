"""A text and its formatted stretches as Slack's blocks, in which no character of a text is ever read as a mark.

A `rich_text` block holds texts as they are, so nothing in it notifies anybody or becomes a link that was not meant.
Beside it goes the text alone, for notifications and for who reads without blocks; there `&`, `<` and `>` are escaped,
as https://docs.slack.dev/messaging/formatting-message-text wants it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import cast

from channels._text.layout import GUARD, Span, SpanKind
from zerobot.core.channel import MessageBody

TEXT_CHARACTERS = 4000
"""What the text of a message may have so that it can be changed: https://docs.slack.dev/reference/methods/chat.update"""
LINK_CHARACTERS = 2000
"""Longer addresses are text."""
_STYLES = {"bold": "bold", "italic": "italic", "strike": "strike", "code": "code"}
_SPANS = "spans"
Json = dict[str, object]


def escape(text: str) -> str:
    """Write a text so that Slack reads nothing in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escaped_length(text: str) -> int:
    """Characters of a text once it is escaped."""
    return len(text) + 4 * text.count("&") + 3 * (text.count("<") + text.count(">"))


def body_of(text: str, spans: Sequence[Span]) -> MessageBody:
    """A message with its formatting; what the renderer makes is stored like this."""
    return MessageBody(text, {_SPANS: [[span.start, span.end, span.kind, span.value] for span in spans]})


def spans_of(body: MessageBody) -> list[Span] | None:
    """The formatted stretches of a message; None: it is to be shown without blocks."""
    found = body.format.get(_SPANS)
    if found is None:
        return None
    rows = cast("Sequence[tuple[int, int, SpanKind, str]]", found)
    return [Span(start, end, kind, value) for start, end, kind, value in rows]


def blocks_of(body: MessageBody) -> list[Json]:
    """The blocks of a message; none when it is to be shown without."""
    spans = spans_of(body)
    if spans is None:
        return []
    elements = list(_elements(body.text, spans))
    return [{"type": "rich_text", "elements": elements}] if elements else []


def _elements(text: str, spans: Sequence[Span]) -> Iterator[Json]:
    """Parts of a text that stand below each other: code, quotes, and what is neither."""
    blocks = [span for span in spans if span.kind in {"pre", "quote"}]
    edges = sorted({0, len(text), *(edge for span in blocks for edge in (span.start, span.end))})
    inline = [span for span in spans if span.kind not in {"pre", "quote"}]
    for start, end in pairwise(edges):
        around = {span.kind for span in blocks if span.start <= start and span.end >= end}
        # Each part begins on a line of its own.
        while start < end and text[start] == "\n":
            start += 1  # noqa: PLW2901 -- the part without its line feeds
        while end > start and text[end - 1] == "\n":
            end -= 1  # noqa: PLW2901
        if not text[start:end].strip():
            continue
        if "pre" in around:
            yield _code(text[start:end], quoted="quote" in around)
        else:
            kind = "rich_text_quote" if "quote" in around else "rich_text_section"
            yield {"type": kind, "elements": list(_runs(text, start, end, inline))}


def _code(text: str, *, quoted: bool) -> Json:
    element: Json = {
        "type": "rich_text_preformatted",
        "elements": [{"type": "text", "text": text.removeprefix(GUARD)}],
    }
    return element | ({"border": 1} if quoted else {})


def _runs(text: str, start: int, end: int, spans: Sequence[Span]) -> Iterator[Json]:
    """Stretches of a line that are formatted alike."""
    inside = [span for span in spans if span.start < end and span.end > start]
    edges = {start, end, *(edge for span in inside for edge in (span.start, span.end) if start < edge < end)}
    ordered = sorted(edges)
    for first, last in pairwise(ordered):
        active = [span for span in inside if span.start <= first and span.end >= last]
        style = {_STYLES[span.kind]: True for span in active if span.kind in _STYLES}
        link = next((span.value for span in active if span.kind == "link"), "")
        run: Json = {"type": "link", "url": link} if link else {"type": "text"}
        run["text"] = text[first:last]
        if style:
            run["style"] = style
        yield run
