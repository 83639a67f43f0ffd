"""A question in the form of the Responses API (platform.openai.com/docs/api-reference/responses/create)."""

import re
from collections.abc import Mapping, Sequence

from zerobot.core.messages import RecordedCall
from zerobot.core.model import ModelRequest, Picture, ToolSpec
from zerobot.providers.dialogue import ModelSaid, argument_text, data_url, dialogue, result_text, tool_name

REASONING_ITEM = "reasoning_item"
"""Kind of the block that keeps a reasoning item, whole, and the number of calls before it."""
MIN_OUTPUT_TOKENS = 16
"""A smaller limit is refused ("Expected a value >= 16")."""

# Asked for reasoning they cannot give, these answer 400 "Encrypted content is not supported with this model."
_DOES_NOT_REASON = re.compile(r"(?:^|[/:])(?:gpt-3|gpt-4|chatgpt-|gpt-5-chat)")

_Item = dict[str, object]


def encode(request: ModelRequest, provider: str) -> dict[str, object]:
    """Write the body of a streaming request.

    Nothing is kept by the server: the whole history goes along, with reasoning in its encrypted form.

    Args:
        request: What to ask.
        provider: Our name of the provider, to tell its own reasoning from that of others.
    """
    items: list[_Item] = []
    for entry in dialogue(request, provider):
        if isinstance(entry, ModelSaid):
            items += _round(entry)
        else:
            items.append(_message("user", [_input(part) for part in entry.parts]))
    body: dict[str, object] = {"model": request.model, "input": items, "stream": True, "store": False}
    if not _DOES_NOT_REASON.search(request.model):
        body["include"] = ["reasoning.encrypted_content"]
    if request.system.strip():
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = _tools(request.tools)
    if request.max_output_tokens is not None:
        body["max_output_tokens"] = max(request.max_output_tokens, MIN_OUTPUT_TOKENS)
    return body


def _round(said: ModelSaid) -> list[_Item]:
    """Write an answer: each reasoning item stands before what it led to, and the results come last."""
    rank = len(said.calls) + 1
    thoughts: list[list[_Item]] = [[] for _ in range(rank + 1)]
    for block in said.reasoning:
        item, place = block.get("item"), block.get("before")
        if block.get("type") == REASONING_ITEM and isinstance(item, Mapping) and isinstance(place, int):
            thoughts[min(max(place, 0), rank)].append(dict(item))
    items: list[_Item] = []
    if said.text:
        items += [*thoughts[0], _message("assistant", [{"type": "output_text", "text": said.text}])]
    elif thoughts[0]:
        thoughts[1] = [*thoughts[0], *thoughts[1]]
    for place, call in enumerate(said.calls, start=1):
        items += [*thoughts[place], _call(call)]
    # A reasoning item that nothing follows is refused ("was provided without its required following item").
    return [*items, *(_result(call) for call in said.calls)]


def _message(role: str, content: Sequence[_Item]) -> _Item:
    return {"type": "message", "role": role, "content": content}


def _input(part: str | Picture) -> _Item:
    if isinstance(part, Picture):
        return {"type": "input_image", "detail": "auto", "image_url": data_url(part)}
    return {"type": "input_text", "text": part}


def _call(call: RecordedCall) -> _Item:
    return {
        "type": "function_call",
        "call_id": call.wire_id,
        "name": tool_name(call.name),
        "arguments": argument_text(call),
    }


def _result(call: RecordedCall) -> _Item:
    return {"type": "function_call_output", "call_id": call.wire_id, "output": result_text(call)}


def _tools(tools: Sequence[ToolSpec]) -> list[_Item]:
    # This API makes schemas strict unless told otherwise, which changes what optional parameters mean.
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.parameters),
            "strict": False,
        }
        for tool in tools
    ]
