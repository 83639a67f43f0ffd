"""Views over the life of a turn: begun, begun again, ended."""

from tests.delivery.house import ANN, House, Houses, final
from zerobot.core.events import (
    Outcome,
    TextShown,
)
from zerobot.core.ids import TurnId
from zerobot.core.places import Place
from zerobot.delivery.delivery import AT_WORK
from zerobot.store.outbox import PartState
from zerobot.testing.channel import FakeChannel, PlainChannel
from zerobot.testing.clock import ManualClock


async def test_a_view_of_a_channel_that_is_not_open_shows_nothing(house: House) -> None:
    """A place on a channel that is disabled: events are ignored."""
    ref = await house.turn("t9", Place("closed", "1"))
    with house.delivery.view(ref) as show:
        show(TextShown("Hello"))
        await house.clock.advance(5)
    assert house.channel.calls == []
    assert ref.turn == TurnId("t9")


async def test_a_draft_that_was_on_record_but_not_sent_is_the_finals_to_send(house: House) -> None:
    """The turn ends just before its first draft goes out: one message, without a mark, and at once."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(TextShown("Hel"))
        await house.clock.advance(0.2)
        reply = await house.outbox.open_of_turn(ref.turn)
        assert reply is not None
        assert [part.state for part in reply.parts] == [PartState.SENDING]
        await house.finish(ref, show, "Hello.")
        await house.clock.advance(1)
    assert [(call.text, call.at) for call in house.channel.of("send", "edit")] == [("Hello.", 0.2)]


async def test_the_record_of_a_draft_says_what_was_sent(house: House) -> None:
    """More text came between the record and the call: a final that equals the record only is edited in."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(TextShown("Yes"))
        await house.clock.advance(0.2)
        show(TextShown(" and no"))
        await house.clock.advance(0.1)
        assert house.channel.texts(ANN) == ["Yes and no"]
        reply = await house.outbox.open_of_turn(ref.turn)
        assert reply is not None
        assert [part.body.text for part in reply.parts if part.body] == ["Yes and no"]


async def test_a_turn_that_is_taken_up_again_in_one_process_keeps_its_draft(house: House) -> None:
    """The run breaks off (the store refused) while a call is under way, and begins again: one message."""
    ref = await house.turn()
    hold = house.channel.hold("send")
    with house.delivery.view(ref) as show:
        show(TextShown("Once"))
        await house.clock.advance(0.3)
    with house.delivery.view(ref) as show:
        show(TextShown("Again"))
        await house.clock.advance(2)
        hold.release()
        await house.clock.advance(2)
        assert house.channel.texts(ANN) == ["Again"]
        await house.finish(ref, show, "Again.")
        await house.clock.advance(5)
    assert house.channel.texts(ANN) == ["Again."]


class TerminalChannel(FakeChannel):
    """A channel that is told when a turn has ended."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.ended: list[tuple[Place, str, Outcome, list[str]]] = []

    async def turn_ended(self, place: Place, reply_to: str, outcome: Outcome) -> None:
        """Note it, with what the chat shows then."""
        self.ended.append((place, reply_to, outcome, self.texts(place)))


async def test_a_channel_that_follows_turns_is_told_once_all_was_said(houses: Houses, clock: ManualClock) -> None:
    """With the reply, or without any; once a turn."""
    channel = TerminalChannel(clock)
    async with houses.open(channel) as house:
        ref = await house.turn()
        with house.delivery.view(ref) as show:
            show(TextShown("Hel"))
            await house.finish(ref, show, "Hello.")
            house.delivery.settle(ref.turn)
            await clock.advance(5)
        ref = await house.turn("t2")
        with house.delivery.view(ref) as show:
            show(final(ref, ""))
            await clock.advance(5)
    assert channel.ended == [(ANN, "q1", Outcome.REPLIED, ["Hello."])] * 2


async def test_a_long_turn_that_shows_nothing_says_once_that_it_is_at_work(houses: Houses, clock: ManualClock) -> None:
    """Where there are no drafts; a turn that goes on after a restart or a pause does not say it again."""
    async with houses.open(PlainChannel(clock), notice_after=120.0) as house:
        ref = await house.turn()
        with house.delivery.view(ref) as show:
            show(TextShown("Hel"))
            await clock.advance(119)
            assert house.channel.of("send") == []
            await clock.advance(2)
        with house.delivery.view(ref) as show:
            await clock.advance(130)
            await house.finish(ref, show, "Hello.")
            await clock.advance(5)
        assert [(call.text, call.reply_to) for call in house.channel.of("send")] == [(AT_WORK, "q1"), ("Hello.", "q1")]


async def test_a_quick_turn_or_one_with_a_draft_does_not_say_that_it_is_at_work(
    houses: Houses, clock: ManualClock
) -> None:
    """What people see already is not told by a message."""
    async with houses.open(notice_after=120.0) as house:
        ref = await house.turn()
        with house.delivery.view(ref) as show:
            show(TextShown("Hel"))
            await clock.advance(130)
            await house.finish(ref, show, "Hello.")
            await clock.advance(200)
        assert [call.text for call in house.channel.of("send")] == ["Hel"]
