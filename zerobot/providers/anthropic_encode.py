"""A question in the form of the Messages API (docs.claude.com/en/api/messages)."""

import re
from collections.abc import Sequence

from zerobot.core.messages import RecordedCall
from zerobot.core.model import ModelRequest, Picture, ToolSpec
from zerobot.providers.dialogue import ModelSaid, PeopleSaid, dialogue, result_text, tool_name

DEFAULT_MAX_TOKENS = 8192
"""The API demands a limit of output tokens; this is what all current models of the vendor can write."""

MARKED_MESSAGES = 2

_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")
_CACHE = {"type": "ephemeral"}
_Block = dict[str, object]


def encode(request: ModelRequest, provider: str) -> dict[str, object]:
    """Write the body of a streaming request.

    Four places carry a cache mark, which is all that the API allows: the last tool, the system prompt, and the last two
    messages of the user's side. The last one writes what the next step reads; the one before it is where this step
    finds what the last one wrote, as the API looks only 20 blocks back from a mark
    (docs.claude.com/en/docs/build-with-claude/prompt-caching).

    Args:
        request: What to ask.
        provider: Our name of the provider, to tell its own reasoning from that of others.
    """
    entries = dialogue(request, provider)
    body: dict[str, object] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens or DEFAULT_MAX_TOKENS,
        "stream": True,
    }
    # In the order in which the cache reads them.
    if request.tools:
        body["tools"] = _tools(request.tools)
    elif used := _used_tools(entries):
        # Calls in the history without any tools are refused; so the tools are named, and their use is forbidden.
        body["tools"] = used
        body["tool_choice"] = {"type": "none"}
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHE}]
    body["messages"] = _messages(entries)
    return body


def _messages(entries: Sequence[PeopleSaid | ModelSaid]) -> list[_Block]:
    messages: list[_Block] = []
    results: list[_Block] = []
    for entry in entries:
        if isinstance(entry, PeopleSaid):
            # Results come first in a message, whatever people said after the round follows them.
            messages.append({"role": "user", "content": [*results, *(_part(part) for part in entry.parts)]})
            results = []
            continue
        if results:
            messages.append({"role": "user", "content": results})
        messages.append({"role": "assistant", "content": _blocks(entry)})
        results = [_result(call) for call in entry.calls]
    if results:
        messages.append({"role": "user", "content": results})
    for message in [each for each in messages if each["role"] == "user"][-MARKED_MESSAGES:]:
        content = message["content"]
        assert isinstance(content, list), "all content is written as blocks"
        content[-1]["cache_control"] = _CACHE
    return messages


def _part(part: str | Picture) -> _Block:
    if isinstance(part, Picture):
        return {"type": "image", "source": {"type": "base64", "media_type": part.mime, "data": part.base64}}
    return {"type": "text", "text": part}


def _blocks(said: ModelSaid) -> list[_Block]:
    blocks: list[_Block] = [dict(block) for block in said.reasoning]
    if said.text:
        # The API refuses text that ends with blanks at the end of a message.
        blocks.append({"type": "text", "text": said.text.rstrip()})
    for call in said.calls:
        name = tool_name(call.name)
        blocks.append({"type": "tool_use", "id": _id(call), "name": name, "input": dict(call.arguments)})
    return blocks


def _result(call: RecordedCall) -> _Block:
    block: _Block = {"type": "tool_result", "tool_use_id": _id(call), "content": result_text(call)}
    if call.result is not None and not call.result.ok:
        block["is_error"] = True
    return block


def _id(call: RecordedCall) -> str:
    """Return the call's id in the characters that the API takes; other vendors' ids have dots and colons."""
    return _NOT_IN_IDS.sub("_", call.wire_id)


def _tools(tools: Sequence[ToolSpec]) -> list[_Block]:
    blocks: list[_Block] = [
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)} for tool in tools
    ]
    blocks[-1]["cache_control"] = _CACHE
    return blocks


def _used_tools(entries: Sequence[PeopleSaid | ModelSaid]) -> list[_Block]:
    names = {tool_name(call.name) for entry in entries if isinstance(entry, ModelSaid) for call in entry.calls}
    return [{"name": name, "input_schema": {"type": "object"}} for name in sorted(names)]
