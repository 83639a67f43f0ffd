"""Parts of the engine that are functions of their arguments."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerobot.core.ids import TurnId
from zerobot.turn.settle import shorten
from zerobot.turn.stop import StopCause, StopSignal, TurnStoppedError
from zerobot.turn.transcript import join_texts

T1 = TurnId("t1")


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
