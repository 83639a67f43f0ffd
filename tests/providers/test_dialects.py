"""What single servers want differently: addresses, keys, ids, orders, and their reasoning given back as it came."""

from typing import Any

import pytest

from tests.platforms.model_asking import (
    MODEL,
    Settings,
    ask,
    assistant,
    called,
    opened,
    provider_on,
    question,
    tool,
    user,
)
from tests.platforms.model_script import Plays, says
from tests.platforms.model_server import ModelServer
from tests.providers.test_cases import FOLDER
from zerobot.core.model import ModelRequest
from zerobot.providers import openai
from zerobot.providers.address import below, host_of, key_headers
from zerobot.providers.openai_dialects import dialect_of
from zerobot.providers.openai_encode import encode

MISTRAL = "https://api.mistral.ai/v1"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai"
AZURE = "https://mine.openai.azure.com/openai/deployments/gpt-4o?api-version=2024-10-21"
ROUND = assistant("", called("a", "call_1"), called("b", "call_2", position=1))


def body_for(base_url: str, request: ModelRequest) -> dict[str, Any]:
    """What would be sent to the server at an address."""
    return encode(request, "main", dialect_of(base_url))


@pytest.mark.parametrize(
    ("base_url", "field"),
    [
        ("https://api.openai.com/v1", "max_completion_tokens"),
        (AZURE, "max_completion_tokens"),
        (MISTRAL, "max_tokens"),
        ("http://127.0.0.1:1234/v1", "max_tokens"),
        ("https://evil.example/api.openai.com", "max_tokens"),
    ],
)
def test_the_limit_has_the_name_that_the_server_knows(base_url: str, field: str) -> None:
    """The vendor's newer models refuse the old name, other servers the new one."""
    request = ModelRequest(model=MODEL, system="", messages=[user("Hi")], max_output_tokens=20)
    body = body_for(base_url, request)
    assert {key for key in body if key.startswith("max")} == {field}


def test_a_query_stays_at_the_end_of_the_address() -> None:
    """Azure's older addresses name the version of the API there."""
    assert below(AZURE, "chat/completions") == (
        "https://mine.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21"
    )
    assert below("http://h/v1/", "models") == "http://h/v1/models"
    assert below("http://[broken", "models") == "http://[broken/models"
    assert host_of("http://[broken") == ""


def test_azure_takes_its_key_in_another_header() -> None:
    """As a bearer it would be read as a token of the directory; without a key there is no header."""
    assert key_headers(AZURE, "k") == {"api-key": "k"}
    assert key_headers(MISTRAL, "k") == {"authorization": "Bearer k"}
    assert key_headers("http://localhost/v1", "") == {}


async def test_a_base_url_with_a_query_is_asked() -> None:
    """The whole way: path and query arrive."""
    async with ModelServer() as server:
        server.answers(says("Hello"))
        async with opened(openai.KIND, Settings(base_url=f"{server.openai_url}?api-version=1")) as provider:
            assert (await ask(provider, question("Hi"))).answer.text == "Hello"


def test_mistral_is_asked_in_its_way() -> None:
    """No unknown option, ids of nine characters that pair up, words of the model between results and people."""
    body = body_for(MISTRAL, question("go", ROUND, user("faster"), tools=[tool("a")]))
    assert "stream_options" not in body
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "user"]
    ids = [call["id"] for call in body["messages"][2]["tool_calls"]]
    assert ids == [message["tool_call_id"] for message in body["messages"][3:5]]
    assert len(set(ids)) == 2
    assert all(len(each) == 9 and each.isalnum() for each in ids)
    assert body == body_for(MISTRAL, question("go", ROUND, user("faster"), tools=[tool("a")]))


def test_mistrals_own_ids_stay() -> None:
    """An id that fits is not changed."""
    body = body_for(MISTRAL, question("go", assistant("", called("a", "D681PevKs"))))
    assert body["messages"][2]["tool_calls"][0]["id"] == "D681PevKs"


@pytest.mark.parametrize(
    ("base_url", "model", "signed"),
    [
        (GEMINI, "gemini-3-pro-preview", [True, False]),
        (GEMINI, "gemini-2.5-flash", [False, False]),
        ("https://openrouter.ai/api/v1", "google/gemini-3-pro-preview", [False, False]),
    ],
)
def test_calls_of_another_model_are_signed_for_gemini(base_url: str, model: str, signed: list[bool]) -> None:
    """Newer models refuse an unsigned call; the vendor names a sign for calls that it did not make."""
    body = body_for(base_url, question("go", ROUND, model=model))
    calls = body["messages"][2]["tool_calls"]
    assert ["extra_content" in call for call in calls] == signed


def test_a_signature_that_came_is_not_replaced() -> None:
    """The first call has none then, and needs none."""
    extra = {"google": {"thought_signature": "abc"}}
    block = {"provider": "main", "type": "call_extra", "position": 1, "extra": extra}
    back = assistant("", *ROUND.calls, reasoning=(block,))
    body = body_for(GEMINI, question("go", back, model="gemini-3-pro-preview"))
    calls = body["messages"][2]["tool_calls"]
    assert [call.get("extra_content") for call in calls] == [None, extra]


async def given_back(case: str) -> dict[str, Any]:
    """Play a recording of a call with reasoning, and return the message in which it goes back."""
    raw = (FOLDER / f"{case}.sse").read_bytes()
    async with ModelServer() as server, provider_on(server, "openai") as provider:
        server.answers(Plays(pieces=(raw,)), says("Fine."))
        answer = (await ask(provider, question("go", tools=[tool("a")]))).answer
        back = assistant(answer.text, called("a", "c1"), reasoning=answer.reasoning)
        await ask(provider, question("go", back, tools=[tool("a")]))
        message: dict[str, Any] = server.last_request.body["messages"][-2]
        return message


async def test_signed_reasoning_goes_back_whole() -> None:
    """Pieces of a block are joined, its signature and the encrypted block unchanged (OpenRouter)."""
    message = await given_back("own-openrouter-details")
    assert message["reasoning_details"] == [
        {
            "type": "reasoning.text",
            "text": "Let me think.",
            "format": "anthropic-claude-v1",
            "index": 0,
            "signature": "sig==",
        },
        {"type": "reasoning.encrypted", "data": "ZW5j", "id": "rs_1", "format": "openai-responses-v1", "index": 1},
    ]
    assert "reasoning" not in message


async def test_reasoning_as_text_goes_back_in_its_field() -> None:
    """By the name that this server used (DeepSeek)."""
    assert (await given_back("dd03-deepseek-reasoning-tool"))["reasoning_content"] == "Need a tool."


def test_reasoning_in_parts_goes_back_in_parts() -> None:
    """Before the text, in the content (Mistral)."""
    block = {"provider": "main", "type": "thinking", "text": "Hm."}
    body = body_for(MISTRAL, question("go", assistant("Look:", called("a", "c1"), reasoning=(block,))))
    assert body["messages"][2]["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": "Look:"},
    ]
