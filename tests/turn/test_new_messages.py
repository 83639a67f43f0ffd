"""A new message while the turn waits for an operator (spec A30-A34, A82, decision 1)."""

import asyncio

import pytest

from zerobot.core.approvals import ApprovalState
from zerobot.core.envelope import Acceptance
from zerobot.core.events import Outcome, StopReason
from zerobot.store.turn_rows import WaitingInput
from zerobot.testing.house import House
from zerobot.testing.model import call, held, says, step

ASKING = step("asking", [call("sup", "c1", x="1")])


async def test_a_new_message_ends_the_pause_in_order(house: House) -> None:
    """T58, A30: the calls are closed, the pause is over, then the new input; its reply says what did not run."""
    # Seen to fail with: calls of the superseded turn left open (A30), no final of the superseded turn (A40), its
    # approvals left open (A82).
    house.model.answers(ASKING, says("fine"))
    await house.user.says("hi")
    asked = (await house.operator.sees())[0]
    await house.user.says("never mind")
    assert await house.history() == ["U:hi", "A:asking[c1]", "R c1!NOT_RUN", "U:never mind", "A:fine"]
    assert house.model.last_request.lines == ["U:hi", "A:asking[c1]", "R c1!NOT_RUN", "U:never mind"]
    old, new = house.finals
    assert (old.reason, old.outcome, new.reason) == (StopReason.SUPERSEDED, Outcome.SUPERSEDED, StopReason.DONE)
    assert await house.replies() == ["asking", "(The earlier request, `sup`, did not run.)\n\nfine"]
    assert house.model.last_request.result_of("c1").receipt
    late = await house.operator.presses("Approve", approval=asked)
    assert late is not None
    assert (late.won, late.approval.state, late.approval.reason) == (False, ApprovalState.CANCELLED, "superseded")
    assert house.tools.runs["sup"] == 0


async def test_an_approved_call_that_has_not_run_is_closed_too(house: House) -> None:
    """A30, A13: superseding a half-decided pause runs nothing of it; every call has its result."""
    house.model.answers(step("asking", [call("sup", "c1", x="1"), call("sup", "c2", x="2")]), says("fine"))
    await house.user.says("hi")
    await house.operator.presses("Approve")
    await house.user.says("never mind")
    assert (await house.history())[2:4] == ["R c1!NOT_RUN", "R c2!NOT_RUN"]
    assert house.tools.started == []


async def test_a_message_may_wait_for_the_pause_instead(house: House) -> None:
    """A34: where the policy says no, the input waits, and runs after the turn has ended."""
    # Seen to fail with: the policy not asked (A34).
    house.settings.supersedes = lambda _: False
    house.model.answers(ASKING, says("done"), says("fine"))
    await house.user.says("hi")
    await house.user.says("and then?")
    assert await house.history() == ["U:hi", "A:asking[c1]"]
    await house.operator.presses("Approve")
    assert await house.history() == ["U:hi", "A:asking[c1]", "R c1=did 1", "A:done", "U:and then?", "A:fine"]


async def test_a_message_from_before_the_request_was_shown_waits(house: House) -> None:
    """Decision 1: only who can have seen the request can mean to end it."""
    # Seen to fail with: the time of showing not compared (A30).
    house.operator.looking = False
    house.model.answers(ASKING, says("done"), says("fine"), to=None)
    await house.user.says("hi")
    await house.user.says("one more thing")
    assert await house.history() == ["U:hi", "A:asking[c1]"]
    house.operator.looking = True
    await house.operator.sees()
    await house.operator.presses("Approve")
    assert (await house.history())[-2:] == ["U:one more thing", "A:fine"]
    assert [final.reason for final in house.finals] == [StopReason.DONE, StopReason.DONE]


async def test_the_policy_is_told_who_asked_and_who_writes(house: House) -> None:
    """Decision 1: whether a message supersedes depends on its writer and on who asked for what is paused."""
    seen: list[WaitingInput] = []

    def asks(waiting: WaitingInput) -> bool:
        seen.append(waiting)
        return False

    house.settings.supersedes = asks
    house.model.answers(ASKING)
    await house.user.says("hi")
    await house.user.says("never mind")
    assert [(each.envelope.text, str(each.asker), str(each.envelope.sender)) for each in seen] == [
        ("never mind", "test:ann", "test:ann")
    ]


async def test_a_refused_message_leaves_the_pause(house: House) -> None:
    """A31, A83: an input that is not accepted changes nothing; the pause can still be decided."""
    # Seen to fail with: a refused input stored like any other (A31).
    house.settings.queue_limit = 0
    house.model.answers(ASKING, says("done"))
    house.settings.queue_limit = 1
    await house.user.says("hi")
    house.settings.queue_limit = 0
    assert await house.user.says("never mind") is Acceptance.FULL
    await house.operator.presses("Approve")
    assert await house.history() == ["U:hi", "A:asking[c1]", "R c1=did 1", "A:done"]


@pytest.mark.parametrize("first", ["press", "message"])
async def test_a_press_and_a_message_at_once_have_one_winner(house: House, first: str) -> None:
    """A82: the continuation runs and the message follows, or the pause is over and the press is refused; never both."""
    # Seen to fail with: a decided pause superseded all the same (A82).
    house.model.answers(says("done"), to="hi")
    house.model._script.insert(0, ASKING)
    house.model.answers(says("fine"), to="never mind")
    await house.user.says("hi")
    asked = (await house.operator.sees())[0]
    both = [house.operator.decides("Approve", approval=asked), house.user.writes("never mind")]
    results = await asyncio.gather(*(both if first == "press" else both[::-1]))
    await house.idle()
    pressed = results[0] if first == "press" else results[1]
    won = pressed is not None and pressed.won  # type: ignore[union-attr]
    assert house.tools.runs["sup"] == (1 if won else 0)
    assert house.finals[0].reason is (StopReason.DONE if won else StopReason.SUPERSEDED)
    assert (await house.history())[-2:] == ["U:never mind", "A:fine"]
    assert len(house.finals) == 2


@pytest.mark.parametrize("point", ["tool", "model"])
async def test_a_message_during_a_continuation_waits_for_its_end(house: House, point: str) -> None:
    """T64, A80: what is said while the approved call runs, or the model reads its result, comes after the turn."""
    answer, hold = held(says("done"))
    house.model.answers(step("asking", [call("supw", "c1", p="f")]), answer, says("fine"))
    await house.user.says("hi")
    await house.operator.decides("Approve")
    await house.tools.has_started("supw f")
    if point == "tool":
        await house.user.writes("and then?")
        await house.settles()
    await house.tools.release()
    await hold.reached()
    if point == "model":
        await house.user.writes("and then?")
        await house.settles()
    assert house.model.last_request.lines == ["U:hi", "A:asking[c1]", "R c1=wrote f"]
    hold.release()
    await house.idle()
    assert await house.history() == ["U:hi", "A:asking[c1]", "R c1=wrote f", "A:done", "U:and then?", "A:fine"]


async def test_a_reset_during_a_pause_lets_the_old_turn_end_by_itself(house: House) -> None:
    """A86: the paused turn still works with what it knows and replies; the new history holds nothing of it."""
    house.model.answers(ASKING, says("done"), says("fresh"))
    await house.user.says("hi")
    await house.engine.conversations.reset(await house.user.conversation())
    await house.operator.presses("Approve")
    assert house.model.last_request.lines == ["U:hi", "A:asking[c1]", "R c1=did 1"]
    assert await house.replies() == ["asking", "done"]
    assert await house.history() == []
    await house.user.says("hello")
    assert await house.history() == ["U:hello", "A:fresh"]
