"""A question in the form of Chat Completions (platform.openai.com/docs/api-reference/chat/create)."""

from collections.abc import Mapping, Sequence

from zerobot.core.messages import RecordedCall
from zerobot.core.model import ModelRequest, ToolSpec
from zerobot.providers.dialogue import ModelSaid, argument_text, dialogue, result_text, tool_name

REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Where servers put a model's reasoning as text (DeepSeek, vLLM, Kimi; OpenRouter, Groq, newer vLLM)."""
CALL_EXTRA = "call_extra"
"""Kind of the block that keeps what a server hung on a call (Gemini's thought signatures)."""


def encode(request: ModelRequest, provider: str, *, limit_field: str) -> dict[str, object]:
    """Write the body of a streaming request.

    Args:
        request: What to ask.
        provider: Our name of the provider, to tell its own reasoning from that of others.
        limit_field: How the server calls the limit of output tokens.
    """
    body: dict[str, object] = {
        "model": request.model,
        "messages": _messages(request, provider),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        # An empty list is refused ("[] is too short").
        body["tools"] = _tools(request.tools)
    if request.max_output_tokens is not None:
        body[limit_field] = request.max_output_tokens
    return body


def _messages(request: ModelRequest, provider: str) -> list[dict[str, object]]:
    messages: list[dict[str, object]] = []
    if request.system.strip():
        messages.append({"role": "system", "content": request.system})
    for entry in dialogue(request.messages, provider):
        if isinstance(entry, ModelSaid):
            messages += _round(entry)
        else:
            messages.append({"role": "user", "content": entry.text})
    return messages


def _round(said: ModelSaid) -> list[dict[str, object]]:
    message: dict[str, object] = {"role": "assistant", "content": said.text or None}
    if not said.calls:
        return [message]
    # Servers that give reasoning want it back with the calls it led to, and only there.
    message |= {
        field: block["text"]
        for block in said.reasoning
        for field in REASONING_FIELDS
        if block.get("type") == field and "text" in block
    }
    extras = {block.get("position"): block.get("extra") for block in said.reasoning if block.get("type") == CALL_EXTRA}
    message["tool_calls"] = [_call(call, extras.get(call.position)) for call in said.calls]
    return [message, *(_result(call) for call in said.calls)]


def _result(call: RecordedCall) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": call.wire_id, "content": result_text(call)}


def _call(call: RecordedCall, extra: object) -> dict[str, object]:
    function = {"name": tool_name(call.name), "arguments": argument_text(call)}
    entry: dict[str, object] = {"id": call.wire_id, "type": "function", "function": function}
    return {**entry, "extra_content": extra} if isinstance(extra, Mapping) else entry


def _tools(tools: Sequence[ToolSpec]) -> list[dict[str, object]]:
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
        }
        for tool in tools
    ]
