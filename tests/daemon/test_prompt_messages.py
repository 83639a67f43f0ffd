"""The messages that show a prompt: those that nobody recorded, and prompts that need many of them."""

import asyncio
from itertools import pairwise
from typing import ClassVar

from tests.daemon.office import OLGA, OLGAS, ROOM, Office, Offices
from zerobot.core.approvals import Approval, ApprovalState, PressOutcome, PressReply
from zerobot.core.envelope import Button, ButtonPress
from zerobot.core.errors import RefusedError, TryLaterError, UnclearError
from zerobot.core.places import Place
from zerobot.daemon.routing import OperatorRules
from zerobot.store.approvals import Approvals, Prompt
from zerobot.testing.channel import FakeChannel
from zerobot.testing.clock import ManualClock


async def press_message(office: Office, approval: Approval, message: str, place: Place = OLGAS) -> PressReply:
    """The operator approves by the button of one message."""
    press = ButtonPress(
        channel="fake", presser=OLGA, approval=approval.id, button=Button.APPROVE, place=place, message_id=message
    )
    reply = await office.desk.press(press)
    await office.house.clock.advance(5)
    return reply


def buttons(channel: FakeChannel, place: Place = OLGAS) -> list[object]:
    """Whether the messages of a chat have buttons, oldest first."""
    return [body.format["buttons"] for body in channel.messages[place].values()]


async def test_a_pressed_prompt_that_was_not_recorded_loses_its_buttons(offices: Offices, clock: ManualClock) -> None:
    """The daemon dies between the send and its record; the press on that very message is what decides."""
    channel = FakeChannel(clock)
    hold = channel.hold("ask")
    async with offices.open(channel=channel) as office:
        approval = await office.ask()
    (message,) = channel.messages[OLGAS]
    async with offices.open(channel=channel) as office:
        # The prompt is being shown again, and that has no answer yet either.
        assert (await press_message(office, approval, message)).outcome is PressOutcome.APPROVED
        hold.release()
        await clock.advance(30)
        assert set(buttons(channel)) == {False}
        assert await office.approvals.unsettled() == []


async def test_a_pressed_prompt_whose_answer_was_lost_is_the_recorded_one(office: Office) -> None:
    """Pressed before it is shown again: it is not, and the message shows the decision."""
    office.channel.fail("ask", UnclearError("broken"), taken=True)
    approval = await office.ask()
    (message,) = office.channel.messages[OLGAS]
    await press_message(office, approval, message)
    await office.house.clock.advance(60)
    (text,) = office.channel.texts(OLGAS)
    assert "Approved by" in text
    assert await office.approvals.unsettled() == []
    (prompt,) = await office.approvals.prompts_of(approval.id)
    assert (prompt.platform_id, prompt.settled) == (message, True)


async def test_a_second_copy_that_is_pressed_is_settled_beside_the_recorded_one(office: Office) -> None:
    """Of two copies the store knows one; a press on the other settles both, also when it comes too late."""
    office.channel.fail("ask", UnclearError("broken"), taken=True)
    approval = await office.ask()
    await office.house.clock.advance(30)
    first, second = office.channel.messages[OLGAS]
    assert (await press_message(office, approval, second)).outcome is PressOutcome.APPROVED
    assert [body.format for body in office.channel.messages[OLGAS].values()] == [{"buttons": True}, {"buttons": False}]
    assert (await press_message(office, approval, first)).outcome is PressOutcome.ALREADY
    assert [body.format for body in office.channel.messages[OLGAS].values()] == [{"buttons": False}] * 2
    assert len(office.channel.of("settle")) == 2
    await press_message(office, approval, second)
    assert len(office.channel.of("settle")) == 2


class LateReading(Approvals):
    """A store whose answers about prompts may be long on their way."""

    on_its_way: ClassVar[asyncio.Event]
    """Cleared: what was read is not handed over yet."""

    async def unshown(self) -> list[Prompt]:
        """See `Approvals`."""
        read = await super().unshown()
        await self.on_its_way.wait()
        return read


async def test_a_prompt_that_is_recorded_while_the_store_is_read_is_shown_once(
    offices: Offices, clock: ManualClock
) -> None:
    """What was read says that it is not shown yet; that it is being shown was known when the reading began."""
    LateReading.on_its_way = asyncio.Event()
    LateReading.on_its_way.set()
    channel = FakeChannel(clock)
    hold = channel.hold("ask")
    async with offices.open(channel=channel, store=LateReading) as office:
        await office.ask()
        LateReading.on_its_way.clear()
        office.desk.look()
        await clock.settle()
        hold.release()
        await clock.settle()
        LateReading.on_its_way.set()
        await clock.advance(30)
    assert len(channel.messages[OLGAS]) == 1


async def test_a_long_prompt_as_text_goes_on_where_it_was_limited(offices: Offices, clock: ManualClock) -> None:
    """Buttons are refused, the text is many messages, and the chat is limited on the way: each is shown once."""
    channel = FakeChannel(clock, limit=60)
    async with offices.open(OperatorRules(users=(OLGA,), notify="here"), channel) as office:
        channel.fail("ask", RefusedError("no such file"), times=100)
        approval = await office.ask()
        await clock.advance(2.5)
        assert channel.texts(ROOM)
        channel.fail("send", TryLaterError("slow down", retry_after=9.0), times=2)
        await clock.advance(120)
        taken = [call for call in channel.of("send", place=ROOM) if call.id]
        assert len(taken) > 3
        assert len({call.key for call in taken}) == len(taken)
        assert "/approve CODE1" in "".join(channel.texts(ROOM))
        assert len(channel.of("ask")) == 1
        times = [call.at for call in channel.of("send")]
        assert all(later - earlier >= 1.0 - 1e-6 for earlier, later in pairwise(times))
        assert len(await office.approvals.unshown()) == 0
        assert await office.state(approval) is ApprovalState.PENDING


async def test_two_long_prompts_as_text_do_not_mix(offices: Offices, clock: ManualClock) -> None:
    """All of one request stands together with its code, then comes the other."""
    channel = FakeChannel(clock, limit=60)
    async with offices.open(OperatorRules(users=(OLGA,), notify="here"), channel) as office:
        channel.fail("ask", RefusedError("no"), times=100)
        await office.ask("1")
        await office.ask("2")
        await clock.advance(120)
        prompts = [call.key.split(".")[0] for call in channel.of("send", place=ROOM)]
        assert sorted(prompts) == prompts
        assert len(set(prompts)) == 2


async def test_a_long_prompt_that_is_decided_while_it_is_told_ends_there(offices: Offices, clock: ManualClock) -> None:
    """Nothing more of it is shown, and its last message says what was decided."""
    channel = FakeChannel(clock, limit=60)
    async with offices.open(OperatorRules(users=(OLGA,), notify="here"), channel) as office:
        channel.fail("ask", RefusedError("no"), times=100)
        await office.ask()
        await clock.advance(1.5)
        assert len(channel.of("send")) == 1
        await office.type("CODE1")
        await clock.advance(60)
        assert len(channel.of("send")) <= 2
        assert "Approved" in channel.texts(ROOM)[-1]
        assert await office.approvals.unsettled() == []
