"""Parts of the engine that are functions of their arguments."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerobot.core.ids import TurnId
from zerobot.core.messages import AssistantMessage, Message, UserMessage
from zerobot.turn.prepare import window_start
from zerobot.turn.settle import shorten
from zerobot.turn.stop import StopCause, StopSignal, TurnStoppedError
from zerobot.turn.transcript import join_texts

T1 = TurnId("t1")


def conversation(kinds: str) -> list[Message]:
    """Messages of people (`u`) and of the model (`a`), numbered from 1."""
    return [
        UserMessage(seq=seq, turn=T1, text="x") if kind == "u" else AssistantMessage(seq=seq, turn=T1, text="x")
        for seq, kind in enumerate(kinds, 1)
    ]


@pytest.mark.parametrize(
    ("kinds", "bound", "start"),
    [
        ("uaua", 0, 0),
        ("uaua", 4, 0),
        ("uauaua", 4, 5),
        ("uauauau", 5, 5),
        ("uaaaaaua", 4, 7),
        ("uaaaaaaa", 4, 0),
        ("auaaaaaa", 4, 2),
    ],
)
def test_the_window_moves_in_jumps_to_a_question(kinds: str, bound: int, start: int) -> None:
    """A74: at its bound it moves so that 70 % are left, and never past the newest input, however long its turn is."""
    assert window_start(conversation(kinds), bound) == start


@settings(max_examples=200)
@given(st.text("ua", max_size=30), st.integers(1, 12))
def test_the_window_always_begins_with_a_question(kinds: str, bound: int) -> None:
    """A70, A74: what is left begins with a person's message, holds the newest one, and moves no second time at once."""
    messages = conversation(kinds)
    start = window_start(messages, bound)
    left = [message for message in messages if message.seq >= start]
    if start:
        assert isinstance(left[0], UserMessage)
        people = [message for message in messages if isinstance(message, UserMessage)]
        assert people[-1] in left
    assert window_start(left, bound) in (0, start)


@given(st.text(max_size=40), st.integers(1, 20))
def test_a_long_text_keeps_its_head_and_its_tail(text: str, limit: int) -> None:
    """K7: what is kept is the text's own beginning and end, and how much is gone is said."""
    short = shorten(text, limit)
    if len(text) <= limit:
        assert short == text
        return
    head, tail = short.split(f"\n[… {len(text) - limit} characters left out …]\n")
    assert len(head) + len(tail) == limit
    assert text.startswith(head)
    assert text.endswith(tail)


def test_paragraphs_are_joined_without_holes() -> None:
    """What was said in several steps reads as one text."""
    assert join_texts(["", " one ", "\n", "two\n"]) == "one\n\ntwo"


async def test_the_first_cause_of_a_stop_wins() -> None:
    """A turn is stopped once; whoever comes later learns it."""
    stop = StopSignal()
    stop.check()
    assert stop.request(StopCause.TIMEOUT)
    assert not stop.request(StopCause.USER)
    with pytest.raises(TurnStoppedError) as stopped:
        stop.check()
    assert stopped.value.cause is StopCause.TIMEOUT


async def test_work_that_has_ended_counts_although_a_stop_came() -> None:
    """K13: an answer that is there is not thrown away."""
    stop = StopSignal()

    async def work() -> str:
        stop.request(StopCause.USER)
        return "done"

    assert await stop.unless_stopped(work()) == "done"


async def test_what_fails_while_it_is_cancelled_is_not_heard_of() -> None:
    """A stop ends the work; an error that it raises on its way out is neither raised nor left to the event loop."""
    stop = StopSignal()
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    async def work() -> None:
        stop.request(StopCause.USER)
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("cannot close")

    with pytest.raises(TurnStoppedError):
        await stop.unless_stopped(work())
    assert complaints == []


async def test_a_cancelled_caller_takes_the_work_with_it() -> None:
    """Nothing goes on behind the back of whoever was cancelled."""
    stop = StopSignal()
    ended = asyncio.Event()
    began = asyncio.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.create_task(stop.unless_stopped(work()))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
