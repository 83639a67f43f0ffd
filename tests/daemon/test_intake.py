"""The way in: what an adapter hands over is stored, refused, or logged; a bug never makes a channel deaf."""

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from zerobot.core.admission import Admission
from zerobot.core.approvals import PressOutcome, PressReply
from zerobot.core.envelope import Acceptance, Button, ButtonPress, EnvelopeEdit, InboundEnvelope
from zerobot.core.errors import StorageError
from zerobot.core.ids import ConversationId, InboxId
from zerobot.core.log import Level
from zerobot.core.places import ConversationKey, Identity, Place
from zerobot.daemon.intake import ChannelIntake, IntakeWires
from zerobot.store.database import open_database
from zerobot.store.inbox import BOTS_IN_A_ROW, Inbox, WaitingCommand
from zerobot.testing.clock import ManualClock
from zerobot.testing.store import Fate, WatchedDatabase

ANN = Identity("test", "ann")
CHAT = Place("test", "ann")
HELLO = InboundEnvelope(
    conversation=ConversationKey(CHAT), sender=ANN, event_id="e1", message_id="m1", text="hello", direct=True
)


async def _no_interrupt(conversation: ConversationId, newer: InboxId) -> None:
    raise AssertionError(f"nobody asked for it: {conversation}, {newer}")


async def _no_alarm(channel: str, subject: str, text: str) -> None:
    raise AssertionError(f"there is nothing to tell operators: {channel}, {subject}, {text}")


class Desk:
    """What an intake leads to; each part keeps what it was told, and trips when a test wants it."""

    def __init__(self, database: WatchedDatabase) -> None:
        self.database = database
        self.clock = ManualClock()
        self.inbox = Inbox(database, self.clock)
        self.woken: list[ConversationId] = []
        self.commands: list[WaitingCommand] = []
        self.said: list[str] = []
        self.events: list[str] = []
        self.trips = False
        self._wires = IntakeWires(
            inbox=self.inbox,
            wake=self._wake,
            command=self.commands.append,
            interrupt=_no_interrupt,
            press=self._press,
            may_press=self._press,
            notice=self._notice,
            stranger=lambda: None,
            move=self._move,
            alarm=_no_alarm,
            alive=lambda channel, why: None,
            log=self._log,
        )
        self.intake = self._opened(require_mention=True)

    def listens_to_all(self) -> None:
        """No mention is needed any more."""
        self.intake = self._opened(require_mention=False)

    def _opened(self, *, require_mention: bool) -> ChannelIntake:
        return ChannelIntake("test", lambda: Admission(everyone=True), self._wires, require_mention=require_mention)

    def _wake(self, conversation: ConversationId) -> None:
        if self.trips:
            raise RuntimeError("a bug")
        self.woken.append(conversation)

    async def _press(self, press: ButtonPress) -> PressReply:
        if self.trips:
            raise RuntimeError("a bug")
        return PressReply(PressOutcome.APPROVED, "Approved.")

    async def _notice(self, place: Place, text: str, reply_to: str) -> None:
        self.said.append(text)

    async def _move(self, old: Place, new_chat: str) -> None:
        raise RuntimeError("a bug")

    def _log(
        self, event: str, /, *, level: Level = "info", error: BaseException | None = None, **fields: object
    ) -> None:
        self.events.append(event)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """An intake on a real store."""
    async with open_database(tmp_path / "zerobot.db", readers=1) as opened:
        yield Desk(WatchedDatabase(opened))


async def test_a_message_is_stored_and_its_conversation_woken(desk: Desk) -> None:
    """The same event again is a duplicate; it wakes again, should whoever stored it have been cut off before that."""
    assert await desk.intake.accept(HELLO) is Acceptance.ACCEPTED
    assert await desk.intake.accept(HELLO) is Acceptance.DUPLICATE
    assert len(desk.woken) == 2
    assert desk.events == ["envelope.accepted", "envelope.refused"]


