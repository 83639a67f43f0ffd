"""The Responses API: how a history is written for it, and what its strict double refuses."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.platforms.model_asking import ask, assistant, called, provider_on, question, tool, user
from tests.platforms.model_script import breaks_with, calls, says
from tests.platforms.model_server import ModelServer
from tests.platforms.model_strict_responses import complaint_about_responses
from tests.platforms.model_wire import SIGNATURE
from zerobot.core.model import ModelRequest
from zerobot.providers.responses_encode import REASONING_ITEM, encode


def items(*messages: Any, model: str = "m-1") -> list[dict[str, Any]]:
    """The input items of a question."""
    body: dict[str, Any] = encode(question(*messages, model=model), "main")
    written: list[dict[str, Any]] = body["input"]
    return written


def thought(name: str, before: int) -> Mapping[str, object]:
    """A reasoning item as the history keeps it."""
    item = {"id": name, "type": "reasoning", "summary": [], "encrypted_content": SIGNATURE}
    return {"provider": "main", "type": REASONING_ITEM, "before": before, "item": item}


def kinds(written: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each item by what tells it from others."""
    return [str(item.get("role") or item.get("call_id") or item.get("id")) for item in written]


def test_nothing_is_kept_by_the_server() -> None:
    """The history goes along whole, with reasoning in its encrypted form."""
    body = encode(question("Hi", tools=[tool("a", "x")]), "main")
    assert (body["store"], body["include"], body["instructions"]) == (
        False,
        ["reasoning.encrypted_content"],
        "Be brief.",
    )
    tools: Any = body["tools"]
    assert (tools[0]["name"], tools[0]["strict"]) == ("a", False)


@pytest.mark.parametrize(
    ("model", "asks"),
    [
        ("gpt-5", True),
        ("gpt-5-mini-2025-08-07", True),
        ("o3", True),
        ("my-deployment", True),
        ("gpt-4o", False),
        ("gpt-4.1-mini", False),
        ("openai/gpt-4o", False),
        ("ft:gpt-4o-mini:acme", False),
        ("gpt-5-chat-latest", False),
        ("chatgpt-4o-latest", False),
    ],
)
def test_only_models_that_reason_are_asked_for_it(model: str, asks: bool) -> None:  # noqa: FBT001
    """Others refuse the question."""
    assert ("include" in encode(question("Hi", model=model), "main")) is asks


def test_a_small_limit_is_raised_to_the_least_that_is_taken() -> None:
    """The API refuses less."""
    request = ModelRequest(model="m-1", system="", messages=[user("Hi")], max_output_tokens=1)
    assert encode(request, "main")["max_output_tokens"] == 16


@pytest.mark.parametrize(
    ("text", "thoughts", "wanted"),
    [
        ("Look:", [("r0", 0)], ["r0", "assistant", "c1", "c2"]),
        ("", [("r0", 0)], ["r0", "c1", "c2"]),
        ("Look:", [("r0", 0), ("r1", 1)], ["r0", "assistant", "r1", "c1", "c2"]),
        ("", [("r0", 0), ("r2", 2)], ["r0", "c1", "r2", "c2"]),
        ("", [("r0", 0), ("r3", 3)], ["r0", "c1", "c2"]),
        ("", [("r0", -5), ("r9", 99)], ["r0", "c1", "c2"]),
    ],
)
def test_reasoning_stands_before_what_it_led_to(text: str, thoughts: list[tuple[str, int]], wanted: list[str]) -> None:
    """In the model's own order; one that nothing follows is refused, so it is left out."""
    both = (called("a", "c1"), called("b", "c2", position=1))
    back = assistant(text, *both, reasoning=tuple(thought(name, before) for name, before in thoughts))
    assert kinds(items("go", back)) == ["user", *wanted, "c1", "c2"]


def test_reasoning_goes_back_without_calls_too() -> None:
    """It led to the text; and a beginning that stays the same is read from the cache."""
    assert kinds(items("go", assistant("Done.", reasoning=(thought("r0", 0),)), user("ok"))) == [
        "user",
        "r0",
        "assistant",
        "user",
    ]


