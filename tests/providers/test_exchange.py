"""What a provider does about time, broken connections and servers that are no model API."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncGenerator
from typing import cast

import pytest

from tests.platforms.model_asking import KINDS, Settings, ask, opened, provider_on, question, url_of
from tests.platforms.model_script import (
    Plays,
    breaks_with,
    calls,
    calls_raw,
    drops,
    holds,
    says,
    status,
    stays_open,
)
from tests.platforms.model_server import KEY, ModelServer
from tests.providers.test_cases import CASES
from zerobot.core.errors import CredentialError, ProviderError
from zerobot.core.model import Alive, Finish, ModelEvent, TextDelta
from zerobot.core.usage import Usage

every_kind = pytest.mark.parametrize("kind", sorted(KINDS))


@every_kind
async def test_text_streams_and_the_answer_is_whole(kind: str) -> None:
    """Each delta comes by itself, then the answer with its stop reason and its tokens."""
    async with ModelServer() as server, provider_on(server, kind) as provider:
        server.answers(says("Hello dear world", usage=(20, 3)))
        asked = await ask(provider, question("Hi"))
    assert asked.answer.text == "Hello dear world"
    assert asked.answer.finish is Finish.STOP
    assert asked.answer.usage == Usage(input_tokens=20, output_tokens=3)
    assert [event.text for event in asked.events if isinstance(event, TextDelta)] == ["Hello ", "dear ", "world"]


@every_kind
async def test_parallel_calls_come_in_order_with_their_arguments(kind: str) -> None:
    """Two calls and some text are one answer, and the arguments are the model's own text."""
    async with ModelServer() as server, provider_on(server, kind) as provider:
        server.answers(says("Let me see.") + calls("a", id="c1", x="ü") + calls("b", id="c2"))
        answer = (await ask(provider, question("Hi"))).answer
    assert answer.text == "Let me see."
    assert [(call.provider_id, call.name, call.raw_arguments) for call in answer.calls] == [
        ("c1", "a", '{"x": "ü"}'),
        ("c2", "b", "{}"),
    ]
    assert answer.finish is Finish.TOOL


@every_kind
async def test_cut_arguments_stay_as_they_came(kind: str) -> None:
    """Nobody mends broken JSON: whether it may run is for the engine to see."""
    async with ModelServer() as server, provider_on(server, kind) as provider:
        server.answers(calls_raw("write_file", '{"path": "a', finish="length"))
        answer = (await ask(provider, question("Hi"))).answer
    assert answer.calls[0].raw_arguments == '{"path": "a'
    assert answer.finish is Finish.LENGTH


@every_kind
async def test_reasoning_is_kept_and_not_shown(kind: str) -> None:
    """Reasoning is a sign of life for people and a block for the provider, never text."""
    async with ModelServer() as server, provider_on(server, kind) as provider:
        server.answers(says("Hi", reasoning="secret plan"))
        asked = await ask(provider, question("Hi"))
    assert asked.answer.text == "Hi"
    assert any(isinstance(event, Alive) for event in asked.events)
    assert "secret plan" in str(asked.answer.reasoning)
    assert all(block["provider"] == "main" for block in asked.answer.reasoning)


@every_kind
async def test_a_broken_connection_is_no_answer(kind: str) -> None:
    """What came until then was shown; the error says that the same request may be sent again."""
    async with ModelServer() as server, provider_on(server, kind) as provider:
        server.answers(drops("Hel"), drops())
        for shown in ("Hel", ""):
            asked = await ask(provider, question("Hi"))
            assert asked.shown == shown
            assert asked.error is not None
            assert (asked.error.code, asked.error.retryable) == ("stream_broken", True)


async def test_a_broken_attempt_is_metered() -> None:
    """What the provider had counted before the connection broke is known."""
    async with ModelServer() as server, provider_on(server, "anthropic") as provider:
        server.answers(drops("Hel") + says("", usage=(70, 9)))
        asked = await ask(provider, question("Hi"))
    assert asked.error is not None
    assert asked.metered == Usage(input_tokens=70, output_tokens=1)


