"""Buttons, forms and slash commands: answered in time, privately where they are refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.platforms.discord_house import DiscordHouse, discord_house
from tests.platforms.discord_server import Person
from tests.platforms.discord_world import Message
from zerobot.core.approvals import ApprovalPrompt, PressOutcome, PressReply, PromptLine
from zerobot.core.channel import AsksApproval, OutboundFile
from zerobot.core.envelope import Acceptance, Button, InboundEnvelope
from zerobot.core.ids import ApprovalId
from zerobot.core.places import Identity, Place

REFUSED = PressReply(PressOutcome.NOT_OPERATOR, "Only an operator may decide this.")


@pytest.fixture
async def house() -> AsyncIterator[DiscordHouse]:
    async with discord_house() as house:
        yield house
        assert house.server.interactions.late == []


@pytest.fixture
def ann(house: DiscordHouse) -> Person:
    return house.server.user("1001", name="Ann", username="ann")


async def prompt(house: DiscordHouse, ann: Person) -> Message:
    """An approval prompt in Ann's direct chat."""
    lines = (PromptLine(kind="title", text="Approval needed"), PromptLine(kind="argument", label="command", text="x"))
    asked = ApprovalPrompt(approval=ApprovalId("A" * 22), code="BCDF", lines=lines)
    assert isinstance(house.channel, AsksApproval)
    place = house.channel.direct_place(Identity("discord", "1001"))
    assert place is not None
    sent = await house.channel.ask(place, asked, "p1")
    message = ann.chat.message(sent.id)
    assert message is not None
    return message


async def test_a_press_says_who_what_and_where(house: DiscordHouse, ann: Person) -> None:
    """And its presser, nobody else, is told what became of it."""
    message = await prompt(house, ann)
    async with house.running() as intake:
        told = await ann.presses(message, "Approve").answered()
    (press,) = intake.presses
    assert (press.button, press.approval, str(press.presser)) == (Button.APPROVE, "A" * 22, "discord:1001")
    assert (press.place, press.message_id) == (Place("discord", "@1001"), message.id)
    assert (told.text, told.is_private) == ("Approved.", True)


async def test_a_press_is_answered_in_time_while_the_store_is_slow(house: DiscordHouse, ann: Person) -> None:
    """B046: Discord is told that the words come later, and then they come."""
    message = await prompt(house, ann)
    async with house.running() as intake:
        intake.hold(presses=True)
        presses = [ann.presses(message, "Approve") for _ in range(3)]
        await house.server.wait_for(lambda: all(press.answered_at for press in presses))
        assert not any(press.text for press in presses)
        intake.release()
        for press in presses:
            assert (await press.answered()).text == "Approved."
    assert max(press.seconds for press in presses) < 2
    assert all(press.is_private for press in presses)


async def test_a_form_asks_for_the_reason(house: DiscordHouse, ann: Person) -> None:
    """Its words come with the denial."""
    message = await prompt(house, ann)
    async with house.running() as intake:
        opened = await ann.presses(message, "Deny with reason").answered()
        assert intake.presses == []
        told = await ann.fills_in(opened, "not on a Friday").answered()
    (press,) = intake.presses
    assert (press.button, press.reason, press.approval) == (Button.DENY, "not on a Friday", "A" * 22)
    assert told.is_private


async def test_no_form_is_opened_for_who_may_not_decide(house: DiscordHouse, ann: Person) -> None:
    """Nor when it is too late: whoever presses is told so instead."""
    message = await prompt(house, ann)
    house.intake.refusal = REFUSED
    async with house.running() as intake:
        told = await ann.presses(message, "Deny with reason").answered()
    assert told.form is None
    assert (told.text, told.is_private) == (REFUSED.text, True)
    assert intake.presses == []


@pytest.mark.parametrize("data", ["", "a", "a:", "x:abc", "approve", ":abc", "я:1"])
async def test_forged_data_approves_nothing(house: DiscordHouse, ann: Person, data: str) -> None:
    """It stands for a denial of an approval that does not exist."""
    message = await prompt(house, ann)
    async with house.running() as intake:
        await ann.sends_press(message, data).answered()
    assert [(press.button, press.approval) for press in intake.presses] == [(Button.DENY, "")]


async def test_a_prompt_with_a_document_is_one_message(house: DiscordHouse, ann: Person) -> None:
    """The buttons never come without what they are about, and go when it is decided."""
    lines = (PromptLine(kind="argument", label="command", text="y" * 9000), PromptLine(kind="note", text="Code: X"))
    asked = ApprovalPrompt(approval=ApprovalId("B" * 22), code="X", lines=lines, grantable=False)
    assert isinstance(house.channel, AsksApproval)
    sent = await house.channel.ask(Place("discord", "@1001"), asked, "p2")
    (message,) = ann.chat.replies
    assert message.buttons == ["Approve", "Deny", "Deny with reason"]
    assert "y" * 9000 in message.files[0].data.decode()
    done = ApprovalPrompt(approval=asked.approval, code="X", lines=lines, open=False)
    await house.channel.settle(sent, done)
    assert message.buttons == []


