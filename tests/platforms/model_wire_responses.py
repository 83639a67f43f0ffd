"""How the Responses protocol looks on the wire, from its public description; nothing is shared with zerobot."""

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.platforms.model_script import ScriptedCall, Step
from tests.platforms.model_wire import SIGNATURE, Frame

_INCOMPLETE = {"length": "max_output_tokens", "filter": "content_filter"}


class _Stream:
    """Numbers the events and keeps the items that are whole."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.output: list[dict[str, Any]] = []
        self._numbers = itertools.count()

    def event(self, name: str, **fields: object) -> Frame:
        """Write an event."""
        data = {"type": name, "sequence_number": next(self._numbers), **fields}
        is_text = name == "response.output_text.delta"
        return Frame(f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode(), is_text=is_text)

    def response(self, status: str, **fields: object) -> dict[str, object]:
        """The response object as it stands."""
        whole: dict[str, object] = {"id": "resp_1", "object": "response", "status": status, "error": None}
        return {
            **whole,
            "incomplete_details": None,
            "model": self.model,
            "output": self.output,
            "usage": None,
            **fields,
        }


def responses_frames(step: Step, model: str, mint_id: Callable[[], str]) -> Iterator[Frame]:
    """Write an answer as Responses events, up to `response.completed` or `response.incomplete`."""
    stream = _Stream(model)
    yield stream.event("response.created", response=stream.response("in_progress"))
    if step.reasoning:
        yield from _reasoning(stream, step.reasoning)
    if step.deltas:
        yield from _message(stream, step.deltas)
    for call in step.calls:
        yield from _call(stream, call, call.id or mint_id())
    if step.fault is not None:
        yield stream.event("response.failed", response=stream.response("failed", error=_fault(step)))
        return
    usage = None
    if step.usage is not None:
        read, written = step.usage
        usage = {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": read + written,
        }
    if reason := _INCOMPLETE.get(step.stop_reason):
        response = stream.response("incomplete", incomplete_details={"reason": reason}, usage=usage)
        yield stream.event("response.incomplete", response=response)
        return
    yield stream.event("response.completed", response=stream.response("completed", usage=usage))


def responses_late(_model: str) -> bytes:
    """Return an event that comes after the end."""
    data = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "LATE"}
    return f"event: response.output_text.delta\ndata: {json.dumps(data)}\n\n".encode()


def _fault(step: Step) -> dict[str, object]:
    fault = step.fault or {}
    return {"code": fault.get("code") or fault.get("type"), "message": fault.get("message")}


def _reasoning(stream: _Stream, text: str) -> Iterator[Frame]:
    index = len(stream.output)
    item = {"id": f"rs_{index}", "type": "reasoning", "summary": []}
    yield stream.event("response.output_item.added", output_index=index, item=item)
    part = {"item_id": item["id"], "output_index": index, "summary_index": 0}
    yield stream.event("response.reasoning_summary_text.delta", **part, delta=text)
    yield stream.event("response.reasoning_summary_text.done", **part, text=text)
    whole = {**item, "summary": [{"type": "summary_text", "text": text}], "encrypted_content": SIGNATURE}
    stream.output.append(whole)
    yield stream.event("response.output_item.done", output_index=index, item=whole)


def _message(stream: _Stream, deltas: tuple[str, ...]) -> Iterator[Frame]:
    index = len(stream.output)
    item = {"id": f"msg_{index}", "type": "message", "status": "in_progress", "role": "assistant", "content": []}
    yield stream.event("response.output_item.added", output_index=index, item=item)
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    yield stream.event("response.content_part.added", **place, part={"type": "output_text", "text": ""})
    for text in deltas:
        yield stream.event("response.output_text.delta", **place, delta=text)
    text = "".join(deltas)
    yield stream.event("response.output_text.done", **place, text=text)
    whole = {**item, "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]}
    stream.output.append(whole)
    yield stream.event("response.output_item.done", output_index=index, item=whole)


def _call(stream: _Stream, call: ScriptedCall, call_id: str) -> Iterator[Frame]:
    index = len(stream.output)
    item = {"id": f"fc_{index}", "type": "function_call", "call_id": call_id, "name": call.name, "arguments": ""}
    yield stream.event("response.output_item.added", output_index=index, item=item)
    half = len(call.arguments) // 2
    place = {"item_id": item["id"], "output_index": index}
    for piece in (call.arguments[:half], call.arguments[half:]):
        yield stream.event("response.function_call_arguments.delta", **place, delta=piece)
    yield stream.event("response.function_call_arguments.done", **place, arguments=call.arguments)
    whole = {**item, "arguments": call.arguments}
    stream.output.append(whole)
    yield stream.event("response.output_item.done", output_index=index, item=whole)
