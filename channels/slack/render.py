"""Our Markdown as Slack messages: a text and its formatted stretches, cut so that each message can also be changed.

Slack takes 40,000 characters in a new message but 4,000 in a changed one, and drafts are changed; of blocks it takes
about 13,000 characters written as JSON (`msg_blocks_too_long`; Slack names no number). Tables are blocks of code, or
lists when they are wide.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from channels._text.cut import next_cut
from channels._text.layout import Layout, Span, lay_out, span_order
from channels._text.links import has_visible_text
from channels._text.parse import parse
from channels.slack.blocks import (
    LINK_CHARACTERS,
    TEXT_CHARACTERS,
    blocks_of,
    body_of,
    escaped_length,
    spans_of,
)
from zerobot.core.channel import MessageBody

REPEAT_MARK = "↻ possibly a repeat:\n"
MESSAGE_LIMIT = TEXT_CHARACTERS - len(REPEAT_MARK)
"""Characters of a message's escaped text, with room for the mark of a possible repeat."""
BLOCKS_LIMIT = 12_000
"""Characters of a message's blocks as JSON, with room for the mark and for buttons."""
ADDRESS_LIMIT = 120
"""Longer addresses, in characters, are shown by their beginning; the link still goes to the whole address."""


def render(markdown: str) -> list[MessageBody]:
    """Render a model's Markdown, or the beginning of it, as the messages that show it.

    Args:
        markdown: Any text; there is none that cannot be rendered.

    Returns:
        In order, each within Slack's limits; none at all when nothing is visible.
    """
    layout = lay_out(parse(markdown, address_limit=ADDRESS_LIMIT))
    if any(span.kind == "link" and len(span.value) > LINK_CHARACTERS for span in layout.spans):
        layout = lay_out(parse(markdown))  # what can't be linked to is written out
        layout = Layout(layout.text, tuple(span for span in layout.spans if len(span.value) <= LINK_CHARACTERS))
    return [body for body in _messages(layout) if has_visible_text(body.text)]


def mark_repeat(body: MessageBody) -> MessageBody:
    """Put the mark of a possible repeat before a message; its formatting moves along."""
    spans = spans_of(body)
    if spans is None:
        return MessageBody(REPEAT_MARK + body.text, body.format)
    by = len(REPEAT_MARK)
    return body_of(REPEAT_MARK + body.text, [Span(s.start + by, s.end + by, s.kind, s.value) for s in spans])


def _messages(layout: Layout) -> Iterator[MessageBody]:
    keep = [(span.start, span.end) for span in layout.spans if span.kind == "pre"]
    start = 0
    while start < len(layout.text):
        limit = MESSAGE_LIMIT
        while True:
            end = next_cut(layout.text, start, limit, escaped_length, keep)
            body = _piece(layout, start, end)
            size = len(json.dumps(blocks_of(body), ensure_ascii=False))
            if size <= BLOCKS_LIMIT or end - start <= 1:
                break
            limit = max(1, min(limit - 1, escaped_length(layout.text[start:end]) * BLOCKS_LIMIT // size))
        yield body
        start = end


def _piece(layout: Layout, start: int, end: int) -> MessageBody:
    """A piece of the text without line feeds at its ends, with what of the formatting is in it."""
    text = layout.text
    while start < end and text[start] == "\n":
        start += 1
    while end > start and text[end - 1] in " \n":
        end -= 1
    return body_of(text[start:end], _within(layout.spans, start, end))


def _within(spans: Sequence[Span], start: int, end: int) -> list[Span]:
    found = [
        Span(max(span.start, start) - start, min(span.end, end) - start, span.kind, span.value)
        for span in spans
        if span.start < end and span.end > start
    ]
    return sorted(found, key=span_order)