async def test_a_slash_command_is_a_message_of_the_same_chat(house: DiscordHouse, ann: Person) -> None:
    """`/ask` says something, any other is the command; the answer stands where Discord shows that it comes."""
    team = house.server.channel("team")
    async with house.running() as intake:
        await house.server.wait_for(lambda: house.server.commands)
        asked = ann.commands("ask", "what is new?", chat=team)
        command = ann.commands("freeze", chat=team)
        await intake.until(lambda: len(intake.accepted) == 2)
        said = {envelope.text: envelope for envelope in intake.accepted}
        assert set(said) == {"what is new?", "/freeze"}
        envelope = said["what is new?"]
        assert envelope.place == Place("discord", team.id)
        assert envelope.addressed
        sent = await house.send(team.id, "Much.", key="k1", reply_to=envelope.message_id)
        await house.send(team.id, "Much.", key="k1", reply_to=envelope.message_id)
        await house.send(team.id, "And more.", key="k2", reply_to=envelope.message_id)
        await house.channel.delete(await house.send(team.id, "Gone.", key="k3", reply_to=said["/freeze"].message_id))
    assert (await asked.answered()).text == "Much."
    assert not asked.is_private
    assert asked.answer is not None
    assert sent.id == asked.answer.id
    assert command.answer is not None
    assert team.texts == ["Much.", "And more."]


async def test_a_slash_command_of_an_earlier_process_is_answered_by_a_message(house: DiscordHouse, ann: Person) -> None:
    """What Discord gave for the answer is gone with the process; the answer is not."""
    await house.send("@1001", "Here.", reply_to="interaction-123")
    assert ann.chat.texts == ["Here."]


async def test_a_file_in_answer_to_a_slash_command_is_a_message(
    house: DiscordHouse, ann: Person, tmp_path: Path
) -> None:
    """The first words still stand where Discord shows that they come."""
    path = tmp_path / "x"
    path.write_bytes(b"data")
    async with house.running() as intake:
        await house.server.wait_for(lambda: house.server.commands)
        asked = ann.commands("ask", "send it")
        await intake.until(lambda: intake.accepted)
        ref = intake.accepted[0].message_id
        await house.send("@1001", "File.", key="k1", reply_to=ref, file=OutboundFile(path=str(path), name="x.txt"))
        await house.send("@1001", "Words.", key="k2", reply_to=ref)
    assert (await asked.answered()).text == "Words."
    assert [file.data for message in ann.chat.replies for file in message.files] == [b"data"]


async def test_a_slash_command_is_acknowledged_only_when_it_is_stored(house: DiscordHouse, ann: Person) -> None:
    """Discord brings nothing twice: what a crash takes before that has visibly failed."""
    async with house.running() as intake:
        await house.server.wait_for(lambda: house.server.commands)
        intake.hold()
        slow = ann.commands("ask", "what is new?")
        for n in range(5):
            await house.send("@1001", f"Other {n}.", key=f"k{n}")
        assert slow.answered_at is None
        intake.release()
        await house.server.wait_for(lambda: slow.answered_at)
    assert intake.texts == ["what is new?"]


async def test_a_slash_command_whose_storing_took_too_long_is_answered_by_a_message(
    house: DiscordHouse, ann: Person
) -> None:
    """Discord has shown it as failed, but it is stored, so it is answered; a repeat is no second message."""
    async with house.running() as intake:
        await house.server.wait_for(lambda: house.server.commands)
        intake.hold()
        slow = ann.commands("ask", "what is new?")
        slow.at -= 3.1
        intake.release()
        await house.server.wait_for(lambda: house.server.interactions.late)
        house.server.interactions.late.clear()
        sent = await house.send("@1001", "Much.", reply_to=intake.accepted[0].message_id)
        assert await house.send("@1001", "Much.", reply_to=intake.accepted[0].message_id) == sent
    assert ann.chat.texts == ["Much."]
    assert slow.text == ""


async def test_a_refused_slash_command_is_told_privately(house: DiscordHouse, ann: Person) -> None:
    """B059: also when the refusal takes long."""
    refused = Refusing(house)
    async with house.running():
        await house.server.wait_for(lambda: house.server.commands)
        told = await ann.commands("help").answered()
        house.intake.hold()
        slow = ann.commands("help")
        house.intake.release()
        await slow.answered()
    assert (told.text, slow.text) == (slow.text, told.text)
    assert "may not" in told.text
    assert (told.is_private, slow.is_private) == (True, True)
    assert ann.chat.replies == []
    assert refused.count == 2


class Refusing:
    """Lets a house's intake refuse everything."""

    def __init__(self, house: DiscordHouse) -> None:
        self.count = 0
        self._accept = house.intake.accept
        house.intake.accept = self.accept  # type: ignore[method-assign]

    async def accept(self, envelope: InboundEnvelope) -> Acceptance:
        await self._accept(envelope)
        self.count += 1
        return Acceptance.NOT_ALLOWED


async def test_a_slash_command_that_cannot_be_stored_says_so(house: DiscordHouse, ann: Person) -> None:
    """Discord does not bring it again, so its author has to."""
    async with house.running() as intake:
        await house.server.wait_for(lambda: house.server.commands)
        intake.fail()
        told = await ann.commands("help").answered()
        assert told.is_private
        assert "cannot store" in told.text
        ann.commands("help")
        await intake.until(lambda: intake.texts == ["/help"])


async def test_presses_do_not_wait_for_messages(house: DiscordHouse, ann: Person) -> None:
    """A message that cannot be stored holds back the next messages, not the decisions."""
    message = await prompt(house, ann)
    async with house.running() as intake:
        intake.fail(1)
        ann.says("hello")
        told = await ann.presses(message, "Approve").answered()
        await intake.until(lambda: intake.texts == ["hello"])
    assert told.text == "Approved."
