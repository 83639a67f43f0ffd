"""What a provider can read from its cache: each request begins with what the one before it wrote there."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.platforms.model_asking import MODEL, assistant, attached, called, shown, tool, user
from zerobot.core.messages import Message
from zerobot.core.model import ModelRequest
from zerobot.providers import anthropic_encode, openai_encode, responses_encode
from zerobot.providers.openai_dialects import Dialect

TOOLS = [tool("a", "x"), tool("b", "y")]
MARK = "cache_control"
LOOK_BACK = 20
"""Blocks before a mark in which the API looks for what was written earlier."""


def asked(messages: list[Message]) -> ModelRequest:
    """A question with a fixed beginning."""
    return shown(ModelRequest(model=MODEL, system="Be brief.", messages=messages, tools=TOOLS))


def flat(body: dict[str, Any]) -> list[tuple[bytes, bool]]:
    """The blocks in the order in which the cache reads them, as bytes without marks; and whether each has one.

    A mark is no part of what is compared, as it says where to cut and not what is read.
    """
    blocks: list[tuple[str, dict[str, Any]]] = [("tool", block) for block in body["tools"]]
    blocks += [("system", block) for block in body["system"]]
    for message in body["messages"]:
        blocks += [(message["role"], block) for block in message["content"]]
    return [
        (json.dumps([place, {key: block[key] for key in block if key != MARK}]).encode(), MARK in block)
        for place, block in blocks
    ]


def written(body: dict[str, Any]) -> list[bytes]:
    """What a request writes to the cache at its last mark."""
    blocks = flat(body)
    last = max(number for number, (_, marked) in enumerate(blocks) if marked)
    return [data for data, _ in blocks[: last + 1]]


def steps(rounds: list[int]) -> list[list[Message]]:
    """The histories of the steps of turns: so many calls a round, and 0 for an answer and a question with a picture."""
    history: list[Message] = [user("go")]
    made = [list(history)]
    for number, count in enumerate(rounds):
        calls = [called("a", f"c{number}_{place}", position=place) for place in range(count)]
        thought = {"provider": "main", "type": "thinking", "thinking": f"t{number}", "signature": "s"}
        history.append(assistant(f"said {number}", *calls, reasoning=(thought,)))
        if not count:
            history.append(user(f"and {number}", attached(f"{number}.png")))
        made.append(list(history))
    return made


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=8))
def test_each_step_reads_what_the_last_one_wrote(rounds: list[int]) -> None:
    """Byte for byte up to its last mark, and from a mark of its own that is near enough to be found."""
    bodies = [anthropic_encode.encode(asked(history), "main") for history in steps(rounds)]
    for before, after in itertools.pairwise(bodies):
        wrote, blocks = written(before), flat(after)
        assert [data for data, _ in blocks[: len(wrote)]] == wrote
        marks = [number for number, (_, marked) in enumerate(blocks) if marked]
        assert any(0 <= mark - (len(wrote) - 1) < LOOK_BACK for mark in marks)


@pytest.mark.parametrize("rounds", [[], [0], [3], [3, 0, 2]])
def test_no_more_marks_than_the_api_allows(rounds: list[int]) -> None:
    """The last tool, the system prompt, the last two messages of the user's side, and no more than four."""
    body = anthropic_encode.encode(asked(steps(rounds)[-1]), "main")
    users = [message for message in body["messages"] if message["role"] == "user"]  # type: ignore[attr-defined]
    assert json.dumps(body).count(MARK) == 2 + min(2, len(users))
    assert all(MARK in message["content"][-1] for message in users[-2:])
    assert list(body)[-3:] == ["tools", "system", "messages"]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_other_protocols_grow_at_their_end(rounds: list[int]) -> None:
    """Their servers cache by themselves, as long as what was sent before is the beginning of what is sent now."""
    chat = [openai_encode.encode(asked(each), "main", Dialect())["messages"] for each in steps(rounds)]
    responses = [responses_encode.encode(asked(each), "main")["input"] for each in steps(rounds)]
    for sent in (chat, responses):
        for before, after in itertools.pairwise(sent):
            assert isinstance(before, list)
            assert isinstance(after, list)
            assert json.dumps(after[: len(before)]) == json.dumps(before)