async def test_the_order_of_an_answer_survives() -> None:
    """What the server sent as reasoning, text and call comes back to it in this order, unchanged."""
    async with ModelServer() as server, provider_on(server, "openai_responses") as provider:
        server.answers(says("Look:", reasoning="Hm.") + calls("a", id="c1", x="1"), says("Fine."))
        answer = (await ask(provider, question("go", tools=[tool("a", "x")]))).answer
        back = assistant(answer.text, called("a", "c1", '{"x": "1"}'), reasoning=answer.reasoning)
        await ask(provider, question("go", back, tools=[tool("a", "x")]))
        sent = server.last_request.body["input"]
    assert kinds(sent) == ["user", "rs_0", "assistant", "c1", "c1"]
    assert sent[1] == {
        "id": "rs_0",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Hm."}],
        "encrypted_content": SIGNATURE,
    }


async def test_a_limit_inside_the_stream_says_how_long_to_wait() -> None:
    """The server's own words are all that tells it there."""
    fault = {"code": "rate_limit_exceeded", "message": "Rate limit reached. Please try again in 11s."}
    async with ModelServer() as server, provider_on(server, "openai_responses") as provider:
        server.answers(breaks_with(fault))
        asked = await ask(provider, question("Hi"))
    assert asked.error is not None
    assert (asked.error.code, asked.error.retryable, asked.error.retry_after) == ("rate_limited", True, 11.0)


USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
HELLO = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}
CALL = {"type": "function_call", "call_id": "c1", "name": "a", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "x"}
REASONS = {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": SIGNATURE}


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ([], "at least one item"),
        ([USER, OUTPUT], "No tool call found for function call output with call_id c1."),
        ([USER, CALL], "No tool output found for function call c1."),
        ([USER, CALL, OUTPUT, OUTPUT], "Duplicate tool output"),
        ([USER, CALL, OUTPUT, CALL], "Duplicate function call"),
        ([USER, {**CALL, "name": "a b"}, OUTPUT], "pattern"),
        ([USER, {**CALL, "arguments": "{"}, OUTPUT], "not a JSON object"),
        ([USER, {**CALL, "call_id": ""}, OUTPUT], "Missing required parameter"),
        ([USER, {**CALL, "call_id": "x" * 65}, {**OUTPUT, "call_id": "x" * 65}], "string too long"),
        ([USER, CALL, {**OUTPUT, "output": None}], "Missing required parameter"),
        ([{**USER, "content": HELLO["content"]}], "Supported values are"),
        ([USER, {**HELLO, "content": USER["content"]}], "Supported values are"),
        ([{**USER, "role": "tool"}], "Supported values are"),
        ([{**USER, "content": [{"type": "input_text", "text": " "}]}], "empty string"),
        ([{**USER, "content": "Hi"}], "expected a non-empty array"),
        ([USER, REASONS], "without its required following item"),
        ([USER, REASONS, USER], "without its required following item"),
        ([USER, {**REASONS, "encrypted_content": "forged"}, HELLO], "could not be verified"),
        ([USER, {"type": "reasoning", "id": "r1", "summary": []}, HELLO], "not found"),
        ([USER, {"type": "surprise"}], "Invalid value"),
    ],
)
def test_inputs_that_are_refused(written: list[dict[str, Any]], words: str) -> None:
    """Each in about the words of the real API."""
    complaint = complaint_about_responses({"model": "m", "stream": True, "store": False, "input": written})
    assert complaint is not None
    assert words in complaint


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": ""}, "model"),
        ({"stream": False}, "streams"),
        ({"store": True}, "store"),
        ({"messages": []}, "Unknown parameter: 'messages'"),
        ({"max_output_tokens": 5}, ">= 16"),
        ({"include": ["everything"]}, "Supported values"),
        ({"model": "gpt-4o", "include": ["reasoning.encrypted_content"]}, "Encrypted content is not supported"),
        ({"tools": [{"type": "function", "name": "a b", "parameters": {"type": "object"}}]}, "pattern"),
        ({"tools": [{"type": "function", "name": "a", "parameters": {}}]}, "JSON Schema"),
        ({"tools": [{"type": "function", "name": "a", "parameters": {"type": "object"}}]}, "additionalProperties"),
        ({"tools": [{"type": "function", "function": {"name": "a"}}]}, "function"),
    ],
)
def test_requests_that_are_refused(change: dict[str, Any], words: str) -> None:
    """Fields that are wrong, or of the other protocol."""
    complaint = complaint_about_responses({"model": "m", "stream": True, "store": False, "input": [USER], **change})
    assert complaint is not None
    assert words in complaint
