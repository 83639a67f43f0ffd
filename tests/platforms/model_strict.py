"""What the real model APIs refuse, in about their words. Each check returns a complaint, or None when all is well."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tests.platforms.model_images import chat_image, messages_image
from tests.platforms.model_wire import SIGNATURE

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MESSAGES_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_CHAT_FIELDS = {
    *("model", "messages", "stream", "stream_options", "tools", "tool_choice", "max_tokens", "max_completion_tokens"),
    *("temperature", "top_p", "stop", "n", "parallel_tool_calls", "response_format", "seed", "user"),
}
_MESSAGES_FIELDS = {
    *("model", "messages", "system", "stream", "tools", "tool_choice", "max_tokens", "temperature", "top_p"),
    *("stop_sequences", "metadata", "thinking"),
}
_MAX_CHAT_ID = 40
_MAX_CACHE_MARKS = 4


def complaint_about_chat(body: Mapping[str, Any]) -> str | None:
    """Check a Chat Completions request as the strictest of its servers would."""
    return next(_chat_complaints(body), None)


def complaint_about_messages(body: Mapping[str, Any]) -> str | None:
    """Check a Messages request as the real API would."""
    return next(_messages_complaints(body), None)


def _chat_complaints(body: Mapping[str, Any]) -> Iterator[str]:
    yield from _common(body, _CHAT_FIELDS)
    tools = body.get("tools")
    if tools is not None:
        yield from _chat_tools(tools)
    if "tool_choice" in body and not tools:
        yield "'tool_choice' is only allowed when 'tools' are specified."
    messages = body["messages"]
    for position, message in enumerate(messages):
        yield from _chat_message(message, position)
    yield from _chat_pairing(messages)
    yield from _chat_order(messages)


def _common(body: Mapping[str, Any], fields: set[str]) -> Iterator[str]:
    for unknown in sorted(set(body) - fields):
        yield f"{unknown}: Extra inputs are not permitted"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "you must provide a model parameter"
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        yield "messages: at least one message is required"
    if body.get("stream") is not True:
        yield "this server only streams"
    for field in ("max_tokens", "max_completion_tokens"):
        if field in body and (not isinstance(body[field], int) or body[field] < 1):
            yield f"{field}: must be at least 1"


def _chat_tools(tools: object) -> Iterator[str]:
    if not isinstance(tools, list) or not tools:
        yield "[] is too short - 'tools'"
        return
    names = []
    for position, tool in enumerate(tools):
        function = tool.get("function") or {}
        if tool.get("type") != "function":
            yield f"Invalid value: 'tools[{position}].type'. Supported values are: 'function'."
        names.append(function.get("name"))
        yield from _tool_schema(f"tools[{position}].function", function, "parameters", _NAME)
    yield from _unique(names)


def _tool_schema(place: str, tool: Mapping[str, Any], field: str, names: re.Pattern[str]) -> Iterator[str]:
    if not isinstance(tool.get("name"), str) or not names.fullmatch(tool["name"]):
        yield f"Invalid '{place}.name': string does not match pattern. Expected '^{names.pattern}$'."
    schema = tool.get(field)
    if not isinstance(schema, dict) or schema.get("type") != "object":
        yield f"Invalid schema for function {tool.get('name')!r}: schema must be a JSON Schema of 'type: \"object\"'."


def _unique(names: Sequence[object]) -> Iterator[str]:
    if len(set(names)) != len(names):
        yield "tools: Tool names must be unique."


def _chat_message(message: Mapping[str, Any], position: int) -> Iterator[str]:
    role, content = message.get("role"), message.get("content")
    place = f"messages[{position}]"
    if role not in {"system", "user", "assistant", "tool"}:
        yield f"Invalid value: {role!r}. Supported values are: 'system', 'assistant', 'user', 'tool'. ({place}.role)"
    if role == "system" and position:
        yield f"{place}: a system message must come first"
    if role == "assistant":
        yield from _chat_assistant(message, place)
    elif role == "user" and isinstance(content, list):
        yield from _chat_parts(content, f"{place}.content")
    elif not isinstance(content, str):
        yield f"Invalid value for 'content': expected a string, got {content!r}. ({place})"
    elif role in {"system", "user"} and not content.strip():
        yield f"{place}: content must not be empty"


def _chat_parts(parts: Sequence[Mapping[str, Any]], place: str) -> Iterator[str]:
    if not parts:
        yield f"Invalid '{place}': empty array. Expected an array with minimum length 1."
    for number, part in enumerate(parts):
        if part.get("type") == "image_url":
            yield from chat_image(part, f"{place}[{number}]")
        elif part.get("type") != "text":
            yield f"Invalid value: {part.get('type')!r}. Supported values are: 'text', 'image_url'. ({place}[{number}])"
        elif not isinstance(part.get("text"), str) or not part["text"].strip():
            yield f"{place}[{number}]: content must not be empty"


def _chat_assistant(message: Mapping[str, Any], place: str) -> Iterator[str]:
    content, tool_calls = message.get("content"), message.get("tool_calls")
    if not tool_calls and not (isinstance(content, str) and content.strip()):
        yield f"Invalid assistant message: content or tool_calls must be set ({place})"
    if tool_calls is not None and not tool_calls:
        yield f"Invalid '{place}.tool_calls': empty array. Expected an array with minimum length 1."
    for call in tool_calls or []:
        function = call.get("function") or {}
        if not isinstance(call.get("id"), str) or not call["id"]:
            yield f"Missing required parameter: '{place}.tool_calls[].id'."
        elif len(call["id"]) > _MAX_CHAT_ID:
            yield f"Invalid '{place}.tool_calls[].id': string too long. Expected a maximum length of {_MAX_CHAT_ID}."
        if call.get("type") != "function":
            yield f"Missing required parameter: '{place}.tool_calls[].type'."
        if not isinstance(function.get("name"), str) or not _NAME.fullmatch(function["name"]):
            yield f"Invalid '{place}.tool_calls[].function.name': string does not match pattern."
        if not _is_object(function.get("arguments")):
            yield f"Invalid '{place}.tool_calls[].function.arguments': not a JSON object."


def _is_object(text: object) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _chat_order(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    roles = [message["role"] for message in messages if message["role"] != "system"]
    if not roles:
        yield "messages: at least one user message is required"
        return
    if roles[0] != "user":
        yield f"Expected the first message after the system message to have role 'user', got {roles[0]!r}."
    if roles[-1] == "assistant":
        yield "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"
    for first, second in pairwise(roles):
        if first == second and first != "tool":
            yield f"Conversation roles must alternate user/assistant: two messages of {first!r} in a row"


def _chat_pairing(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    open_ids: list[str] = []
    seen: set[str] = set()
    for position, message in enumerate(messages):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_ids:
                yield (
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    f"'tool_calls'. (messages[{position}].role)"
                )
            else:
                open_ids.remove(message["tool_call_id"])
            continue
        if open_ids:
            yield _unanswered(open_ids)
        open_ids = [call["id"] for call in message.get("tool_calls") or []]
        if len(set(open_ids)) != len(open_ids) or seen & set(open_ids):
            yield f"Duplicate value for 'tool_call_id' in messages[{position}]"
        seen |= set(open_ids)
    if open_ids:
        yield _unanswered(open_ids)


def _unanswered(ids: Sequence[str]) -> str:
    return (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(ids)}"
    )


def _messages_complaints(body: Mapping[str, Any]) -> Iterator[str]:
    yield from _common(body, _MESSAGES_FIELDS)
    if "max_tokens" not in body:
        yield "max_tokens: Field required"
    messages = body["messages"]
    tools = body.get("tools") or []
    for position, tool in enumerate(tools):
        yield from _tool_schema(f"tools.{position}", tool, "input_schema", _MESSAGES_NAME)
    yield from _unique([tool["name"] for tool in tools])
    if body.get("tool_choice") and not tools:
        yield "tool_choice may only be specified while providing tools."
    for position, message in enumerate(messages):
        yield from _messages_role(message, position)
        for number, block in enumerate(message["content"]):
            yield from _block(block, message["role"], f"messages.{position}.content.{number}")
    yield from _messages_pairing(messages)
    yield from _messages_order(messages)
    if not tools and any(block["type"] == "tool_use" for message in messages for block in message["content"]):
        yield "Requests which have `tool_use` or `tool_result` blocks in messages must define tools."
    if (marks := json.dumps(body).count('"cache_control"')) > _MAX_CACHE_MARKS:
        yield f"A maximum of {_MAX_CACHE_MARKS} blocks with cache_control may be provided. Found {marks}."


def _messages_role(message: Mapping[str, Any], position: int) -> Iterator[str]:
    if message.get("role") not in {"user", "assistant"}:
        yield f"messages.{position}.role: Input should be 'user' or 'assistant'"
    if not isinstance(message.get("content"), list):
        yield f"messages.{position}.content: Input should be a valid list"
    elif not message["content"]:
        yield f"messages.{position}: all messages must have non-empty content"


def _block(block: Mapping[str, Any], role: str, place: str) -> Iterator[str]:
    kind = block.get("type")
    allowed = {
        "user": {"text", "image", "tool_result"},
        "assistant": {"text", "tool_use", "thinking", "redacted_thinking"},
    }
    if kind not in allowed[role]:
        yield f"{place}: block of type {kind!r} is not allowed in a message with role {role!r}"
    if kind == "text" and not block.get("text"):
        yield "messages: text content blocks must be non-empty"
    elif kind == "text" and not block["text"].strip():
        yield "messages: text content blocks must contain non-whitespace text"
    if kind == "image":
        yield from messages_image(block, place)
    if kind == "thinking" and block.get("signature") != SIGNATURE:
        yield f"{place}: Invalid `signature` in `thinking` block"
    if kind == "tool_use":
        if not isinstance(block.get("input"), dict):
            yield f"{place}.tool_use.input: Input should be a valid dictionary"
        if not _MESSAGES_NAME.fullmatch(str(block.get("name"))):
            yield f"{place}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
        if not _ID.fullmatch(str(block.get("id"))):
            yield f"{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    if kind == "tool_result" and block.get("is_error") and not block.get("content"):
        yield f"{place}: content cannot be empty if `is_error` is true"


def _messages_order(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    roles = [message["role"] for message in messages]
    if roles[0] != "user":
        yield 'messages: first message must use the "user" role'
    if roles[-1] == "assistant":
        yield "This model does not support assistant message prefill. The conversation must end with a user message."
    for first, second in pairwise(roles):
        if first == second:
            yield f'messages: roles must alternate between "user" and "assistant", but found multiple "{first}" roles'


def _messages_pairing(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    open_ids: list[str] = []
    for position, message in enumerate(messages):
        blocks = message["content"]
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        for answer in answered:
            if answer not in open_ids:
                yield (
                    f"messages.{position}: unexpected `tool_use_id` found in `tool_result` blocks: {answer}. Each "
                    "`tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
        if len(set(answered)) != len(answered):
            yield f"messages.{position}: each tool_use must have a single result. Found multiple `tool_result` blocks"
        if missing := [wanted for wanted in open_ids if wanted not in answered]:
            yield _without_result(position - 1, missing)
        kinds = [block["type"] for block in blocks]
        if "tool_result" in kinds[len(answered) :]:
            yield f"messages.{position}: `tool_result` blocks must come before any other content"
        open_ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if len(set(open_ids)) != len(open_ids) or seen & set(open_ids):
            yield f"messages.{position}: `tool_use` ids must be unique"
        seen |= set(open_ids)
    if open_ids:
        yield _without_result(len(messages) - 1, open_ids)


def _without_result(position: int, ids: Sequence[str]) -> str:
    return (
        f"messages.{position}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )
