"""Tool calls of Chat Completions servers that do not keep to the book."""

import json
from typing import Any

import pytest

from zerobot.core.model import ModelAnswer
from zerobot.providers.openai_decode import ChatDecoder
from zerobot.providers.sse import SseEvent

Piece = dict[str, Any]


def piece(index: object = ..., id: str | None = None, name: str | None = None, args: object = None) -> Piece:  # noqa: A002
    function = {key: value for key, value in (("name", name), ("arguments", args)) if value is not None}
    made: Piece = {"function": function}
    if index is not ...:
        made["index"] = index
    return {**made, "id": id} if id is not None else made


def gathered(*pieces: Piece) -> list[tuple[str, str, str]]:
    """Decode a stream with one piece a chunk; returns id, name and arguments of each call."""
    decoder = ChatDecoder("main")
    for one in pieces:
        chunk = {"choices": [{"index": 0, "delta": {"tool_calls": [one]}}]}
        decoder.feed(SseEvent("message", json.dumps(chunk)))
    decoder.feed(SseEvent("message", json.dumps({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})))
    answer = decoder.end()[-1]
    assert isinstance(answer, ModelAnswer)
    return [(call.provider_id, call.name, call.raw_arguments) for call in answer.calls]


TABLE = {
    "by the book": (
        [
            piece(0, "c1", "a", ""),
            piece(1, "c2", "b", ""),
            piece(0, args='{"x"'),
            piece(1, args="{}"),
            piece(0, args=":1}"),
        ],
        [("c1", "a", '{"x":1}'), ("c2", "b", "{}")],
    ),
    "index 0 for every call, new ids": (
        [piece(0, "c1", "write_file", "{}"), piece(0, "c2", "write_file", "{}"), piece(0, "c3", "write_file", "{}")],
        [("c1", "write_file", "{}"), ("c2", "write_file", "{}"), ("c3", "write_file", "{}")],
    ),
    "index 0 for every call, no ids": (
        [piece(0, None, "a", '{"x":'), piece(0, args="1}"), piece(0, None, "b", "{}")],
        [("", "a", '{"x":1}'), ("", "b", "{}")],
    ),
    "the same tool twice, no ids": (
        [piece(0, None, "a", '{"x":1}'), piece(0, None, "a", '{"x":2}')],
        [("", "a", '{"x":1}'), ("", "a", '{"x":2}')],
    ),
    "no index at all": (
        [piece(id="c1", name="a", args='{"x":'), piece(args="1}"), piece(id="c2", name="b", args="{}")],
        [("c1", "a", '{"x":1}'), ("c2", "b", "{}")],
    ),
    "index null": (
        [piece(None, "", "a", "{}"), piece(None, "", "b", "{}")],
        [("", "a", "{}"), ("", "b", "{}")],
    ),
    "index as text": (
        [piece("0", "c1", "a", ""), piece("1", "c2", "b", "{}"), piece("0", args="{}")],
        [("c1", "a", "{}"), ("c2", "b", "{}")],
    ),
    "id and name in every piece": (
        [piece(0, "c1", "a", '{"x"'), piece(0, "c1", "a", ":1}"), piece(0, "c1", "a", "")],
        [("c1", "a", '{"x":1}')],
    ),
    "the name again at the end": (
        [piece(0, None, "a", '{"x":1}'), piece(0, None, "a", "")],
        [("", "a", '{"x":1}')],
    ),
    "a new index for each piece of one call": (
        [piece(0, "c1", "a", '{"x"'), piece(1, "c1", None, ":1}")],
        [("c1", "a", '{"x":1}')],
    ),
    "arguments before their header": (
        [piece(0, args='{"x"'), piece(0, "c1", "a", ":1}")],
        [("c1", "a", '{"x":1}')],
    ),
    "arguments as an object": ([piece(0, "c1", "a", {"x": 1})], [("c1", "a", '{"x": 1}')]),
    "one id for two calls": (
        [piece(0, "same", "a", "{}"), piece(1, "same", "b", "{}")],
        [("same", "a", "{}"), ("same", "b", "{}")],
    ),
    "one id and one index for two calls": (
        [piece(0, "same", "a", "{}"), piece(0, "same", "b", "{}")],
        [("same", "a", "{}"), ("same", "b", "{}")],
    ),
    "no arguments at all": ([piece(0, "c1", "a")], [("c1", "a", "")]),
}


@pytest.mark.parametrize(("pieces", "wanted"), TABLE.values(), ids=TABLE.keys())
def test_pieces_become_the_calls_that_were_meant(pieces: list[Piece], wanted: list[tuple[str, str, str]]) -> None:
    """No two calls are glued together, and none is torn apart."""
    assert gathered(*pieces) == wanted


def test_a_whole_message_behind_its_deltas_is_a_repetition() -> None:
    """It is neither shown nor called twice."""
    decoder = ChatDecoder("main")
    decoder.feed(SseEvent("message", json.dumps({"choices": [{"delta": {"content": "Hello"}}]})))
    last = {"choices": [{"delta": {}, "message": {"content": "Hello"}, "finish_reason": "stop"}]}
    decoder.feed(SseEvent("message", json.dumps(last)))
    answer = decoder.end()[-1]
    assert isinstance(answer, ModelAnswer)
    assert answer.text == "Hello"


@pytest.mark.parametrize("word", ["", "null", "None"])
def test_a_word_for_nothing_is_no_stop_reason(word: str) -> None:
    """Some servers write null as text; the stream is not over then."""
    decoder = ChatDecoder("main")
    decoder.feed(SseEvent("message", json.dumps({"choices": [{"delta": {"content": "H"}, "finish_reason": word}]})))
    assert not decoder.nearly_done
