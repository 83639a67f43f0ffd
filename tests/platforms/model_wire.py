"""How the two model protocols look on the wire, from their public descriptions; nothing is shared with zerobot."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.platforms.model_script import ScriptedCall, Step

_CHAT_FINISH = {"stop": "stop", "tool": "tool_calls", "length": "length", "filter": "content_filter"}
_MESSAGES_FINISH = {
    "stop": "end_turn",
    "tool": "tool_use",
    "length": "max_tokens",
    "filter": "refusal",
    "pause": "pause_turn",
}
SIGNATURE = "c2lnbmVkIGJ5IHRoZSBtb2RlbCBzZXJ2ZXI="
"""Signs every reasoning block of the server; a block that comes back with another one was tampered with."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A piece of a stream that is written at once."""

    data: bytes
    is_text: bool = False
    """Whether it is one of the answer's text deltas."""


def chat_frames(step: Step, model: str, mint_id: Callable[[], str]) -> Iterator[Frame]:
    """Write an answer as Chat Completions chunks, up to `[DONE]`."""

    def chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event(_chat_chunk(model, [choice]))

    yield Frame(chunk({"role": "assistant", "content": ""}))
    if step.reasoning:
        yield Frame(chunk({"reasoning_content": step.reasoning}))
    for text in step.deltas:
        yield Frame(chunk({"content": text}), is_text=True)
    for index, call in enumerate(step.calls):
        function: dict[str, object] = {"name": call.name, "arguments": ""}
        head = {"index": index, "id": call.id or mint_id(), "type": "function", "function": function}
        yield Frame(chunk({"tool_calls": [head]}))
        for half in _halves(call.arguments):
            yield Frame(chunk({"tool_calls": [{"index": index, "function": {"arguments": half}}]}))
    if step.fault is not None:
        yield Frame(_event({"error": dict(step.fault)}))
        return
    yield Frame(chunk({}, _CHAT_FINISH.get(step.stop_reason, step.stop_reason)))
    if step.usage is not None:
        read, written = step.usage
        usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        yield Frame(_event({**_chat_chunk(model, []), "usage": usage}))
    yield Frame(b"data: [DONE]\n\n")


def messages_frames(step: Step, model: str, mint_id: Callable[[], str]) -> Iterator[Frame]:
    """Write an answer as Messages events, up to `message_stop`."""
    read, written = step.usage or (0, 0)
    message: dict[str, object] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": read, "output_tokens": 1 if written else 0},
    }
    yield Frame(_named("message_start", message=message))
    index = 0
    if step.reasoning:
        yield from _thinking(step.reasoning)
        index += 1
    if step.deltas:
        yield Frame(_named("content_block_start", index=index, content_block={"type": "text", "text": ""}))
        for text in step.deltas:
            yield Frame(_delta(index, type="text_delta", text=text), is_text=True)
        yield Frame(_named("content_block_stop", index=index))
        index += 1
    for call in step.calls:
        yield from _tool_use(index, call, call.id or mint_id())
        index += 1
    if step.fault is not None:
        yield Frame(_named("error", error=dict(step.fault)))
        return
    stop = {"stop_reason": _MESSAGES_FINISH.get(step.stop_reason, step.stop_reason), "stop_sequence": None}
    yield Frame(_named("message_delta", delta=stop, usage={"output_tokens": written}))
    yield Frame(_named("message_stop"))


def chat_late(model: str) -> bytes:
    """Return a chunk that comes after the end."""
    return _event(_chat_chunk(model, [{"index": 0, "delta": {"content": "LATE"}, "finish_reason": None}]))


def messages_late(_model: str) -> bytes:
    """Return an event that comes after the end."""
    return _delta(0, type="text_delta", text="LATE")


def chat_error(status: int, message: str, kind: str) -> dict[str, object]:
    """Return the body of a refusal of Chat Completions."""
    kinds = {401: "invalid_request_error", 429: "requests", 500: "server_error", 503: "server_error"}
    error = {"message": message, "type": kind or kinds.get(status, "invalid_request_error"), "param": None}
    return {"error": {**error, "code": "invalid_api_key" if status == 401 else None}}


def messages_error(status: int, message: str, kind: str) -> dict[str, object]:
    """Return the body of a refusal of Messages."""
    kinds = {
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        500: "api_error",
        529: "overloaded_error",
    }
    return {"type": "error", "error": {"type": kind or kinds.get(status, "invalid_request_error"), "message": message}}


def _chat_chunk(model: str, choices: list[dict[str, object]]) -> dict[str, object]:
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": model, "choices": choices}


def _thinking(text: str) -> Iterator[Frame]:
    start = {"type": "thinking", "thinking": "", "signature": ""}
    yield Frame(_named("content_block_start", index=0, content_block=start))
    yield Frame(_delta(0, type="thinking_delta", thinking=text))
    yield Frame(_delta(0, type="signature_delta", signature=SIGNATURE))
    yield Frame(_named("content_block_stop", index=0))


def _tool_use(index: int, call: ScriptedCall, call_id: str) -> Iterator[Frame]:
    start = {"type": "tool_use", "id": call_id, "name": call.name, "input": {}}
    yield Frame(_named("content_block_start", index=index, content_block=start))
    for half in _halves(call.arguments):
        yield Frame(_delta(index, type="input_json_delta", partial_json=half))
    yield Frame(_named("content_block_stop", index=index))


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def _delta(index: int, **delta: object) -> bytes:
    return _named("content_block_delta", index=index, delta=delta)


def _named(name: str, **fields: object) -> bytes:
    return b"event: " + name.encode() + b"\n" + _event({"type": name, **fields})


def _event(data: dict[str, object]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