@every_kind
async def test_an_error_inside_the_stream_is_an_error(kind: str) -> None:
    """A success in the status line does not make the rest one."""
    async with ModelServer() as server, provider_on(server, kind) as provider:
        server.answers(breaks_with({"type": "overloaded_error", "message": "Overloaded"}, text="Hel"))
        asked = await ask(provider, question("Hi"))
    assert asked.shown == "Hel"
    assert asked.error is not None
    assert (asked.error.code, asked.error.retryable) == ("overloaded", True)


@every_kind
async def test_a_silent_server_is_given_up(kind: str) -> None:
    """After the idle limit without a byte, before the first word and after it."""
    async with ModelServer() as server, provider_on(server, kind, idle_timeout=0.05) as provider:
        server.answers(holds(says("Hello"), after=0), holds(says("Hello world"), after=1))
        for shown in ("", "Hello "):
            asked = await ask(provider, question("Hi"))
            assert asked.shown == shown
            assert asked.error is not None
            assert (asked.error.code, asked.error.retryable) == ("idle_timeout", True)


@pytest.mark.parametrize(("kind", "case"), [("openai", "oc01"), ("anthropic", "an01"), ("openai_responses", "or01")])
async def test_a_slow_trickle_is_no_silence(kind: str, case: str) -> None:
    """BAR 5a: each byte begins the idle limit anew, so that an answer may take far longer than that in all."""
    raw = next(each.raw for each in CASES if each.id.startswith(case))
    size = len(raw) // 8
    pieces = tuple(raw[at : at + size] for at in range(0, len(raw), size))
    async with ModelServer() as server, provider_on(server, kind, idle_timeout=0.8) as provider:
        server.answers(Plays(pieces=pieces, pause=0.12))
        asked = await ask(provider, question("Hi"))
    assert asked.answer.text == asked.shown != ""


async def test_silence_before_the_headers_counts_too() -> None:
    """A server that accepts and then says nothing is as silent as any other."""
    async with ModelServer() as server, provider_on(server, "openai", idle_timeout=0.05) as provider:
        server.answers(Plays(pieces=(), hold_before_headers=True))
        asked = await ask(provider, question("Hi"))
    assert asked.error is not None
    assert asked.error.code == "idle_timeout"


@every_kind
async def test_the_answer_comes_at_the_protocols_end(kind: str) -> None:
    """A server that then keeps the connection open, or says more, changes nothing."""
    async with ModelServer() as server, provider_on(server, kind) as provider:
        server.answers(stays_open(says("Hello")))
        asked = await ask(provider, question("Hi"))
        await server.until_hung_up(server.last_request)
    assert asked.answer.text == "Hello"


async def test_a_stop_reason_is_as_good_as_the_end_marker() -> None:
    """Chat Completions servers forget `[DONE]`; whether they then close or not, the answer is whole."""
    stopped = b'data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}\n\n'
    async with ModelServer() as server, provider_on(server, "openai", idle_timeout=0.05) as provider:
        server.answers(Plays(pieces=(stopped,)), Plays(pieces=(stopped,), hold_after=1))
        for _ in range(2):
            asked = await ask(provider, question("Hi"))
            assert asked.answer.text == "Hello"
            assert asked.answer.finish is Finish.STOP


async def test_an_end_marker_that_is_cut_costs_nothing() -> None:
    """The model had stopped by itself; only the courtesy is broken."""
    stopped = b'data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}\n\ndata: [DO'
    async with ModelServer() as server, provider_on(server, "openai") as provider:
        server.answers(Plays(pieces=(stopped,)))
        assert (await ask(provider, question("Hi"))).answer.text == "Hello"


