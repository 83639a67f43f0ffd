"""A process that dies between any two commits: what the next start makes of what it finds."""

import pytest

from tests.delivery.house import ANN, House, Houses
from zerobot.core.errors import TryLaterError
from zerobot.core.events import TextShown
from zerobot.core.ids import TurnId
from zerobot.store.outbox import PartState, ReplyState
from zerobot.testing.channel import REPEAT_MARK, AskableChannel, FakeChannel
from zerobot.testing.clock import ManualClock


async def state_of(house: House, turn: TurnId) -> tuple[ReplyState, list[PartState]]:
    """How far the reply of a turn is."""
    (reply,) = await house.outbox.of_turn(turn)
    return reply.state, [part.state for part in reply.parts]


@pytest.mark.parametrize("commits", range(8))
async def test_a_crash_at_any_commit_loses_nothing_and_shows_at_most_one_marked_repeat(
    houses: Houses, clock: ManualClock, commits: int
) -> None:
    """The process dies after so many of the sender's commits; the next start finishes the reply."""
    channel = FakeChannel(clock, limit=10)
    async with houses.open(channel) as house:
        ref = await house.turn()
        await house.queue(ref, "0123456789abc")
        house.database.dies_after(commits)
        house.delivery.settle(ref.turn)
        await clock.advance(10)
    async with houses.open(channel) as house:
        await clock.advance(100)
        plain = [text.removeprefix(REPEAT_MARK) for text in channel.texts(ANN)]
        assert [text for number, text in enumerate(plain) if text not in plain[:number]] == ["0123456789", "abc"]
        assert len(plain) <= 3
        assert sum(not text.startswith(REPEAT_MARK) for text in channel.texts(ANN)) == 2
        assert (await state_of(house, ref.turn))[0] is ReplyState.DONE


async def test_a_part_found_sending_is_repeated_once_with_a_mark_at_the_start(
    houses: Houses, clock: ManualClock
) -> None:
    """After a crash in the call: at once, marked; a second crash in the repeat is the end of it, and told."""
    channel = FakeChannel(clock)
    hold = channel.hold("send")
    async with houses.open(channel) as house:
        await house.say("Hello.")
        await clock.settle()
    async with houses.open(channel) as house:
        await clock.settle()
    hold.release()
    async with houses.open(channel) as house:
        await clock.advance(100)
        notice = "⚠️ My answer may not have arrived; say “go on” or ask me to repeat it."
        assert channel.texts(ANN) == ["Hello.", REPEAT_MARK + "Hello.", notice]
        assert await state_of(house, TurnId("t1")) == (ReplyState.DONE, [PartState.FAILED])


async def test_replies_keep_their_order_over_a_restart(houses: Houses, clock: ManualClock) -> None:
    """What was queued first is sent first."""
    channel = FakeChannel(clock)
    channel.fail("send", TryLaterError("500"), times=1000)
    async with houses.open(channel) as house:
        for number in range(3):
            await house.say(f"Answer {number}.", f"t{number}")
        await clock.advance(5)
    channel.heal()
    async with houses.open(channel):
        await clock.advance(60)
        assert channel.texts(ANN) == ["Answer 0.", "Answer 1.", "Answer 2."]


async def test_a_reply_whose_turn_died_with_its_draft_is_finished_by_editing_it(
    houses: Houses, clock: ManualClock
) -> None:
    """Half a draft is on the platform, the final is stored, the process dies: the next start edits."""
    channel = FakeChannel(clock)
    async with houses.open(channel) as house:
        ref = await house.turn()
        house.delivery.view(ref)(TextShown("Hel"))
        await clock.advance(1)
        await house.queue(ref, "Hello.")
    async with houses.open(channel):
        await clock.advance(5)
    assert channel.texts(ANN) == ["Hello."]
    assert len(channel.of("send")) == 1


@pytest.mark.parametrize("commits", range(5))
@pytest.mark.parametrize("asks", [True, False])
async def test_a_crash_at_any_commit_of_a_draft_leaves_one_answer(
    houses: Houses, clock: ManualClock, commits: int, *, asks: bool
) -> None:
    """The turn goes on after it: the answer stands there once; only what was unclear may have left a draft behind."""
    channel = AskableChannel(clock) if asks else FakeChannel(clock)
    async with houses.open(channel) as house:
        ref = await house.turn()
        house.database.dies_after(commits)
        show = house.delivery.view(ref)
        for word in ("Before ", "the ", "cra"):
            show(TextShown(word))
            await clock.advance(2)
    async with houses.open(channel) as house:
        with house.delivery.view(ref) as show:
            show(TextShown("After"))
            await clock.advance(3)
            await house.finish(ref, show, "After it.")
            await clock.advance(60)
        assert channel.texts(ANN)[-1].removeprefix(REPEAT_MARK) == "After it."
        assert len(channel.texts(ANN)) == 1 or (not asks and channel.texts(ANN)[-1].startswith(REPEAT_MARK))
        assert len(channel.texts(ANN)) <= 2
        assert await state_of(house, ref.turn) == (ReplyState.DONE, [PartState.SENT])


async def test_a_full_disk_after_a_send_sends_nothing_twice(house: House) -> None:
    """The platform has taken it, the store refuses to note it: that is waited out, and nothing is sent meanwhile."""
    hold = house.channel.hold("send")
    ref = await house.say("Hello.")
    await house.clock.settle()
    house.database.refuses(5)
    hold.release()
    await house.clock.advance(120)
    assert house.channel.texts(ANN) == ["Hello."]
    assert await state_of(house, ref.turn) == (ReplyState.DONE, [PartState.SENT])


async def test_a_full_disk_keeps_drafts_away_and_the_final_comes(house: House) -> None:
    """A draft that can't be put on record isn't sent."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        house.database.refuses(1)
        show(TextShown("Hel"))
        await house.clock.advance(5)
        assert house.channel.of("send") == []
        await house.finish(ref, show, "Hello.")
        await house.clock.advance(5)
    assert house.channel.texts(ANN) == ["Hello."]
