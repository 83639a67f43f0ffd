"""Recorded streams of all protocols, of their dialects, and refusals, each with the answers that count as right."""

import json
import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.platforms.model_asking import KINDS, Asked, Settings, ask, provider_on, question
from tests.platforms.model_script import Plays
from tests.platforms.model_server import ModelServer
from zerobot.core.log import silent
from zerobot.core.model import Finish, ModelCall, TextDelta
from zerobot.core.provider_kind import ProviderServices
from zerobot.testing.clock import ManualClock

FOLDER = Path(__file__).parent.parent / "cases" / "sse"
ERROR_CLASSES = {
    "rate_limited": "rate_limit",
    "quota": "billing",
    "auth": "auth",
    "context_overflow": "context_length",
    "overloaded": "overloaded",
    "server_error": "server",
    "stream_broken": "truncated",
    "malformed": "malformed",
    "filtered": "filter",
    "bad_request": "bad_request",
    "history_rejected": "bad_request",
}
STOPS = {Finish.LENGTH: "length", Finish.FILTER: "filter", Finish.PAUSE: "pause", Finish.OTHER: "other"}
CHAT_STOP = re.compile(rb'"finish_reason": ?"')
EVENT_END = re.compile(rb"(?:\r\n\r\n|\n\n|\r\r)")


@dataclass(frozen=True, slots=True)
class Case:
    """A recording and what it means."""

    id: str
    raw: bytes
    want: dict[str, Any]

    @property
    def kind(self) -> str:
        """Which provider reads it."""
        return {"openai-chat": "openai", "openai-responses": "openai_responses"}.get(self.want["api"], "anthropic")


def load() -> list[Case]:
    """All recordings, by name."""
    return [
        Case(path.stem, path.with_suffix(".sse").read_bytes(), json.loads(path.read_text(encoding="utf-8")))
        for path in sorted(FOLDER.glob("*.json"))
    ]


CASES = load()
STREAMS = [case for case in CASES if "http" not in case.want]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
every_stream = pytest.mark.parametrize("case", STREAMS, ids=lambda case: case.id)


class Pieces(httpx.AsyncByteStream):
    """A body that arrives in given pieces."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


class Recorded(httpx.AsyncBaseTransport):
    """A server that answers every request with the same body."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(
            200, headers={"content-type": "text/event-stream"}, stream=Pieces(self._pieces), request=request
        )


async def play(case: Case, pieces: Iterable[bytes]) -> Asked:
    """Give the provider the recording in pieces, without a network, so that single bytes are affordable."""
    async with httpx.AsyncClient(transport=Recorded(pieces)) as http:
        services = ProviderServices(http=lambda: http, clock=ManualClock(), log=silent)
        return await ask(KINDS[case.kind].open("main", Settings(), services), question("Hi"))


def arguments_of(call: ModelCall) -> object:
    """The arguments as JSON, or as the text that is none; no text stands for no arguments."""
    try:
        return json.loads(call.raw_arguments or "{}")
    except ValueError:
        return call.raw_arguments


def meaning(asked: Asked) -> dict[str, Any]:
    """Say what came in the words of the cases."""
    if asked.error is not None:
        return {"text": asked.shown, "error": ERROR_CLASSES[asked.error.code], "stop": None}
    answer = asked.answer
    runs = answer.calls if answer.finish in {Finish.STOP, Finish.TOOL, Finish.NONE} else ()
    texts = [str(block.get("text", block.get("thinking", ""))) for block in answer.reasoning]
    for block in answer.reasoning:
        item: Any = block.get("item", {})
        texts += [part["text"] for part in item.get("summary", [])]
    return {
        "text": answer.text,
        "reasoning": "".join(texts),
        "tool_calls": [{"id": call.provider_id, "name": call.name, "arguments": arguments_of(call)} for call in runs],
        "stop": STOPS.get(answer.finish, "tools" if runs else "end"),
        "error": None,
    }