@every_kind
async def test_closing_the_iterator_ends_the_request(kind: str) -> None:
    """Who stops listening also stops the server's work."""
    async with ModelServer() as server, provider_on(server, kind) as provider:
        server.answers(holds(says("Hello world"), after=1))
        stream = cast("AsyncGenerator[ModelEvent, None]", provider.stream(question("Hi")))
        async with contextlib.aclosing(stream) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
            await server.until_holding()
        await server.until_hung_up(server.last_request)


@every_kind
async def test_a_cancelled_listener_ends_the_request(kind: str) -> None:
    """A stopped turn leaves no connection behind."""
    async with ModelServer() as server, provider_on(server, kind) as provider:
        server.answers(holds(says("Hello world"), after=1))
        async with asyncio.TaskGroup() as group:
            listener = group.create_task(ask(provider, question("Hi")))
            await server.until_holding()
            listener.cancel()
        assert listener.cancelled()
        await server.until_hung_up(server.last_request)


@every_kind
async def test_the_connection_is_used_again(kind: str) -> None:
    """Steps of a turn follow each other quickly; each with a new handshake would be slow."""
    async with ModelServer() as server, provider_on(server, kind) as provider:
        server.answers(*(says("Hello") for _ in range(3)))
        for _ in range(3):
            assert (await ask(provider, question("Hi"))).answer.text == "Hello"
        assert server.connections == 1


@every_kind
async def test_a_server_that_is_not_there(kind: str) -> None:
    """Nobody listens: that may pass."""
    async with ModelServer() as server:
        url = url_of(server, kind)
    async with opened(KINDS[kind], Settings(base_url=url)) as provider:
        asked = await ask(provider, question("Hi"))
    assert asked.error is not None
    assert (asked.error.code, asked.error.retryable) == ("connect_failed", True)


@every_kind
@pytest.mark.parametrize("url", ["ftp://example.com", "no url", "http://127.0.0.1:port"])
async def test_an_address_that_is_none(kind: str, url: str) -> None:
    """The error names the key, and trying again would be of no use."""
    async with opened(KINDS[kind], Settings(base_url=url)) as provider:
        asked = await ask(provider, question("Hi"))
    assert asked.error is not None
    assert (asked.error.code, asked.error.retryable) == ("bad_url", False)
    assert "[providers.main] base_url" in str(asked.error)


@every_kind
async def test_a_web_page_instead_of_an_answer(kind: str) -> None:
    """A wrong `base_url` often leads to some web site that is happy to answer with 200."""
    async with ModelServer() as server, provider_on(server, kind) as provider:
        server.answers(Plays(pieces=(b"<html>Hi</html>",), content_type="text/html; charset=utf-8"))
        asked = await ask(provider, question("Hi"))
    assert asked.error is not None
    assert "base_url" in str(asked.error)


@every_kind
async def test_a_redirect_is_not_followed(kind: str) -> None:
    """The key goes where the configuration says and nowhere else."""
    async with ModelServer() as server, provider_on(server, kind) as provider:
        server.answers(status(307, headers={"location": "http://127.0.0.1:9/"}))
        asked = await ask(provider, question("Hi"))
    assert asked.error is not None
    assert "base_url redirects" in str(asked.error)


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "text/event-stream"])
async def test_the_content_type_is_not_believed(content_type: str) -> None:
    """A stream is a stream and a document is a document, whatever a proxy calls them."""
    stream = b'data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    document = b' {"choices":[{"index":0,"message":{"content":"Hello"},"finish_reason":"stop"}]}'
    async with ModelServer() as server, provider_on(server, "openai") as provider:
        for body in (stream, document):
            server.answers(Plays(pieces=(body[:1], body[1:]), content_type=content_type))
            assert (await ask(provider, question("Hi"))).answer.text == "Hello"


