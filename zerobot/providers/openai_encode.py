"""A question in the form of Chat Completions (platform.openai.com/docs/api-reference/chat/create)."""

from collections.abc import Mapping, Sequence

from zerobot.core.messages import RecordedCall
from zerobot.core.model import ModelRequest, Picture, ToolSpec
from zerobot.providers.dialogue import ModelSaid, PeopleSaid, argument_text, data_url, dialogue, result_text, tool_name
from zerobot.providers.openai_dialects import Dialect
from zerobot.providers.openai_reasoning import given_back

CALL_EXTRA = "call_extra"
"""Kind of the block that keeps what a server hung on a call (Gemini's thought signatures)."""
NO_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""In place of the signature of a call that another model made (ai.google.dev/gemini-api/docs/thought-signatures)."""
AFTER_RESULTS = "OK."
"""What the model says between results and people's words, for servers that want it to say something there."""


def encode(request: ModelRequest, provider: str, dialect: Dialect) -> dict[str, object]:
    """Write the body of a streaming request.

    Args:
        request: What to ask.
        provider: Our name of the provider, to tell its own reasoning from that of others.
        dialect: How the server wants to be asked.
    """
    body: dict[str, object] = {
        "model": request.model,
        "messages": _messages(request, provider, dialect),
        "stream": True,
    }
    if dialect.usage_option:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        # An empty list is refused ("[] is too short").
        body["tools"] = _tools(request.tools)
    if request.max_output_tokens is not None:
        body[dialect.limit_field] = request.max_output_tokens
    return body


def _messages(request: ModelRequest, provider: str, dialect: Dialect) -> list[dict[str, object]]:
    messages: list[dict[str, object]] = []
    if request.system.strip():
        messages.append({"role": "system", "content": request.system})
    signed = dialect.wants_signatures(request.model)
    for entry in dialogue(request, provider):
        if isinstance(entry, ModelSaid):
            messages += _round(entry, dialect, signed=signed)
            continue
        if dialect.words_after_results and messages and messages[-1]["role"] == "tool":
            messages.append({"role": "assistant", "content": AFTER_RESULTS})
        messages.append({"role": "user", "content": _content(entry)})
    return messages


def _content(said: PeopleSaid) -> object:
    """Write what people said; servers whose models see nothing take no list."""
    first, *more = said.parts
    return [_part(part) for part in said.parts] if more else first


def _part(part: str | Picture) -> dict[str, object]:
    if isinstance(part, Picture):
        return {"type": "image_url", "image_url": {"url": data_url(part)}}
    return {"type": "text", "text": part}


def _round(said: ModelSaid, dialect: Dialect, *, signed: bool) -> list[dict[str, object]]:
    message: dict[str, object] = {"role": "assistant", "content": said.text or None}
    if not said.calls:
        return [message]
    # Servers that give reasoning want it back with the calls it led to, and only there.
    message |= given_back(said.reasoning, said.text)
    extras = {block.get("position"): block.get("extra") for block in said.reasoning if block.get("type") == CALL_EXTRA}
    if signed and not extras:
        # Of calls at once only the first has a signature.
        extras = {said.calls[0].position: NO_SIGNATURE}
    message["tool_calls"] = [_call(call, extras.get(call.position), dialect) for call in said.calls]
    return [message, *(_result(call, dialect) for call in said.calls)]


def _result(call: RecordedCall, dialect: Dialect) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": dialect.call_id(call.wire_id), "content": result_text(call)}


def _call(call: RecordedCall, extra: object, dialect: Dialect) -> dict[str, object]:
    function = {"name": tool_name(call.name), "arguments": argument_text(call)}
    entry: dict[str, object] = {"id": dialect.call_id(call.wire_id), "type": "function", "function": function}
    return {**entry, "extra_content": extra} if isinstance(extra, Mapping) else entry


def _tools(tools: Sequence[ToolSpec]) -> list[dict[str, object]]:
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
        }
        for tool in tools
    ]
