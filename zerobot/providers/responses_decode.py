"""A Responses stream, decoded."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from zerobot.core.model import Alive, Finish, ModelAnswer, ModelCall, ModelEvent, TextDelta, UsageSoFar
from zerobot.core.usage import NO_USAGE, Usage
from zerobot.providers.faults import broken, from_stream, malformed
from zerobot.providers.json_values import count_of, list_of, mapping_of, text_of
from zerobot.providers.responses_encode import REASONING_ITEM
from zerobot.providers.sse import MAX_PARTS, SseEvent
from zerobot.providers.visible import VisibleText, joined

_INCOMPLETE = {
    "max_output_tokens": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "content_filter": Finish.FILTER,
}
_ENDS = frozenset({"response.completed", "response.incomplete", "response.done"})
_FAILS = frozenset({"error", "response.failed", "response.error", "response.cancelled"})
_SPEAKS = {
    "response.output_text.delta": "delta",
    "response.output_text.done": "text",
    "response.refusal.delta": "delta",
    "response.refusal.done": "refusal",
}
"""Events with text that people see, and where they have it; a refusal is the model's own words instead of an answer."""
_ARGUMENTS = {"response.function_call_arguments.delta": "delta", "response.function_call_arguments.done": "arguments"}


@dataclass(slots=True, eq=False)
class _Item:
    """An item of the output while it grows."""

    kind: str = ""
    call_id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    whole_arguments: str | None = None
    """What an event that ends the item says; it counts, as it may be all that comes."""
    parts_with_text: set[int] = field(default_factory=set)
    whole: Mapping[str, Any] = field(default_factory=dict)
    """The item as its last event has it."""
    ended: bool = False

    @property
    def arguments(self) -> str:
        """What is known of a call's arguments."""
        return self.whole_arguments or "".join(self.pieces) or _arguments(self.whole.get("arguments"))

    def call(self) -> ModelCall:
        """Return the item as a tool call."""
        return ModelCall(provider_id=joined(self.call_id), name=joined(self.name), raw_arguments=joined(self.arguments))


