"""A Messages stream, decoded."""

import json
from collections.abc import Mapping
from typing import Any

from zerobot.core.model import Alive, Finish, ModelAnswer, ModelCall, ModelEvent, TextDelta, UsageSoFar
from zerobot.core.usage import NO_USAGE, Usage
from zerobot.providers.faults import broken, from_stream, malformed
from zerobot.providers.json_values import count_of, list_of, mapping_of, text_of
from zerobot.providers.sse import MAX_PARTS, SseEvent
from zerobot.providers.visible import VisibleText, joined

_FINISHES = {
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "tool_use": Finish.TOOL,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.FILTER,
    "pause_turn": Finish.PAUSE,
}
_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class _Block:
    """A content block while it grows."""

    def __init__(self, start: Mapping[str, Any]) -> None:
        self.kind = text_of(start.get("type"))
        self.start = start
        self.pieces: dict[str, list[str]] = {}
        self.stopped = False

    def add(self, field: str, piece: str) -> None:
        """Take a piece of one of its fields."""
        self.pieces.setdefault(field, []).append(piece)

    def whole(self, field: str) -> str:
        """Return a field: what it started with and what came after."""
        return text_of(self.start.get(field)) + "".join(self.pieces.get(field, ()))

    def call(self) -> ModelCall:
        """Return the block as a tool call; an argument object without any piece is an empty one, if it was closed."""
        arguments = "".join(self.pieces.get("partial_json", ()))
        if not arguments and (self.stopped or self.start.get("input")):
            arguments = json.dumps(mapping_of(self.start.get("input")), ensure_ascii=False)
        return ModelCall(
            provider_id=joined(text_of(self.start.get("id"))),
            name=joined(text_of(self.start.get("name"))),
            raw_arguments=joined(arguments),
        )

    def opaque(self, provider: str) -> Mapping[str, object]:
        """Return a reasoning block as the API wants it back, signature included, with our mark of who wrote it."""
        fields = {field: self.whole(field) for field in ("thinking", "signature") if field in self.start}
        fields |= {field: self.whole(field) for field in self.pieces}
        return {"provider": provider, **self.start, **fields}


class MessagesDecoder:
    """Decodes one answer."""

    def __init__(self, provider: str, *, secret: str = "") -> None:
        self.done = False
        self.nearly_done = False
        """Never: this protocol always says its end, so nothing else is one."""
        self._provider = provider
        self._secret = secret
        self._visible = VisibleText()
        self._text: list[str] = []
        self._gap = ""
        self._blocks: dict[int, _Block] = {}
        self._finish = Finish.NONE
        self._counts: dict[str, int] = {}

    def feed(self, event: SseEvent) -> list[ModelEvent]:
        """Take one event; see `Decoder`. Unknown events, blocks and deltas are the future's, and passed over."""
        if not event.data.strip():
            # A sign of life.
            return []
        try:
            data = json.loads(event.data)
        except (ValueError, RecursionError) as error:
            raise malformed(self._provider, "an event that is not JSON") from error
        if not isinstance(data, dict):
            raise malformed(self._provider, "an event that is not an object")
        kind = text_of(data.get("type")) or event.name
        if kind == "error" or data.get("error"):
            raise from_stream(self._provider, data, secret=self._secret)
        if kind == "message_start":
            return self._take_usage(mapping_of(mapping_of(data.get("message")).get("usage")))
        if kind == "message_delta":
            self._take_stop(mapping_of(data.get("delta")))
            return self._take_usage(mapping_of(data.get("usage")))
        if data.get("type") == "message":
            # Not by the event's name, which is `message` wherever there is none.
            return self._take_whole(data)
        if kind == "message_stop":
            self.done = True
            return []
        return self._take_block_event(kind, data)

    def end(self) -> list[ModelEvent]:
        """Take the end; see `Decoder`."""
        if not self.done:
            raise broken(self._provider, "before message_stop")
        made = self._show(self._visible.end())
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        answer = ModelAnswer(
            text="".join(self._text),
            calls=tuple(block.call() for block in blocks if block.kind == "tool_use"),
            reasoning=tuple(
                block.opaque(self._provider) for block in blocks if block.kind in {"thinking", "redacted_thinking"}
            ),
            finish=self._finish,
            usage=self._usage() if self._counts else None,
        )
        return [*made, answer]

    def _take_block_event(self, kind: str, data: Mapping[str, Any]) -> list[ModelEvent]:
        index = data.get("index")
        if not isinstance(index, int):
            return []
        if kind == "content_block_start":
            return self._start(index, mapping_of(data.get("content_block")))
        block = self._blocks.get(index)
        if block is None:
            return []
        if kind == "content_block_stop":
            block.stopped = True
        if kind == "content_block_delta":
            return self._take_delta(block, mapping_of(data.get("delta")))
        return []

    def _start(self, index: int, start: Mapping[str, Any]) -> list[ModelEvent]:
        if index not in self._blocks and len(self._blocks) >= MAX_PARTS:
            raise malformed(self._provider, f"more than {MAX_PARTS} blocks")
        last = self._blocks[max(self._blocks)].kind if self._blocks else ""
        block = self._blocks[index] = _Block(start)
        if block.kind != "text":
            return []
        # Texts that follow each other are one text, cut for citations; around anything else they are two.
        if self._text and last not in {"", "text"}:
            self._gap = "\n\n"
        return self._take_text(text_of(start.get("text")))

    def _take_delta(self, block: _Block, delta: Mapping[str, Any]) -> list[ModelEvent]:
        kind = delta.get("type")
        if kind == "text_delta" and block.kind == "text":
            return self._take_text(text_of(delta.get("text")))
        for field in ("partial_json", "thinking", "signature"):
            if piece := text_of(delta.get(field)):
                block.add(field, piece)
                return [Alive()]
        return []

    def _take_whole(self, message: Mapping[str, Any]) -> list[ModelEvent]:
        """Take an answer of a server that does not stream."""
        made: list[ModelEvent] = []
        for index, start in enumerate(map(mapping_of, list_of(message.get("content")))):
            made += self._start(index, start)
            self._blocks[index].stopped = True
        self._take_stop(message)
        made += self._take_usage(mapping_of(message.get("usage")))
        self.done = True
        return made

    def _take_stop(self, delta: Mapping[str, Any]) -> None:
        if reason := text_of(delta.get("stop_reason")):
            self._finish = _FINISHES.get(reason, Finish.OTHER)

    def _take_usage(self, usage: Mapping[str, Any]) -> list[ModelEvent]:
        """Take counts: each is a running total, and one that is left out or zero is no news."""
        news = {name: count for name in _COUNTS if (count := count_of(usage.get(name)))}
        self._counts |= news
        return [UsageSoFar(self._usage())] if news else []

    def _usage(self) -> Usage:
        if not self._counts:
            return NO_USAGE
        fresh, output, read, written = (self._counts.get(name, 0) for name in _COUNTS)
        # The API counts cached input apart; we count all input as input.
        return Usage(
            input_tokens=fresh + read + written,
            output_tokens=output,
            cache_read_tokens=read,
            cache_write_tokens=written,
        )

    def _take_text(self, text: str) -> list[ModelEvent]:
        if not text:
            return []
        gap, self._gap = self._gap, ""
        return self._show(self._visible.feed(gap + text))

    def _show(self, text: str) -> list[ModelEvent]:
        if not text:
            return []
        self._text.append(text)
        return [TextDelta(text)]
