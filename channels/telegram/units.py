"""Telegram counts in UTF-16 code units: cutting by them, and the mark of a possible repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from channels._text.measure import utf16_len
from zerobot.core.channel import MessageBody

MESSAGE_UNITS = 4096
"""UTF-16 units that a message takes: https://core.telegram.org/bots/api#sendmessage"""
CAPTION_UNITS = 1024
"""UTF-16 units that the caption of a file takes: https://core.telegram.org/bots/api#senddocument"""
REPEAT_MARK = "↻ possibly a repeat:\n"
REPEAT_UNITS = utf16_len(REPEAT_MARK)
"""UTF-16 units that a renderer has to leave free in each message."""


def slice_units(text: str, start: int, end: int | None = None) -> str:
    """Cut a text by UTF-16 units, as entities count; half an emoji at an end is left out."""
    units = text.encode("utf-16-le", "surrogatepass")
    return units[start * 2 : None if end is None else end * 2].decode("utf-16-le", "ignore")


def mark_repeat(body: MessageBody) -> MessageBody:
    """Put the mark of a possible repeat before a message; its entities move along."""
    entities = [
        {**entity, "offset": cast("int", entity["offset"]) + REPEAT_UNITS} for entity in entities_of(body.format)
    ]
    return MessageBody(REPEAT_MARK + body.text, {"entities": entities} if entities else {})


def entities_of(message_format: Mapping[str, object]) -> Sequence[Mapping[str, object]]:
    """The entities in the form in which a body carries them: plain JSON objects."""
    return cast("Sequence[Mapping[str, object]]", message_format.get("entities", ()))
