"""Inputs of one conversation run one after another, conversations run side by side (spec A80-A88)."""

from zerobot.core.envelope import Acceptance
from zerobot.core.events import StopReason, TurnStarted
from zerobot.testing.house import House
from zerobot.testing.model import held, says
from zerobot.turn import notices


async def test_a_conversation_is_worked_on_in_order_and_others_beside_it(house: House) -> None:
    """T74, A80, A81: the second input sees the first reply; another conversation does not wait for either."""
    # Seen to fail with: the newest input first (A80).
    one, first = held(says("one"))
    two, second = held(says("two"))
    four, fourth = held(says("four"))
    house.model.answers(one, to="1")
    house.model.answers(two, to="2")
    house.model.answers(says("three"), to="3")
    house.model.answers(four, to="4")
    bob = house.other("bob")
    for text in ("1", "2", "3"):
        await house.user.writes(text)
    await first.reached()
    await bob.writes("4")
    await fourth.reached()
    assert [request.lines for request in house.model.requests] == [["U:1"], ["U:4"]]
    first.release()
    await second.reached()
    assert house.model.last_request.lines == ["U:1", "A:one", "U:2"]
    fourth.release()
    second.release()
    await house.idle()
    assert await house.history() == ["U:1", "A:one", "U:2", "A:two", "U:3", "A:three"]
    assert await house.history(bob) == ["U:4", "A:four"]
    assert len(house.seen(TurnStarted)) == len(house.finals) == 4


async def test_a_full_queue_refuses_and_changes_nothing(house: House) -> None:
    """A83: the input beyond the bound is refused; those that wait run as if it had never come."""
    # Seen to fail with: no bound (A83).
    house.settings.queue_limit = 1
    answer, hold = held(says("one"))
    house.model.answers(answer, says("two"))
    await house.user.writes("1")
    await hold.reached()
    assert await house.user.writes("2") is Acceptance.ACCEPTED
    assert await house.user.writes("3") is Acceptance.FULL
    hold.release()
    await house.idle()
    assert await house.history() == ["U:1", "A:one", "U:2", "A:two"]


async def test_a_reset_during_a_turn_keeps_it_out_of_the_new_history(house: House) -> None:
    """A86, B163: the running turn still replies; nothing of it is in a later request."""
    answer, hold = held(says("old"))
    house.model.answers(answer, says("new"))
    await house.user.writes("before")
    await hold.reached()
    await house.engine.conversations.reset(await house.user.conversation())
    hold.release()
    await house.idle()
    assert await house.replies() == ["old"]
    await house.user.says("after")
    assert house.model.last_request.lines == ["U:after"]
    assert await house.history() == ["U:after", "A:new"]


async def test_a_reset_turn_goes_on_after_a_crash_with_what_it_knew(house: House) -> None:
    """A86: a turn of before the reset that a crash interrupts is asked again with its own input, not with nothing."""
    # Seen to fail with: only messages of the newest epoch loaded (A86).
    answer, hold = held(says("never"))
    house.model.answers(answer, says("old"))
    await house.user.writes("before")
    await hold.reached()
    await house.engine.conversations.reset(await house.user.conversation())
    await house.restart()
    assert house.model.last_request.lines == ["U:before"]
    assert await house.replies() == ["old"]
    assert await house.history() == []


async def test_a_failed_turn_does_not_stop_the_queue(house: House) -> None:
    """A85: the next input runs whatever became of the one before."""
    house.model.answers(says("never"), to="nothing that anybody says")
    house.model.answers(says("two"), to="2")
    await house.user.writes("1")
    await house.user.writes("2")
    await house.idle()
    assert [final.text for final in house.finals][1] == "two"
    assert len(house.model.violations) == 1
    house.model.violations.clear()
    house.model._script.clear()


async def test_a_damaged_row_costs_its_turn_and_not_the_queue(house: House) -> None:
    """K16, W9: a conversation that cannot be read says so and goes on after a reset; others notice nothing."""
    house.model.answers(says("one"), says("bob's"), says("fresh"))
    await house.user.says("1")
    await house.engine.database.write(lambda db: db.execute("UPDATE messages SET extra = '{broken'"))
    await house.user.says("2")
    final = house.finals[1]
    assert final.error is not None
    assert (final.reason, final.text) == (
        StopReason.ERROR,
        notices.failure(notices.INTERNAL, final.turn),
    )
    await house.other("bob").says("hi")
    await house.engine.conversations.reset(await house.user.conversation())
    await house.user.says("3")
    assert house.model.last_request.lines == ["U:3"]
    assert house.finals[-1].text == "fresh"
