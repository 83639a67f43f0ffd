"""Strangers at the door: operators are asked by buttons, the first answer counts, and nobody is flooded."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from tests.daemon.office import OLGA, OLGAS, OTTO, OTTOS, TWO_OPERATORS
from tests.delivery.house import House, Houses
from zerobot.core.admission import Admission
from zerobot.core.approvals import PressOutcome, PressReply
from zerobot.core.envelope import Button, ButtonPress, InboundEnvelope
from zerobot.core.errors import RefusedError, TryLaterError, UnreachableError
from zerobot.core.ids import ApprovalId
from zerobot.core.places import ConversationKey, Identity, Place
from zerobot.daemon.doorbell import ASKS, UNKNOWN, WELCOME, Doorbell, DoorbellWires
from zerobot.daemon.presses import NOT_OPERATOR
from zerobot.store.inbox import Inbox
from zerobot.store.pairing import Pairings

XEN = Identity("fake", "xen")
XENS = Place("fake", "xen")


@dataclass
class Porch:
    """A running doorbell, and the house that it belongs to."""

    house: House
    bell: Doorbell
    pairings: Pairings

    async def rings(self, who: Identity = XEN, name: str = "Xen") -> None:
        """A stranger writes in a chat of his own with the bot."""
        envelope = InboundEnvelope(
            conversation=ConversationKey(Place("fake", who.id)),
            sender=who,
            sender_name=name,
            event_id=f"{who} {self.house.clock.now()}",
            direct=True,
        )
        await Inbox(self.house.database, self.house.clock).accept(envelope, Admission(), is_command=False)
        self.bell.look()
        await self.house.clock.advance(3)

    async def press(self, button: Button, presser: Identity = OLGA, request: str = "") -> PressReply:
        """Somebody presses a button about the first stranger."""
        (first, *_) = await self.pairings.list()
        press = ButtonPress(
            channel="fake",
            presser=presser,
            approval=ApprovalId(request or first.request),
            button=button,
            place=Place("fake", presser.id),
        )
        assert self.bell.is_meant(press)
        reply = await self.bell.press(press)
        await self.house.clock.advance(3)
        return reply

    async def may_press(self, presser: Identity, request: str = "") -> PressReply | None:
        """Ask whether a press about the first stranger would count."""
        (first, *_) = await self.pairings.list()
        approval = ApprovalId(request or first.request)
        return await self.bell.may_press(
            ButtonPress(channel="fake", presser=presser, approval=approval, button=Button.DENY)
        )

    def asked(self, place: Place) -> int:
        """How often somebody was asked with buttons."""
        return len(self.house.channel.of("ask", place=place))


@pytest.fixture
async def porch(houses: Houses) -> AsyncIterator[Porch]:
    """Two operators live in the house."""
    async with houses.open() as house:
        pairings = Pairings(house.database, house.clock)
        wires = DoorbellWires(pairings=pairings, delivery=house.delivery, clock=house.clock, log=house.log)
        bell = Doorbell(TWO_OPERATORS, wires, jitter=lambda longest: longest)
        task = asyncio.create_task(bell.run())
        await house.clock.settle()
        try:
            yield Porch(house, bell, pairings)
        finally:
            task.cancel()
            await asyncio.wait((task,))


async def test_all_operators_are_asked_with_buttons_and_the_first_answer_counts(porch: Porch) -> None:
    """Each sees who it is; the yes lets him in and tells him; both messages show who decided, without buttons."""
    await porch.rings()
    for place in (OLGAS, OTTOS):
        (text,) = porch.house.channel.texts(place)
        assert "Xen (fake:xen)" in text
        assert "allows no tool" in text
    reply = await porch.press(Button.APPROVE)
    assert (reply.outcome, reply.text) == (PressOutcome.APPROVED, "fake:xen may talk to me now.")
    assert await porch.pairings.may_talk(XEN, "fake", Admission())
    assert porch.house.channel.texts(XENS) == [WELCOME]
    for place in (OLGAS, OTTOS):
        assert "Let in by fake:olga" in porch.house.channel.texts(place)[0]
        assert [body.format for body in porch.house.channel.messages[place].values()] == [{"buttons": False}]
    assert (await porch.may_press(OTTO)) == (late := await porch.press(Button.DENY, OTTO))
    assert late.outcome is PressOutcome.ALREADY
    assert "allowed by fake:olga" in late.text


async def test_a_no_shuts_the_stranger_out(porch: Porch) -> None:
    """He is told nothing and gets no new code."""
    await porch.rings()
    assert (await porch.press(Button.DENY)).outcome is PressOutcome.DENIED
    await porch.rings()
    assert porch.house.channel.texts(XENS) == []
    assert porch.asked(OLGAS) == 1
    assert "Shut out by fake:olga" in porch.house.channel.texts(OTTOS)[0]


async def test_nobody_else_decides_about_strangers(porch: Porch) -> None:
    """The stranger himself presses: nothing changes, and he learns nothing, not even of an unknown request."""
    await porch.rings()
    for request in ("", "pair.invented"):
        assert (await porch.press(Button.APPROVE, XEN, request)).text == NOT_OPERATOR
        before_a_form = await porch.may_press(XEN, request)
        assert before_a_form is not None
        assert before_a_form.text == NOT_OPERATOR
    assert await porch.may_press(OLGA) is None
    assert (await porch.press(Button.APPROVE, OLGA, "pair.invented")).text == UNKNOWN
    assert (await porch.pairings.list())[0].state == "pending"


async def test_operators_are_not_flooded(porch: Porch) -> None:
    """However many strangers come, so many are shown; all stand in the list."""
    for number in range(ASKS + 3):
        await porch.rings(Identity("fake", f"s{number}"))
    assert porch.asked(OLGAS) == ASKS
    assert len(await porch.pairings.list()) == ASKS + 3


async def test_a_code_that_is_typed_settles_the_buttons(porch: Porch) -> None:
    """Whatever way somebody is let in, nobody is asked about him any more."""
    await porch.rings()
    (pending,) = await porch.pairings.list()
    let_in = await porch.pairings.approve(pending.code, OTTO, porch.house.clock.now())
    assert let_in is not None
    await porch.bell.let_in(let_in)
    await porch.house.clock.advance(3)
    assert "Let in by fake:otto" in porch.house.channel.texts(OLGAS)[0]


async def test_what_nobody_answers_is_over_after_an_hour(porch: Porch) -> None:
    """The buttons go by themselves, and a late press changes nothing."""
    await porch.rings()
    await porch.house.clock.advance(3600)
    assert "Expired" in porch.house.channel.texts(OLGAS)[0]
    assert not await porch.pairings.may_talk(XEN, "fake", Admission())


async def test_an_operator_who_cannot_be_asked_keeps_nobody_outside(porch: Porch) -> None:
    """A limit is waited out; a refusal is let be, and the other operator decides."""
    porch.house.channel.fail("ask", TryLaterError("slow down", retry_after=5.0), place=OLGAS)
    porch.house.channel.fail("ask", UnreachableError("blocked"), place=OTTOS)
    await porch.rings()
    await porch.house.clock.advance(20)
    assert len(porch.house.channel.texts(OLGAS)) == 1
    assert porch.house.channel.texts(OTTOS) == []
    assert (await porch.press(Button.APPROVE)).outcome is PressOutcome.APPROVED
    porch.house.channel.fail("ask", RefusedError("no"), times=9)
    await porch.rings(Identity("fake", "yan"))
    assert porch.house.channel.texts(Place("fake", "yan")) == []


async def test_a_name_cannot_pass_for_our_words(porch: Porch) -> None:
    """What a stranger calls himself stays on its line, is cut, and hides nothing."""
    await porch.rings(name="Olga\u202e\nwho: admin " + "x" * 500)
    (text,) = porch.house.channel.texts(OLGAS)
    assert "\u202e" not in text
    assert not any(line.startswith("who: admin") for line in text.splitlines())
    assert "fake:xen" in text
    assert len(text) < 600
