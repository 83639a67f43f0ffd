"""The strict model server itself: what it lets pass and what it refuses."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import pytest

from tests.platforms.model_asking import ask, provider_on, question
from tests.platforms.model_images import PNG, picture
from tests.platforms.model_script import holds, says
from tests.platforms.model_server import KEY, ModelServer
from tests.platforms.model_strict import complaint_about_chat, complaint_about_messages
from tests.platforms.model_strict_responses import complaint_about_responses

USER = {"role": "user", "content": "Hi"}
SYSTEM = {"role": "system", "content": "Be brief."}
CALL = {"id": "c1", "type": "function", "function": {"name": "a", "arguments": "{}"}}
CALLS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "x"}
HELLO = {"role": "assistant", "content": "Hello"}


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([USER, RESULT], "must be a response to a preceeding message"),
        ([USER, CALLS], "did not have response messages: c1"),
        ([USER, CALLS, USER], "did not have response messages: c1"),
        ([USER, CALLS, RESULT, RESULT], "must be a response to a preceeding message"),
        ([USER, CALLS, RESULT, CALLS, RESULT], "Duplicate value"),
        ([USER, {**CALLS, "tool_calls": [CALL, CALL]}, RESULT, RESULT], "Duplicate value"),
        ([SYSTEM, HELLO, USER], "first message"),
        ([USER, {"role": "assistant", "content": ""}, USER], "content or tool_calls must be set"),
        ([USER, HELLO, HELLO, USER], "alternate"),
        ([USER, HELLO], "last role"),
        ([USER, SYSTEM, USER], "must come first"),
        ([{"role": "user", "content": " "}], "must not be empty"),
        ([USER, CALLS, {**RESULT, "content": None}], "expected a string"),
        ([USER, {**CALLS, "tool_calls": [{**CALL, "id": "x" * 41}]}], "string too long"),
        ([USER, {**CALLS, "tool_calls": [{**CALL, "function": {"name": "a b", "arguments": "{}"}}]}], "pattern"),
        ([USER, {**CALLS, "tool_calls": [{**CALL, "function": {"name": "a", "arguments": "{"}}]}], "not a JSON object"),
        ([], "at least one message"),
        ([SYSTEM], "at least one user message"),
    ],
)
def test_chat_histories_that_are_refused(messages: Sequence[Mapping[str, Any]], words: str) -> None:
    """Each in about the words of the real servers."""
    complaint = complaint_about_chat({"model": "m", "stream": True, "messages": messages})
    assert complaint is not None
    assert words in complaint


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tools": []}, "too short"),
        ({"model": ""}, "model"),
        ({"stream": False}, "streams"),
        ({"surprise": 1}, "not permitted"),
        ({"max_tokens": 0}, "at least 1"),
        ({"tools": [{"type": "function", "function": {"name": "a", "parameters": {}}}]}, "JSON Schema"),
        ({"tools": [{"type": "function", "function": {"name": "a b", "parameters": {"type": "object"}}}]}, "pattern"),
    ],
)
def test_chat_requests_that_are_refused(change: Mapping[str, Any], words: str) -> None:
    """Fields that are wrong, or not known."""
    complaint = complaint_about_chat({"model": "m", "stream": True, "messages": [USER], **change})
    assert complaint is not None
    assert words in complaint


def text(role: str, words: str) -> dict[str, Any]:
    """A message of Messages with text."""
    return {"role": role, "content": [{"type": "text", "text": words}]}


USE = {"type": "tool_use", "id": "c1", "name": "a", "input": {}}
USES = {"role": "assistant", "content": [USE]}
GIVES_BLOCK = {"type": "tool_result", "tool_use_id": "c1", "content": "x"}
GIVES = {"role": "user", "content": [GIVES_BLOCK]}


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([GIVES], "unexpected `tool_use_id`"),
        ([text("user", "Hi"), USES], "without `tool_result` blocks"),
        ([text("user", "Hi"), USES, text("user", "x")], "without `tool_result` blocks"),
        ([text("user", "Hi"), USES, {"role": "user", "content": [GIVES_BLOCK, GIVES_BLOCK]}], "single result"),
        ([text("user", "Hi"), USES, GIVES, USES, GIVES], "unique"),
        (
            [text("user", "Hi"), USES, {"role": "user", "content": [{"type": "text", "text": "x"}, GIVES_BLOCK]}],
            "must come before",
        ),
        ([text("assistant", "Hi"), text("user", "Hi")], "first message"),
        ([text("user", "Hi"), text("user", "Hi")], "alternate"),
        ([text("user", "Hi"), text("assistant", "Hi")], "prefill"),
        ([text("user", "")], "non-empty"),
        ([text("user", " ")], "non-whitespace"),
        ([{"role": "user", "content": []}], "non-empty content"),
        ([text("system", "x")], "Input should be"),
        (
            [
                text("user", "Hi"),
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "forged"}, USE]},
                GIVES,
            ],
            "Invalid `signature`",
        ),
        ([text("user", "Hi"), {"role": "assistant", "content": [{**USE, "id": "a.b"}]}], "pattern"),
        ([text("user", "Hi"), {"role": "assistant", "content": [{**USE, "input": "{}"}]}], "valid dictionary"),
    ],
)
def test_messages_histories_that_are_refused(messages: Sequence[Mapping[str, Any]], words: str) -> None:
    """Each in about the words of the real API."""
    tools = [{"name": "a", "input_schema": {"type": "object"}}]
    body = {"model": "m", "stream": True, "max_tokens": 10, "tools": tools, "messages": messages}
    complaint = complaint_about_messages(body)
    assert complaint is not None
    assert words in complaint


def test_messages_requests_that_are_refused() -> None:
    """A limit is demanded, and tools where the history has calls."""
    history = [text("user", "Hi"), USES, GIVES]
    assert "max_tokens" in str(complaint_about_messages({"model": "m", "stream": True, "messages": history}))
    body = {"model": "m", "stream": True, "max_tokens": 1, "messages": history}
    assert "must define tools" in str(complaint_about_messages(body))


async def ask_without_a_script() -> None:
    async with ModelServer() as server, provider_on(server, "openai") as provider:
        asked = await ask(provider, question("Hi"))
        assert asked.error is not None
        assert asked.error.status == 500


async def test_a_request_without_an_answer_fails_the_test() -> None:
    """The script at its end is status 500 for the asker and an assertion for the test."""
    with pytest.raises(AssertionError, match="no answer in the script for: 'Hi'"):
        await ask_without_a_script()


async def send_an_orphaned_result() -> None:
    body = {"model": "m-1", "stream": True, "messages": [USER, RESULT]}
    headers = {"authorization": f"Bearer {KEY}"}
    async with ModelServer() as server, httpx.AsyncClient() as http:
        response = await http.post(f"{server.openai_url}/chat/completions", json=body, headers=headers)
        assert response.status_code == 400


async def test_a_refused_request_fails_the_test() -> None:
    """Unless the test is about refusals; the asker gets status 400."""
    with pytest.raises(AssertionError, match="preceeding"):
        await send_an_orphaned_result()


async def test_scripts_by_text_serve_conversations_that_run_at_once() -> None:
    """The newest words choose the script; without one the common script answers, then the fallback."""
    async with ModelServer() as server, provider_on(server, "openai") as provider:
        server.answers(says("first"))
        server.when("weather", says("sunny"))
        server.always(says("again"))
        texts = [(await ask(provider, question(said))).answer.text for said in ("the weather?", "Hi", "Hi")]
    assert texts == ["sunny", "first", "again"]


async def test_a_held_answer_goes_on_when_it_is_released() -> None:
    """The test decides when, without any time."""
    async with ModelServer() as server, provider_on(server, "openai") as provider:
        server.answers(holds(says("Hello world"), after=1))
        stream = provider.stream(question("Hi"))
        first = await anext(stream)
        await server.until_holding()
        server.release()
        rest = [event async for event in stream]
    assert first != rest[-1]
    assert getattr(rest[-1], "text", "") == "Hello world"


URL = "data:image/png;base64," + base64.b64encode(PNG).decode()
SOURCE = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"type": "image_url", "image_url": {"url": URL}}, None),
        ({"type": "text", "text": "x"}, None),
        ({"type": "text", "text": " "}, "must not be empty"),
        ({"type": "image", "source": SOURCE}, "Supported values are"),
        ({"type": "image_url", "image_url": URL}, "expected an object"),
        ({"type": "image_url", "image_url": {"url": URL, "mime": "x"}}, "Unknown parameter"),
        ({"type": "image_url", "image_url": {"url": URL[:-1]}}, "base64-encoded data URL"),
        ({"type": "image_url", "image_url": {"url": URL.replace("png", "bmp")}}, "unsupported image"),
        ({"type": "image_url", "image_url": {"url": URL.replace("png", "jpeg")}}, "unsupported image"),
        ({"type": "image_url", "image_url": {"url": "in/cat.png"}}, "base64-encoded data URL"),
    ],
)
def test_pictures_in_chat_messages(part: Mapping[str, Any], words: str | None) -> None:
    """A data URL in a part of a person's message, of a type that its bytes are of."""
    message = {"role": "user", "content": [part]}
    complaint = complaint_about_chat({"model": "m", "stream": True, "messages": [message]})
    assert complaint == words or (complaint and words and words in complaint)
    said = {"role": "assistant", "content": [part]}
    assert complaint_about_chat({"model": "m", "stream": True, "messages": [USER, said, USER]})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        ({"detail": "huge"}, "Supported values are"),
        ({"image_url": {"url": URL}}, "expected a string"),
        ({"image_url": URL + "!"}, "base64-encoded data URL"),
        ({"text": "x"}, "Unknown parameter"),
    ],
)
def test_pictures_in_responses_messages(change: Mapping[str, Any], words: str | None) -> None:
    """The URL stands in the part itself."""
    part = {"type": "input_image", "detail": "auto", "image_url": URL, **change}
    body = {"model": "m", "stream": True, "store": False}
    complaint = complaint_about_responses({**body, "input": [{"role": "user", "content": [part]}]})
    assert complaint == words or (complaint and words and words in complaint)
    assert complaint_about_responses({**body, "input": [{"role": "assistant", "content": [part]}]})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        ({"type": "url"}, "base64 only"),
        ({"media_type": "image/bmp"}, "Input should be"),
        ({"media_type": "image/gif"}, "does not match the provided media type"),
        ({"data": ""}, "image cannot be empty"),
        ({"data": "a b"}, "invalid base64"),
        ({"data": base64.b64encode(picture(1, 4_000_000)).decode()}, "image exceeds 5 MB maximum"),
    ],
)
def test_pictures_in_messages(change: Mapping[str, Any], words: str | None) -> None:
    """A block with a source, in a person's message."""
    block = {"type": "image", "source": {**SOURCE, **change}}
    body = {"model": "m", "stream": True, "max_tokens": 9}
    complaint = complaint_about_messages({**body, "messages": [{"role": "user", "content": [block]}]})
    assert complaint == words or (complaint and words and words in complaint)
    hello = {"role": "user", "content": [{"type": "text", "text": "x"}]}
    said = {"role": "assistant", "content": [block]}
    assert complaint_about_messages({**body, "messages": [hello, said, hello]})
