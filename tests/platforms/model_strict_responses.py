"""What the Responses API refuses, in about its words. The check returns a complaint, or None when all is well."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.platforms.model_images import responses_image
from tests.platforms.model_wire import SIGNATURE

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FIELDS = {
    *("model", "input", "instructions", "stream", "store", "include", "tools", "tool_choice", "parallel_tool_calls"),
    *("max_output_tokens", "reasoning", "text", "temperature", "top_p", "truncation", "metadata", "prompt_cache_key"),
}
_INCLUDES = {"reasoning.encrypted_content", "message.output_text.logprobs", "file_search_call.results"}
_PARTS = {
    "user": {"input_text", "input_image"},
    "system": {"input_text"},
    "developer": {"input_text"},
    "assistant": {"output_text"},
}
_MAX_CALL_ID = 64
_MIN_OUTPUT = 16
_PLAIN_MODELS = ("gpt-4", "gpt-3", "gpt-5-chat")
"""Models that don't reason."""


def complaint_about_responses(body: Mapping[str, Any]) -> str | None:
    """Check a Responses request as the real API would."""
    return next(_complaints(body), None)


def _complaints(body: Mapping[str, Any]) -> Iterator[str]:
    for unknown in sorted(set(body) - _FIELDS):
        yield f"Unknown parameter: '{unknown}'."
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "Missing required parameter: 'model'."
    if body.get("stream") is not True:
        yield "this server only streams"
    if body.get("store") is not False:
        yield "this server is for organizations with zero data retention: 'store' must be false"
    if "max_output_tokens" in body and body["max_output_tokens"] < _MIN_OUTPUT:
        yield (
            f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {_MIN_OUTPUT}, "
            f"but got {body['max_output_tokens']} instead."
        )
    yield from _includes(body)
    if "tools" in body:
        yield from _tools(body["tools"])
    items = body.get("input")
    if not isinstance(items, list) or not items:
        yield "Invalid 'input': at least one item is required"
        return
    for position, item in enumerate(items):
        yield from _item(item, f"input[{position}]")
    yield from _pairing(items)
    yield from _reasoning_order(items)


def _includes(body: Mapping[str, Any]) -> Iterator[str]:
    for include in body.get("include", []):
        if include not in _INCLUDES:
            yield f"Invalid value: '{include}'. Supported values are: {sorted(_INCLUDES)}"
        if include == "reasoning.encrypted_content" and body["model"].startswith(_PLAIN_MODELS):
            yield "Encrypted content is not supported with this model."


def _tools(tools: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = []
    for position, tool in enumerate(tools):
        if tool.get("type") != "function":
            yield f"Invalid value: 'tools[{position}].type'."
        if "function" in tool:
            yield f"Unknown parameter: 'tools[{position}].function'."
        if not isinstance(tool.get("name"), str) or not _NAME.fullmatch(tool["name"]):
            yield f"Invalid 'tools[{position}].name': string does not match pattern. Expected '^[a-zA-Z0-9_-]+$'."
        schema = tool.get("parameters")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            yield f"Invalid schema for function {tool.get('name')!r}: schema must be a JSON Schema of type 'object'."
        elif tool.get("strict") is not False and schema.get("additionalProperties") is not False:
            yield (
                f"Invalid schema for function {tool.get('name')!r}: In context=(), 'additionalProperties' is required "
                "to be supplied and to be false."
            )
        names.append(tool.get("name"))
    if len(set(names)) != len(names):
        yield "tools: Tool names must be unique."


def _item(item: Mapping[str, Any], place: str) -> Iterator[str]:
    kind = item.get("type", "message")
    if kind == "message":
        yield from _message(item, place)
    elif kind == "function_call":
        if not isinstance(item.get("name"), str) or not _NAME.fullmatch(item["name"]):
            yield f"Invalid '{place}.name': string does not match pattern. Expected '^[a-zA-Z0-9_-]+$'."
        if not isinstance(item.get("arguments"), str) or not _is_object(item["arguments"]):
            yield f"Invalid '{place}.arguments': not a JSON object."
        yield from _call_id(item, place)
    elif kind == "function_call_output":
        yield from _call_id(item, place)
        if not isinstance(item.get("output"), str):
            yield f"Missing required parameter: '{place}.output'."
    elif kind == "reasoning":
        if "summary" not in item:
            yield f"Missing required parameter: '{place}.summary'."
        if "encrypted_content" not in item:
            yield (
                f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to false. Try "
                "again with `store` set to true, or remove this item from your input."
            )
        elif item["encrypted_content"] != SIGNATURE:
            yield f"The encrypted content for item {item.get('id')} could not be verified."
    else:
        yield f"Invalid value: '{kind}'. ({place}.type)"


def _message(item: Mapping[str, Any], place: str) -> Iterator[str]:
    role, content = item.get("role"), item.get("content")
    if role not in _PARTS:
        yield f"Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
        return
    if not isinstance(content, list) or not content:
        yield f"Invalid type for '{place}.content': expected a non-empty array"
        return
    for number, part in enumerate(content):
        if part.get("type") not in _PARTS[role]:
            yield (
                f"Invalid value: '{part.get('type')}'. Supported values are: {sorted(_PARTS[role])}. "
                f"({place}.content[{number}].type)"
            )
        if part.get("type") == "input_image":
            yield from responses_image(part, f"{place}.content[{number}]")
        elif not isinstance(part.get("text"), str) or not part["text"].strip():
            yield f"Invalid '{place}.content[{number}].text': empty string"


def _call_id(item: Mapping[str, Any], place: str) -> Iterator[str]:
    if not isinstance(item.get("call_id"), str) or not item["call_id"]:
        yield f"Missing required parameter: '{place}.call_id'."
    elif len(item["call_id"]) > _MAX_CALL_ID:
        yield f"Invalid '{place}.call_id': string too long. Expected a string with maximum length {_MAX_CALL_ID}."


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _pairing(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    called: set[str] = set()
    answered: set[str] = set()
    for item in items:
        if item.get("type") == "function_call":
            if item["call_id"] in called:
                yield f"Duplicate function call with call_id {item['call_id']}."
            called.add(item["call_id"])
        elif item.get("type") == "function_call_output":
            if item["call_id"] not in called:
                yield f"No tool call found for function call output with call_id {item['call_id']}."
            if item["call_id"] in answered:
                yield f"Duplicate tool output for function call {item['call_id']}."
            answered.add(item["call_id"])
    for lost in sorted(called - answered):
        yield f"No tool output found for function call {lost}."


def _reasoning_order(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for position, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        following = items[position + 1] if position + 1 < len(items) else {}
        if following.get("type") not in {"reasoning", "function_call"} and following.get("role") != "assistant":
            yield (f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item.")
