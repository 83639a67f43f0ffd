"""What people press, fill in and command, and what they are told, alone."""

from __future__ import annotations

import pytest

from tests.platforms.slack_house import SlackHouse
from tests.platforms.slack_server import Person
from tests.platforms.slack_world import Channel, Message
from zerobot.core.approvals import ApprovalPrompt, PressOutcome, PressReply, PromptLine
from zerobot.core.channel import MessageBody, OutboundMessage, SentMessage
from zerobot.core.envelope import Button
from zerobot.core.errors import CannotTellError, GoneError
from zerobot.core.ids import ApprovalId
from zerobot.core.places import Identity, Place

LINES = (
    PromptLine(kind="title", text="May I run this?"),
    PromptLine(kind="field", label="Tool", text="shell"),
    PromptLine(kind="argument", label="command", text="rm -rf <@U1> & co"),
    PromptLine(kind="note", text="It expires in an hour."),
)


def prompt(*, lines: tuple[PromptLine, ...] = LINES, is_open: bool = True, grantable: bool = True) -> ApprovalPrompt:
    """A prompt."""
    return ApprovalPrompt(approval=ApprovalId("A" * 22), code="BCD234", lines=lines, open=is_open, grantable=grantable)


async def shown(house: SlackHouse, place: Place, shown_prompt: ApprovalPrompt) -> SentMessage:
    """Show a prompt."""
    return await house.channel.ask(place, shown_prompt, "k1")


async def asked(house: SlackHouse, ann: Person, team: Channel) -> Message:
    """A prompt in a thread of the team's."""
    post = ann.says("@zero do it", chat=team, tell="")
    await shown(house, Place("slack", team.id, post.ts), prompt())
    assert team.prompt is not None
    return team.prompt


async def test_a_prompt_shows_all_and_settles_without_buttons(house: SlackHouse, ann: Person, team: Channel) -> None:
    """In the thread that asked; arguments stand there as they are and notify nobody."""
    message = await asked(house, ann, team)
    assert message.thread_ts is not None
    assert message.text == "May I run this?\nTool: shell\ncommand: rm -rf <@U1> & co\nIt expires in an hour."
    assert message.buttons == ["Approve", "Deny", "Deny with reason", "Always in this chat"]
    assert message.pings == []
    done = prompt(lines=(PromptLine(kind="outcome", text="Denied by Olga"),), is_open=False)
    await house.channel.settle(SentMessage(Place("slack", team.id, message.thread_ts), message.ts), done)
    assert (message.text, message.buttons) == ("Denied by Olga", [])


async def test_a_prompt_without_grants_offers_none(house: SlackHouse, ann: Person) -> None:
    """There is no button for what is not possible."""
    await shown(house, Place("slack", "U1001"), prompt(grantable=False))
    assert ann.chat.prompt is not None
    assert "Always in this chat" not in ann.chat.prompt.buttons


async def test_a_prompt_that_is_too_long_comes_whole_in_a_file_before_it(house: SlackHouse, ann: Person) -> None:
    """The buttons come only after it has arrived."""
    command = "echo " + "& " * 5000 + "end"
    lines = (*LINES[:2], PromptLine(kind="argument", label="command", text=command))
    await shown(house, Place("slack", "U1001"), prompt(lines=lines))
    file, message = ann.chat.replies
    assert command in file.files[0].data.decode()
    assert "in the file above" in message.text
    assert message.buttons != []


async def test_a_press_is_answered_privately(house: SlackHouse, ann: Person, team: Channel) -> None:
    """In the thread; who pressed, where and on which message is told to the intake."""
    message = await asked(house, ann, team)
    async with house.running() as intake:
        press = await ann.presses(message, "Approve").answered()
    (told,) = intake.presses
    assert (told.button, told.approval, told.message_id) == (Button.APPROVE, "A" * 22, message.ts)
    assert told.presser == Identity("slack", f"{house.server.team}/U1001")
    assert told.place == Place("slack", team.id, message.thread_ts)
    assert (press.text, press.in_public) == ("Approved.", False)
    assert team.private[0].thread_ts == message.thread_ts


async def test_a_reason_is_asked_for_by_a_form(house: SlackHouse, ann: Person, team: Channel) -> None:
    """It opens at once; what is written into it comes with the press; the answer is private too."""
    message = await asked(house, ann, team)
    async with house.running() as intake:
        form = await ann.presses(message, "Deny with reason").answered()
        assert intake.presses == []
        sent = await ann.fills_in(form, " not on a Friday ").answered()
    (told,) = intake.presses
    assert (told.button, told.reason, told.approval) == (Button.DENY, "not on a Friday", "A" * 22)
    assert (told.place, told.message_id) == (Place("slack", team.id, message.thread_ts), message.ts)
    assert (sent.text, sent.in_public) == ("Approved.", False)


async def test_no_form_opens_for_a_press_that_would_not_count(house: SlackHouse, ann: Person, team: Channel) -> None:
    """Nobody writes a reason for nothing."""
    message = await asked(house, ann, team)
    house.intake.refusal = PressReply(PressOutcome.NOT_OPERATOR, "Only an operator can decide this.")
    async with house.running() as intake:
        press = await ann.presses(message, "Deny with reason").answered()
    assert (press.form, press.text) == (None, "Only an operator can decide this.")
    assert intake.presses == []


