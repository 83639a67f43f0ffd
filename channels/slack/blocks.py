"""A text and its formatting as Slack's blocks, in which no character of a text is ever read as a mark.

Beside them goes the text alone, for notifications and for who reads without blocks; there `&`, `<` and `>` are escaped,
as https://docs.slack.dev/messaging/formatting-message-text wants it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from channels.slack.formatting import Formatting, Json, formatting_of
from channels.slack.rich_text import elements_of
from channels.slack.tables import table_characters
from zerobot.core.channel import MessageBody

TEXT_CHARACTERS = 4000
"""What the text of a message may have so that it can be changed: https://docs.slack.dev/reference/methods/chat.update"""


def escape(text: str) -> str:
    """Write a text so that Slack reads nothing in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escaped_length(text: str) -> int:
    """Characters of a text once it is escaped."""
    return len(text) + 4 * text.count("&") + 3 * (text.count("<") + text.count(">"))


def blocks_of(body: MessageBody) -> list[Json]:
    """The blocks of a message; none when it is to be shown without."""
    formatting = formatting_of(body)
    return [] if formatting is None else list(_blocks(body.text, formatting))


def _blocks(text: str, formatting: Formatting) -> Iterator[Json]:
    table = formatting.table
    if table is None:
        yield from _rich_text(text, 0, len(text), formatting)
        return
    yield from _rich_text(text, 0, table.start, formatting)
    yield table.block
    yield from _rich_text(text, table.end, len(text), formatting)


def _rich_text(text: str, start: int, end: int, formatting: Formatting) -> Iterator[Json]:
    elements = elements_of(text, start, end, formatting) if start < end else []
    if elements:
        yield {"type": "rich_text", "elements": elements}


def blocks_size(body: MessageBody) -> int:
    """How much of the room that a message has for blocks its blocks take, in characters.

    Written as JSON, but of a table only what is in its cells: a table may have far more cells than fit otherwise.
    """
    return sum(_size(block) for block in blocks_of(body))


def _size(block: Json) -> int:
    return table_characters(block) if block["type"] == "table" else len(json.dumps(block, ensure_ascii=False))