async def test_a_command_goes_beside_the_queue(desk: Desk) -> None:
    """It wakes no conversation; whoever carries commands out gets it at once."""
    assert await desk.intake.accept(replace(HELLO, text="!stop")) is Acceptance.ACCEPTED
    assert [each.envelope.text for each in desk.commands] == ["!stop"]
    assert desk.woken == []


async def test_what_is_not_meant_for_the_bot_is_not_even_looked_up(desk: Desk) -> None:
    """Talk in a group without a mention is refused and leaves nothing behind."""
    talk = replace(HELLO, direct=False, addressed=False)
    assert await desk.intake.accept(talk) is Acceptance.NOT_ADDRESSED
    assert desk.database.writes == 0


async def test_bots_do_not_answer_each_other_for_ever(desk: Desk) -> None:
    """After some inputs of bots in a row, commands among them, a person has to say something, or an hour passes."""
    bot = replace(HELLO, sender=Identity("test", "robot"), from_bot=True)
    numbers = count()

    async def say(envelope: InboundEnvelope) -> Acceptance:
        return await desk.intake.accept(replace(envelope, event_id=f"n{next(numbers)}"))

    for _ in range(2):
        await say(HELLO)
        taken = [await say(bot if n % 2 else replace(bot, text="/status")) for n in range(BOTS_IN_A_ROW)]
        assert taken == [Acceptance.ACCEPTED] * BOTS_IN_A_ROW
        assert [await say(bot), await say(replace(bot, text="/status"))] == [Acceptance.LOOP] * 2
    elsewhere = ConversationKey(Place("test", "elsewhere"))
    assert await say(replace(bot, conversation=elsewhere)) is Acceptance.ACCEPTED
    await desk.clock.advance(3601)
    assert await say(bot) is Acceptance.ACCEPTED


async def test_a_bot_has_to_name_the_bot(desk: Desk) -> None:
    """Also where everything that people say is answered."""
    talk = replace(HELLO, direct=False, addressed=False)
    desk.listens_to_all()
    assert await desk.intake.accept(replace(talk, from_bot=True)) is Acceptance.NOT_ADDRESSED
    assert await desk.intake.accept(talk) is Acceptance.ACCEPTED


async def test_a_message_that_was_deleted_while_it_waits_is_not_answered(desk: Desk) -> None:
    """Its author takes it back; nobody else can."""
    await desk.intake.accept(HELLO)
    other = EnvelopeEdit(place=CHAT, sender=Identity("test", "bea"), message_id="m1", text=None)
    await desk.intake.edited(other)
    assert await desk.inbox.waiting_count(desk.woken[0]) == 1
    await desk.intake.edited(replace(other, sender=ANN))
    assert await desk.inbox.waiting_count(desk.woken[0]) == 0


async def test_a_store_that_refuses_is_told_to_the_adapter(desk: Desk) -> None:
    """Then it must not confirm the event to its platform."""
    desk.database.trap(Fate.REFUSED)
    with pytest.raises(StorageError):
        await desk.intake.accept(HELLO)
    assert await desk.intake.accept(HELLO) is Acceptance.ACCEPTED


async def test_a_bug_costs_one_event_and_not_the_channel(desk: Desk) -> None:
    """B025, K07: whatever trips over an event, it is logged, and the adapter goes on to the next."""
    desk.trips = True
    await desk.intake.accept(HELLO)
    press = ButtonPress(channel="test", presser=ANN, code="AAAA", button=Button.APPROVE, place=CHAT)
    assert (await desk.intake.press(press)).outcome is PressOutcome.UNKNOWN
    await desk.intake.moved(CHAT, "new")
    assert desk.events.count("envelope.crashed") == 2
    assert desk.events.count("press.crashed") == 1
    desk.trips = False
    assert await desk.intake.accept(replace(HELLO, event_id="e2", message_id="m2")) is Acceptance.ACCEPTED
    assert (await desk.intake.press(press)).outcome is PressOutcome.APPROVED