async def test_what_a_changed_client_sends_is_an_unknown_press(house: SlackHouse, ann: Person, team: Channel) -> None:
    """It denies an approval that cannot exist, whatever it holds; forms of others are let be."""
    message = await asked(house, ann, team)
    async with house.running() as intake:
        for action, value in (("zerobot:always!", "A"), ("other", "x" * 1999), ("zerobot:approve", "")):
            await ann.sends_press(message, action, value).answered()
        house.server.sockets.emit("interactive", {"type": "view_submission", "user": ann.as_json(), "view": {}})
        house.server.sockets.emit("interactive", {"type": "message_action", "user": ann.as_json()})
        await house.server.wait_for(lambda: all(each.acknowledged for each in house.server.sockets.sent))
    assert {(each.button, each.approval) for each in intake.presses} == {(Button.DENY, "")}


async def test_a_press_that_cannot_be_stored_is_told_so(house: SlackHouse, ann: Person, team: Channel) -> None:
    """Nothing was decided; the channel goes on."""
    message = await asked(house, ann, team)
    async with house.running() as intake:
        intake.fail()
        first = await ann.presses(message, "Approve").answered()
        second = await ann.presses(message, "Approve").answered()
    assert "cannot store" in first.text
    assert second.text == "Approved."
    assert len(intake.presses) == 1


async def test_a_slash_command_is_told_privately(house: SlackHouse, ann: Person, team: Channel) -> None:
    """In a direct chat it belongs to that conversation; its answer is for who asked alone."""
    async with house.running() as intake:
        press = ann.commands("stop")
        await intake.until(lambda: intake.accepted)
        (envelope,) = intake.accepted
        await house.send("U1001", "Stopping.", reply_to=envelope.message_id)
        await press.answered()
        ann.commands("stop now please", chat=team)
        ann.commands("", chat=team)
        ann.commands("hello there", chat=team)
        await intake.until(lambda: len(intake.accepted) == 4)
    assert (press.text, press.in_public) == ("Stopping.", False)
    assert ann.chat.replies == team.replies == []
    assert [each.text for each in intake.accepted] == ["/stop", "/stop now please", "/help", "/hello"]
    assert [each.place for each in intake.accepted[:2]] == [Place("slack", "U1001"), Place("slack", team.id)]


async def test_a_slash_command_is_acknowledged_only_when_it_is_stored(house: SlackHouse, ann: Person) -> None:
    """Slack brings it once: what a crash takes before that has visibly failed. A refusal is told however late it is."""
    async with house.running() as intake:
        intake.hold()
        press = ann.commands("stop")
        for n in range(5):
            await house.send("U1001", f"Other {n}.", key=f"k{n}")
        sent = house.server.sockets.sent[-1]
        assert (sent.kind, sent.acknowledged) == ("slash_commands", False)
        intake.fail()
        intake.release()
        await press.answered()
        assert sent.acknowledged
    assert "cannot store" in press.text
    assert not press.in_public


async def test_all_of_a_long_answer_to_a_slash_command_stays_private(
    house: SlackHouse, ann: Person, team: Channel
) -> None:
    """An address takes five; the rest is in the direct chat of whoever asked. Nothing of it can be changed."""
    async with house.running() as intake:
        press = ann.commands("help", chat=team)
        await intake.until(lambda: intake.accepted)
        (envelope,) = intake.accepted
        ref = envelope.message_id
        sent = [
            await house.send(team.id, f"Part {n}.", key=f"k{n}", reply_to="" if n else ref, answers=ref)
            for n in range(7)
        ]
        for each in sent:
            with pytest.raises(GoneError):
                await house.channel.edit(each, MessageBody("Else."))
            await house.channel.delete(each)
    assert (press.texts, press.in_public) == ([f"Part {n}." for n in range(5)], False)
    assert ann.chat.texts == ["Part 5.", "Part 6."]
    assert team.replies == []


async def test_an_answer_that_comes_too_late_for_its_address_stays_private(
    house: SlackHouse, ann: Person, team: Channel
) -> None:
    """Half an hour later, and after a restart: nobody is left without an answer, and nobody else reads it."""
    async with house.running() as intake:
        ann.commands("help", chat=team)
        await intake.until(lambda: intake.accepted)
        ref = intake.accepted[0].message_id
        house.clock.ahead = 30 * 60
        await house.send(team.id, "Late.", reply_to=ref)
    later = SlackHouse(house.server)
    await later.send(team.id, "Later.", key="k2", reply_to=ref)
    await later.close()
    assert ann.chat.texts == ["Late.", "Later."]
    assert team.replies == []


async def test_an_answer_to_a_slash_command_is_looked_for_where_it_may_stand(
    house: SlackHouse, ann: Person, team: Channel
) -> None:
    """In the direct chat it is found by its key; of an address nobody can ask what became of it."""
    async with house.running() as intake:
        ann.commands("help", chat=team)
        await intake.until(lambda: intake.accepted)
        ref = intake.accepted[0].message_id
    house.clock.ahead = 30 * 60
    sent = await house.send(team.id, "Late.", reply_to=ref)
    place, body = Place("slack", team.id), house.channel.render("Late.")[0]
    assert await house.channel.find(OutboundMessage(place=place, body=body, key="k1", answers=ref)) == sent
    with pytest.raises(CannotTellError):
        await house.channel.find(OutboundMessage(place=place, body=body, key="k2", answers=ref))


async def test_commands_are_typed_with_an_exclamation_mark(house: SlackHouse, ann: Person, team: Channel) -> None:
    """Slack keeps the slash; in a channel the command alone is meant for the bot."""
    async with house.running() as intake:
        ann.says("!stop")
        ann.says("!stop", chat=team)
        ann.says("@zero !stop", chat=team, tell="message")
        await intake.until(lambda: len(intake.accepted) == 3)
    assert intake.texts == ["!stop"] * 3
    assert all(each.addressed for each in intake.accepted)
