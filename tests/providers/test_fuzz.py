"""Streams cut and broken at random: every one ends, none passes for whole that is not, and none fills the memory."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import count, pairwise

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.platforms.model_asking import KINDS, Asked, Settings, ask, question
from tests.platforms.model_script import ScriptedCall, Step
from tests.platforms.model_wire import Frame, chat_frames, messages_frames
from tests.platforms.model_wire_responses import responses_frames
from tests.providers.test_cases import STREAMS, Case, Recorded, play
from zerobot.core.errors import ProviderError
from zerobot.core.log import silent
from zerobot.core.model import Finish
from zerobot.core.provider_kind import ProviderServices
from zerobot.providers.sse import MAX_PARTS, SseLimitError, SseParser
from zerobot.providers.transport import STREAM_LIMIT
from zerobot.testing.clock import ManualClock

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
LONGEST = 20.0
"""Seconds after which a stream hangs; far more than any needs."""

FRAMES: dict[str, Callable[[Step, str, Callable[[], str]], Iterator[Frame]]] = {
    "openai": chat_frames,
    "anthropic": messages_frames,
    "openai_responses": responses_frames,
}
ENDS = {
    "openai": re.compile(rb'"finish_reason": ?"|\[DONE\]'),
    "anthropic": re.compile(rb"message_stop"),
    "openai_responses": re.compile(rb"response\.(completed|incomplete|done)"),
}
"""What a stream must have somewhere to be whole."""
every_kind = pytest.mark.parametrize("kind", sorted(KINDS))


def run(kind: str, pieces: Sequence[bytes]) -> Asked:
    """Give the provider a stream in pieces; only a `ProviderError` may come of it, and soon."""

    async def played() -> Asked:
        async with asyncio.timeout(LONGEST):
            return await play(Case("fuzz", b"", {"api": _API[kind]}), pieces)

    return asyncio.run(played())


_API = {"openai": "openai-chat", "anthropic": "anthropic", "openai_responses": "openai-responses"}


def cut(raw: bytes, places: Sequence[int]) -> list[bytes]:
    """Cut bytes at some places."""
    ends = sorted({0, len(raw), *(place % (len(raw) + 1) for place in places)})
    return [raw[start:end] for start, end in pairwise(ends)]


def check(kind: str, raw: bytes, asked: Asked) -> None:
    """What holds for every stream, however broken."""
    if asked.error is not None:
        return
    answer = asked.answer
    assert ENDS[kind].search(raw) or raw.lstrip().startswith((b"{", b"[")), "an answer without an end"
    assert answer.text == asked.shown
    assert all(isinstance(call.raw_arguments, str) for call in answer.calls)
    assert len(answer.calls) <= MAX_PARTS
    if answer.usage is not None:
        assert min(answer.usage.input_tokens, answer.usage.output_tokens) >= 0
    (answer.text + "".join(call.name + call.raw_arguments + call.provider_id for call in answer.calls)).encode()


_PLACES = st.lists(st.integers(0, 100_000), max_size=20)
_ARGUMENTS = st.sampled_from(["{}", '{"x": "ü"}', '{"x": "\\u2028{}"}', '{"half": ', "", "[1]"])
_CALLS = st.lists(st.builds(ScriptedCall, st.sampled_from(["a", "b", "ü"]), _ARGUMENTS), max_size=3)
_DELTAS = st.lists(st.text(st.sampled_from('a ü👋`~\n<"{'), min_size=1, max_size=8), max_size=6)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    """An answer of a model, with whatever it may have."""
    made = tuple(ScriptedCall(call.name, call.arguments, f"c{number}") for number, call in enumerate(draw(_CALLS)))
    return Step(
        deltas=tuple(draw(_DELTAS)),
        calls=made,
        finish=draw(st.sampled_from(["", "length", "filter"])),
        reasoning=draw(st.sampled_from(["", "Hm, ü."])),
    )


def written(kind: str, step: Step) -> bytes:
    """The stream of an answer."""
    numbers = count()
    return b"".join(frame.data for frame in FRAMES[kind](step, "m-1", lambda: f"id{next(numbers)}"))


@every_kind
@QUICK
@given(step=steps(), places=_PLACES)
def test_an_answer_survives_any_cuts_of_the_network(kind: str, step: Step, places: list[int]) -> None:
    """Text, calls, reason and tokens arrive as they were sent, wherever the network cuts."""
    answer = run(kind, cut(written(kind, step), places)).answer
    assert answer.text == "".join(step.deltas)
    assert [(call.provider_id, call.name) for call in answer.calls] == [(call.id, call.name) for call in step.calls]
    empty = {"", "{}"} if kind == "anthropic" else {""}
    for got, sent in zip(answer.calls, step.calls, strict=True):
        assert got.raw_arguments == sent.arguments or {got.raw_arguments, sent.arguments} <= empty
    assert answer.finish is Finish(step.stop_reason)
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == step.usage


@every_kind
@QUICK
@given(step=steps(), end=st.integers(0, 100_000), places=_PLACES)
def test_a_cut_answer_never_passes_for_whole(kind: str, step: Step, end: int, places: list[int]) -> None:
    """Before its end it is an error that may be tried again, and what was shown of it is a beginning of it."""
    # Seen to fail with: the end of the connection taken for the end of the answer, in each protocol.
    raw = written(kind, step)
    part = raw[: end % len(raw)]
    asked = run(kind, cut(part, places))
    assert "".join(step.deltas).startswith(asked.shown)
    if asked.error is not None:
        assert asked.error.retryable
        return
    # Chat Completions says why it stops before it ends; from there on the answer is whole.
    assert ENDS[kind].search(part)
    assert asked.answer.text == "".join(step.deltas)
    assert len(asked.answer.calls) == len(step.calls)


_GARBAGE = st.one_of(
    st.binary(max_size=30),
    st.sampled_from(
        [
            b"data: {}\n\n",
            b"data: null\n\n",
            b"data: []\n\n",
            b"data: 7\n\n",
            b'data: "x"\n\n',
            b"data: [DONE]\n\n",
            b"event: error\ndata: {}\n\n",
            b'data: {"choices": [{"delta": {"tool_calls": [{"index": -1}]}}]}\n\n',
            b'data: {"choices": [{"delta": null, "finish_reason": 7}], "usage": {"prompt_tokens": -3}}\n\n',
            b'data: {"type": "content_block_start", "index": 1e9, "content_block": null}\n\n',
            b'data: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": 5}}\n\n',
            b'data: {"type": "response.output_item.done", "output_index": true, "item": []}\n\n',
            b'data: {"type": "response.completed"}\n\n',
            b'data: {"type": "response.output_text.delta", "delta": "\\ud83d"}\n\n',
            b'data: {"choices": [{"delta": {"content": "\\udc4b"}}]}\n\n',
            b"data: " + b"[" * 5000 + b"\n\n",
            b": comment\n\n",
            b"\x00\xff\r\r\n",
        ]
    ),
)


@st.composite
def broken(draw: st.DrawFn) -> tuple[str, bytes]:
    """A recording with random faults: events lost, repeated, moved, cut, with garbage between them or bytes changed."""
    case = draw(st.sampled_from(STREAMS))
    events = re.split(rb"(?<=\n\n)", case.raw)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(events) - 1))
        fault = draw(st.sampled_from(["lose", "repeat", "move", "garbage", "change", "cut"]))
        if fault == "lose":
            events[place] = b""
        elif fault == "repeat":
            events.insert(place, events[place])
        elif fault == "move":
            events.insert(draw(st.integers(0, len(events))), events[place])
            events.pop(place)
        elif fault == "garbage":
            events.insert(place, draw(_GARBAGE))
        elif fault == "change" and events[place]:
            at = draw(st.integers(0, len(events[place]) - 1))
            events[place] = events[place][:at] + draw(st.binary(max_size=2)) + events[place][at + 1 :]
        elif fault == "cut":
            events = [*events[:place], events[place][: draw(st.integers(0, len(events[place])))]]
    return case.kind, b"".join(events)


@settings(QUICK, max_examples=250)
@given(stream=broken(), places=_PLACES)
def test_no_fault_hangs_or_passes_for_an_answer(stream: tuple[str, bytes], places: list[int]) -> None:
    """An answer or a `ProviderError` comes of every stream, and no answer of one without an end."""
    kind, raw = stream
    check(kind, raw, run(kind, cut(raw, places)))


@settings(QUICK, max_examples=150)
@given(kind=st.sampled_from(sorted(KINDS)), raw=st.binary(max_size=200), places=_PLACES)
def test_noise_is_no_answer(kind: str, raw: bytes, places: list[int]) -> None:
    """Bytes without any sense are an error."""
    assert run(kind, cut(raw, places)).error is not None


_LINES = st.lists(
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from(
            [b"data: x\n", b"data:y\r\n", b"\n", b"\r\n", b"\r", b": c\n", b"event: e\n", b"data: \xf0\x9f"]
        ),
    ),
    max_size=30,
).map(b"".join)


@settings(QUICK, max_examples=200)
@given(raw=_LINES, places=_PLACES)
def test_the_reader_sees_the_same_however_it_is_cut(raw: bytes, places: list[int]) -> None:
    """The pieces of the network are not the lines of the stream."""
    # Seen to fail with: a CR LF that the network cuts taken for two line ends.
    whole, pieces = SseParser(), SseParser()
    wanted = whole.feed(raw) + whole.end()
    assert [event for piece in cut(raw, places) for event in pieces.feed(piece)] + pieces.end() == wanted


@settings(QUICK, max_examples=200)
@given(raw=_LINES, places=_PLACES)
def test_the_reader_never_holds_more_than_its_limits(raw: bytes, places: list[int]) -> None:
    """A line or an event that grows beyond them is refused, and nothing longer ever comes out."""
    # Seen to fail with: a last line that may grow without end.
    parser = SseParser(max_line=20, max_event=30)
    try:
        for piece in cut(raw, places):
            for event in parser.feed(piece):
                # A broken byte becomes one character of three bytes.
                assert len(event.data.encode()) <= 3 * 30
            assert len(parser._rest) <= 20
            assert parser._data_bytes <= 30
    except SseLimitError:
        return


class Endless(httpx.AsyncByteStream):
    """A body that never ends, and knows how much of it was read."""

    def __init__(self, piece: bytes) -> None:
        self.read = 0
        self._piece = piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            self.read += len(self._piece)
            yield self._piece


@every_kind
@pytest.mark.parametrize("piece", [b": keep-alive" + b" " * 1_000_000 + b"\n\n", b"data:" + b" " * 1_000_000 + b"\n\n"])
async def test_an_endless_stream_is_given_up(kind: str, piece: bytes) -> None:
    """Also when nothing of it is kept: no model writes that much."""
    # Seen to fail with: a limit of a stream four times as high.
    body = Endless(piece)

    class Server(Recorded):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            return httpx.Response(200, stream=body, request=request)

    async with httpx.AsyncClient(transport=Server([])) as http:
        services = ProviderServices(http=lambda: http, clock=ManualClock(), log=silent)
        asked = await ask(KINDS[kind].open("main", Settings(), services), question("Hi"))
    assert isinstance(asked.error, ProviderError)
    assert (asked.error.code, asked.error.retryable) == ("stream_limit", False)
    assert body.read <= STREAM_LIMIT + len(piece)


@every_kind
def test_more_calls_than_any_model_makes_are_refused(kind: str) -> None:
    """Calls without number would make each further one slower to place."""
    many = tuple(ScriptedCall("a", "{}", f"c{number}") for number in range(MAX_PARTS + 1))
    assert len(run(kind, [written(kind, Step(calls=many[:-1]))]).answer.calls) == MAX_PARTS
    error = run(kind, [written(kind, Step(calls=many))]).error
    assert error is not None
    assert error.code == "malformed"


@every_kind
def test_a_deep_document_is_an_error(kind: str) -> None:
    """Nesting that the reader of JSON cannot follow is told as an error, not as a crash."""
    for raw in (b"data: " + b"[" * 200_000 + b"\n\n", b'{"a":' * 100_000, json.dumps({"x": 1}).encode()):
        assert run(kind, [raw]).error is not None
