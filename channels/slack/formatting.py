"""What formats a message's text: stretches of it, the items of its lists, a table. Stored beside it as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from channels._text.layout import LaidItem, Span
from zerobot.core.channel import MessageBody

Json = dict[str, object]

_SPANS, _ITEMS, _TABLE = "spans", "items", "table"


@dataclass(frozen=True, slots=True)
class PlacedTable:
    """A table and the stretch of the text that says the same."""

    start: int
    end: int
    block: Json

    def moved(self, by: int) -> PlacedTable:
        """The same table in a text that has `by` more characters before it."""
        return replace(self, start=self.start + by, end=self.end + by)


@dataclass(frozen=True, slots=True)
class Formatting:
    """All that is to be known beside a text."""

    spans: Sequence[Span]
    """Sorted by start, outer before inner."""
    items: Sequence[LaidItem] = ()
    """Sorted like spans. One that starts before the text is the rest of an item of the message before."""
    table: PlacedTable | None = None

    def within(self, start: int, end: int) -> Formatting:
        """What of it is left for the stretch of the text from `start` to `end`; a table has to be in it whole."""
        spans = [
            replace(span, start=max(span.start, start) - start, end=min(span.end, end) - start)
            for span in self.spans
            if span.start < end and span.end > start
        ]
        items = [
            replace(
                item,
                start=item.start - start,
                end=min(item.end, end) - start,
                words=min(item.words, end) - start,
            )
            for item in self.items
            if item.start < end and item.end > start
        ]
        return Formatting(spans, items, self.table.moved(-start) if self.table else None)


def body_of(text: str, formatting: Formatting) -> MessageBody:
    """A message with its formatting; what the renderer makes is stored like this."""
    value: Json = {_SPANS: [[span.start, span.end, span.kind, span.value] for span in formatting.spans]}
    if formatting.items:
        value[_ITEMS] = [
            [item.start, item.end, item.words, item.depth, item.number, item.indent] for item in formatting.items
        ]
    if formatting.table:
        value[_TABLE] = [formatting.table.start, formatting.table.end, formatting.table.block]
    return MessageBody(text, value)


def formatting_of(body: MessageBody) -> Formatting | None:
    """The formatting of a message; None: it is to be shown without blocks."""
    value = cast("Mapping[str, Any]", body.format)
    if _SPANS not in value:
        return None
    table = value.get(_TABLE)
    return Formatting(
        [Span(*row) for row in value[_SPANS]],
        [LaidItem(*row) for row in value.get(_ITEMS, ())],
        PlacedTable(*table) if table else None,
    )