class ResponsesDecoder:
    """Decodes one answer."""

    def __init__(self, provider: str, *, secret: str = "") -> None:
        self.done = False
        self.nearly_done = False
        """Never: this protocol always says its end, so nothing else is one."""
        self._provider = provider
        self._secret = secret
        self._visible = VisibleText()
        self._text: list[str] = []
        self._speaker: _Item | None = None
        """The item that spoke last."""
        self._items: dict[int | str, _Item] = {}
        self._finish = Finish.NONE
        self._usage: Usage | None = None

    def feed(self, event: SseEvent) -> list[ModelEvent]:
        """Take one event; see `Decoder`. Unknown events and items are the future's, and passed over."""
        if event.data.strip() in {"", "[DONE]"}:
            # A sign of life; or another protocol's end, which some servers add, but it proves nothing.
            return []
        try:
            data = json.loads(event.data)
        except (ValueError, RecursionError) as error:
            raise malformed(self._provider, "an event that is not JSON") from error
        if not isinstance(data, dict):
            raise malformed(self._provider, "an event that is not an object")
        kind = text_of(data.get("type")) or event.name
        if kind in _FAILS or data.get("error"):
            response = data.get("response")
            raise from_stream(self._provider, response if isinstance(response, dict) else data, secret=self._secret)
        if kind in _ENDS:
            return self._take_response(mapping_of(data.get("response")), kind)
        if data.get("object") == "response":
            # A server that does not stream.
            return self._take_response(data, kind)
        return self._take_part(kind, data)

    def end(self) -> list[ModelEvent]:
        """Take the end; see `Decoder`."""
        if not self.done:
            raise broken(self._provider, "before response.completed")
        made = self._show(self._visible.end())
        calling = [item for item in self._items.values() if item.kind == "function_call"]
        finish = self._finish
        if finish is Finish.STOP and calling:
            finish = Finish.TOOL
            if not all(item.ended or item.arguments for item in calling):
                # No arguments and no end: what is missing is more than an empty object.
                raise broken(self._provider, "in the middle of a call")
        calls = tuple(item.call() for item in calling)
        answer = ModelAnswer(
            text="".join(self._text), calls=calls, reasoning=self._reasoning(), finish=finish, usage=self._usage
        )
        return [*made, answer]

    def _take_part(self, kind: str, data: Mapping[str, Any]) -> list[ModelEvent]:
        if kind in {"response.output_item.added", "response.output_item.done"}:
            item = mapping_of(data.get("item"))
            return self._take_item(self._at(data, item), item, ended=kind.endswith("done"))
        if kind in _SPEAKS:
            part = data.get("content_index")
            text = text_of(data.get(_SPEAKS[kind]))
            return self._speak(self._at(data), part if isinstance(part, int) else 0, text, ended=kind.endswith("done"))
        if kind == "response.content_part.done":
            return self._take_whole_part(self._at(data), data.get("content_index"), mapping_of(data.get("part")))
        if kind in _ARGUMENTS:
            item_of_call, text = self._at(data), text_of(data.get(_ARGUMENTS[kind]))
            item_of_call.kind = item_of_call.kind or "function_call"
            item_of_call.name = item_of_call.name or text_of(data.get("name"))
            if kind.endswith("done"):
                item_of_call.whole_arguments = text or item_of_call.whole_arguments
            else:
                item_of_call.pieces.append(text)
            return [Alive()]
        return [Alive()] if "reasoning" in kind else []

    def _at(self, data: Mapping[str, Any], item: Mapping[str, Any] | None = None) -> _Item:
        """Return the item that an event is about; proxies change the ids on the way, or leave the index out."""
        index = data.get("output_index")
        key = index if isinstance(index, int) else text_of(data.get("item_id")) or text_of((item or {}).get("id"))
        if key not in self._items and len(self._items) >= MAX_PARTS:
            raise malformed(self._provider, f"more than {MAX_PARTS} items")
        return self._items.setdefault(key, _Item())

    def _take_item(self, known: _Item, item: Mapping[str, Any], *, ended: bool) -> list[ModelEvent]:
        known.kind = text_of(item.get("type")) or known.kind
        known.call_id = text_of(item.get("call_id")) or known.call_id
        known.name = text_of(item.get("name")) or known.name
        known.whole = item
        if not ended:
            return [Alive()]
        known.ended = True
        known.whole_arguments = _arguments(item.get("arguments")) or known.whole_arguments
        made: list[ModelEvent] = []
        if known.kind == "message":
            for number, part in enumerate(map(mapping_of, list_of(item.get("content")))):
                made += self._take_whole_part(known, number, part)
        return made

    def _take_whole_part(self, item: _Item, number: object, part: Mapping[str, Any]) -> list[ModelEvent]:
        if part.get("type") not in {"output_text", "refusal"}:
            # Parts of reasoning have texts too.
            return []
        text = text_of(part.get("text")) or text_of(part.get("refusal"))
        return self._speak(item, number if isinstance(number, int) else 0, text, ended=True)

    def _take_response(self, response: Mapping[str, Any], kind: str) -> list[ModelEvent]:
        """Take the end of the answer, and of its items those that never came by themselves."""
        status = text_of(response.get("status")) or kind.removeprefix("response.")
        if status in {"failed", "cancelled"}:
            raise from_stream(self._provider, response, secret=self._secret)
        if status not in {"completed", "incomplete", "done"}:
            raise broken(self._provider, f"while it was {status}")
        made: list[ModelEvent] = []
        known_kinds = {item.kind for item in self._items.values()}
        known_calls = {item.call_id for item in self._items.values()} - {""}
        for number, item in enumerate(map(mapping_of, list_of(response.get("output")))):
            is_call = item.get("type") == "function_call"
            if text_of(item.get("call_id")) in known_calls if is_call else item.get("type") in known_kinds:
                continue
            made += self._take_item(self._at({"item_id": f"late {number}"}), item, ended=True)
        reason = text_of(mapping_of(response.get("incomplete_details")).get("reason"))
        self._finish = Finish.STOP
        if status == "incomplete" or kind == "response.incomplete" or reason:
            self._finish = _INCOMPLETE.get(reason, Finish.OTHER)
        made += self._take_usage(mapping_of(response.get("usage")))
        self.done = True
        return made

    def _take_usage(self, usage: Mapping[str, Any]) -> list[ModelEvent]:
        details = mapping_of(usage.get("input_tokens_details"))
        given, written = count_of(usage.get("input_tokens")), count_of(usage.get("output_tokens"))
        counted = Usage(
            input_tokens=given,
            # As in Chat Completions, some leave reasoning out of what was written, but not out of the total (xAI).
            output_tokens=max(written, count_of(usage.get("total_tokens")) - given) if given else written,
            cache_read_tokens=count_of(details.get("cached_tokens")),
        )
        if counted == NO_USAGE:
            return []
        self._usage = counted
        return [UsageSoFar(counted)]

    def _speak(self, item: _Item, part: int, text: str, *, ended: bool) -> list[ModelEvent]:
        """Show a piece of text; the whole text that ends a part counts only if no piece of it came."""
        if not text or (ended and part in item.parts_with_text):
            return []
        item.kind = item.kind or "message"
        item.parts_with_text.add(part)
        gap = "\n\n" if self._speaker not in {None, item} else ""
        self._speaker = item
        return self._show(self._visible.feed(gap + text))

    def _show(self, text: str) -> list[ModelEvent]:
        if not text:
            return []
        self._text.append(text)
        return [TextDelta(text)]

    def _reasoning(self) -> tuple[Mapping[str, object], ...]:
        """Return the reasoning items that may be given back; without its encrypted form an item is only an id.

        The server keeps nothing, so it would not find the id ("Item with id 'rs_...' not found").
        """
        blocks: list[Mapping[str, object]] = []
        before = 0
        for item in self._items.values():
            if item.kind == "message":
                before = max(before, 1)
            elif item.kind == "function_call":
                before = max(before, 1) + 1
            elif item.kind == "reasoning" and item.whole.get("encrypted_content"):
                blocks.append(
                    {"provider": self._provider, "type": REASONING_ITEM, "before": before, "item": dict(item.whole)}
                )
        return tuple(blocks)


def _arguments(value: object) -> str:
    """Return arguments as text; some servers send the object itself."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) and value else text_of(value)
