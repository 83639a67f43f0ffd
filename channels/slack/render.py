"""Our Markdown as Slack messages: a text and its formatting, cut so that each message can also be changed.

Slack takes 40,000 characters in a new message but 4,000 in a changed one, and drafts are changed; of blocks it takes
about 13,000 characters written as JSON (`msg_blocks_too_long`; Slack names no number). A message holds one table of
Slack's own, because more were refused for long (`only_one_table_allowed`). Tables that are too large for one, or stand
in a list or a quote, are blocks of code, or lists when they are wide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from channels._text.cut import next_cut
from channels._text.layout import Layout, lay_out
from channels._text.links import has_visible_text
from channels._text.parse import parse
from channels.slack.blocks import TEXT_CHARACTERS, blocks_size, escaped_length
from channels.slack.formatting import Formatting, PlacedTable, body_of, formatting_of
from channels.slack.rich_text import LINK_CHARACTERS
from channels.slack.tables import table_block
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
    return [body for body in _messages(layout) if has_visible_text(body.text)]


def mark_repeat(body: MessageBody) -> MessageBody:
    """Put the mark of a possible repeat before a message; its formatting moves along."""
    formatting = formatting_of(body)
    text = REPEAT_MARK + body.text
    if formatting is None:
        return MessageBody(text, body.format)
    return body_of(text, formatting.within(-len(REPEAT_MARK), len(text)))


def fits(body: MessageBody) -> bool:
    """Whether Slack takes a message, also as a changed one and with the mark of a possible repeat."""
    return escaped_length(body.text) <= MESSAGE_LIMIT and blocks_size(body) <= BLOCKS_LIMIT


def _messages(layout: Layout) -> Iterator[MessageBody]:
    links = [span for span in layout.spans if span.kind != "link" or len(span.value) <= LINK_CHARACTERS]
    formatting = Formatting(links, layout.items)
    tables = list(_tables(layout))
    code = [(span.start, span.end) for span in layout.spans if span.kind == "pre"]
    keep = sorted({*code, *((table.start, table.end) for table in tables)})
    start = 0
    while start < len(layout.text):
        coming = [table for table in tables if table.start >= start]
        stop = coming[1].start if len(coming) > 1 else len(layout.text)
        table = coming[0] if coming else None
        end, body = _first(layout.text[:stop], start, replace(formatting, table=table), keep)
        yield body
        start = end


def _tables(layout: Layout) -> Iterator[PlacedTable]:
    """The tables that can be Slack's own."""
    for laid in layout.tables:
        block = table_block(laid.table)
        if block is not None and escaped_length(layout.text[laid.start : laid.end]) <= MESSAGE_LIMIT:
            yield PlacedTable(laid.start, laid.end, block)


def _first(text: str, start: int, formatting: Formatting, keep: Sequence[tuple[int, int]]) -> tuple[int, MessageBody]:
    """The message that begins at a place of a text, and where it ends."""
    limit = MESSAGE_LIMIT
    while True:
        end = _outside(formatting.table, start, next_cut(text, start, limit, escaped_length, keep))
        body = _piece(text, start, end, formatting)
        size = blocks_size(body)
        if size <= BLOCKS_LIMIT or end - start <= 1:
            return end, body
        limit = max(1, min(limit - 1, escaped_length(text[start:end]) * BLOCKS_LIMIT // size))


def _outside(table: PlacedTable | None, start: int, end: int) -> int:
    """A place to cut at that is not inside of a table: before it, or behind it when the message begins with it."""
    if table is None or not table.start < end < table.end:
        return end
    return table.start if table.start > start else table.end


def _piece(text: str, start: int, end: int, formatting: Formatting) -> MessageBody:
    """A piece of the text without line feeds at its ends, with what of the formatting is in it."""
    while start < end and text[start] == "\n":
        start += 1
    while end > start and text[end - 1] in " \n":
        end -= 1
    table = formatting.table
    if table is not None and not start <= table.start < end:
        formatting = replace(formatting, table=None)
    return body_of(text[start:end], formatting.within(start, end))