async def test_a_messages_answer_that_does_not_stream() -> None:
    """A proxy that ignores `stream` still gives an answer."""
    body = (
        b'{"type":"message","role":"assistant","content":[{"type":"text","text":"Hello"},'
        b'{"type":"tool_use","id":"c1","name":"a","input":{"x":1}}],"stop_reason":"tool_use",'
        b'"usage":{"input_tokens":5,"output_tokens":2,"cache_read_input_tokens":100}}'
    )
    async with ModelServer() as server, provider_on(server, "anthropic") as provider:
        server.answers(Plays(pieces=(body,), content_type="application/json"))
        answer = (await ask(provider, question("Hi"))).answer
    assert (answer.text, answer.calls[0].raw_arguments, answer.finish) == ("Hello", '{"x": 1}', Finish.TOOL)
    assert answer.usage == Usage(input_tokens=105, output_tokens=2, cache_read_tokens=100)


async def test_an_endless_line_is_refused() -> None:
    """A server cannot fill our memory."""
    async with ModelServer() as server, provider_on(server, "openai") as provider:
        server.answers(Plays(pieces=tuple(b"x" * 1024 * 1024 for _ in range(12))))
        asked = await ask(provider, question("Hi"))
    assert asked.error is not None
    assert (asked.error.code, asked.error.retryable) == ("stream_limit", False)


@every_kind
async def test_check_finds_the_model_in_the_list(kind: str) -> None:
    """A listed model costs no question."""
    async with ModelServer() as server, provider_on(server, kind) as provider:
        assert "m-1 is available" in await provider.check("m-1")
        assert server.requests == []


@every_kind
async def test_check_asks_a_model_that_is_not_listed(kind: str) -> None:
    """An alias is in no list, so the proof is an answer; a model that nobody knows is an error."""
    async with ModelServer(aliases=("m-latest",), refusals_fail=False) as server, provider_on(server, kind) as provider:
        server.answers(says("OK"))
        assert "m-latest answers" in await provider.check("m-latest")
        with pytest.raises(ProviderError, match="nonsense"):
            await provider.check("nonsense")


@every_kind
async def test_check_says_that_the_key_is_refused(kind: str) -> None:
    """The error names the setting and not the key."""
    async with ModelServer(key="another") as server, provider_on(server, kind) as provider:
        with pytest.raises(CredentialError, match=r"\[providers.main\] api_key") as caught:
            await provider.check("m-1")
    assert KEY not in str(caught.value)


@every_kind
async def test_a_refused_key_is_not_repeated(kind: str) -> None:
    """Not even when the server quotes it."""
    async with ModelServer(key="another", refusals_fail=False) as server, provider_on(server, kind) as provider:
        asked = await ask(provider, question("Hi"))
    assert isinstance(asked.error, CredentialError)
    assert KEY not in str(asked.error)


@every_kind
@pytest.mark.parametrize("key", ["sk-ü", "sk-abc\n", "sk\r\nx: y"])
async def test_a_key_that_is_none(kind: str, key: str) -> None:
    """A slip of the clipboard is told with the setting's name, and not shown."""
    async with ModelServer() as server:
        url = url_of(server, kind)
        async with opened(KINDS[kind], Settings(base_url=url, key=key)) as provider:
            asked = await ask(provider, question("Hi"))
    assert isinstance(asked.error, CredentialError)
    assert "[providers.main] api_key" in str(asked.error)
    assert key not in str(asked.error)


@every_kind
async def test_a_limit_says_how_long_to_wait(kind: str) -> None:
    """`Retry-After` reaches the engine, which does the waiting: the provider asks once."""
    async with ModelServer() as server, provider_on(server, kind) as provider:
        server.answers(status(429, retry_after=2))
        asked = await ask(provider, question("Hi"))
        assert len(server.requests) == 1
    assert asked.error is not None
    assert (asked.error.code, asked.error.retryable, asked.error.retry_after) == ("rate_limited", True, 2.0)


def test_reading_a_kind_does_not_load_the_http_client() -> None:
    """`zerobot config check` reads kinds only, and should start quickly."""
    code = (
        "import sys; from zerobot.providers import anthropic, demo, openai, openai_responses; "
        "sys.exit(any(name in sys.modules for name in ('httpx', 'asyncio.events', 'pydantic')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