def complaints(case: Case, asked: Asked) -> list[str]:
    """Compare what came with what is right; `_any` lists several right answers."""
    got, bad = meaning(asked), []
    for key in ("text", "reasoning", "stop", "error"):
        right = case.want.get(f"{key}_any", [case.want[key]] if key in case.want else None)
        if key == "reasoning" and asked.error is not None:
            continue
        if right is not None and (got.get(key) or None) not in [value or None for value in right]:
            bad.append(f"{key}: {got.get(key)!r} is none of {right!r}")
    if asked.error is None:
        bad += [*call_complaints(case, got["tool_calls"]), *usage_complaints(case, asked)]
    elif asked.error.retryable != case.want.get("retryable", asked.error.retryable):
        bad.append(f"retryable: {asked.error.retryable}")
    return bad


def call_complaints(case: Case, calls: list[dict[str, Any]]) -> Iterable[str]:
    """Compare names and arguments, and ids where the case has them (the engine mints its own)."""
    right = case.want.get("tool_calls_any", [case.want.get("tool_calls", [])])

    def fits(wanted: list[dict[str, Any]]) -> bool:
        return len(wanted) == len(calls) and all(
            all(call[key] == value for key, value in want.items()) for want, call in zip(wanted, calls, strict=True)
        )

    if not any(fits(wanted or []) for wanted in right):
        yield f"calls: {calls!r} is none of {right!r}"


def usage_complaints(case: Case, asked: Asked) -> Iterable[str]:
    """Compare the tokens; the last running total is the answer's."""
    usage = asked.answer.usage
    if asked.metered != usage:
        yield f"running total {asked.metered!r} is not {usage!r}"
    names = {"input": "input_tokens", "output": "output_tokens", "cached": "cache_read_tokens"}
    for key, value in (case.want.get("usage") or {}).items():
        if key in names and getattr(usage, names[key], None) != value:
            yield f"usage {key}: {usage!r}, not {value}"


@every_case
async def test_a_recording_played_whole(case: Case) -> None:
    """Over a real connection each recording means what its case says, HTTP status and headers included."""
    http = case.want.get("http", {})
    plays = Plays(
        pieces=(case.raw,),
        status=http.get("status", 200),
        content_type=http.get("content_type", "text/event-stream"),
        headers=http.get("headers", {}),
    )
    async with ModelServer() as server, provider_on(server, case.kind) as provider:
        server.answers(plays)
        asked = await ask(provider, question("Hi"))
    assert complaints(case, asked) == []
    if "retry_after" in case.want:
        assert asked.error is not None
        assert asked.error.retry_after == case.want["retry_after"]
    if "keep_signature" in case.want:
        assert [block["signature"] for block in asked.answer.reasoning] == [case.want["keep_signature"]]


@every_stream
async def test_a_recording_played_byte_by_byte(case: Case) -> None:
    """Pieces of a single byte change nothing."""
    assert complaints(case, await play(case, (case.raw[at : at + 1] for at in range(len(case.raw))))) == []


@every_stream
async def test_a_recording_cut_after_each_event(case: Case) -> None:
    """A stream that ends early is never an answer, unless the model had said why it stopped; nothing false is shown."""
    whole = await play(case, [case.raw])
    for end in EVENT_END.finditer(case.raw):
        part = case.raw[: end.end()]
        asked = await play(case, [part])
        assert whole.shown.startswith(asked.shown)
        if case.kind == "openai":
            may_be_whole = bool(CHAT_STOP.search(part)) or b"[DONE]" in part
        elif case.kind == "openai_responses":
            may_be_whole = b'"type":"response.completed"' in part or b'"type":"response.incomplete"' in part
        else:
            may_be_whole = b"message_stop" in part
        if asked.error is None:
            assert may_be_whole
            assert asked.answer.text == asked.shown
        else:
            assert asked.error.retryable or asked.error.code == (whole.error and whole.error.code)


@every_stream
async def test_an_answer_is_the_last_event_and_the_only_one(case: Case) -> None:
    """No delta is empty, and after the answer comes nothing."""
    asked = await play(case, [piece + b"\n\n" for piece in re.split(rb"\n\n", case.raw)])
    assert all(event.text for event in asked.events if isinstance(event, TextDelta))
    if asked.error is None:
        assert asked.events[-1] is asked.answer
