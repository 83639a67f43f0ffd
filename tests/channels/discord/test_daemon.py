"""What only Discord has, through the whole daemon."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest

from tests.channels.discord.town import DiscordTown
from tests.platforms.model_script import calls, holds, says


async def test_an_operator_who_never_wrote_is_asked_by_a_direct_message(town: DiscordTown) -> None:
    """It is opened for him, and his press there counts."""
    town.model.answers(calls("shell", id="c1", command="touch made"))
    async with town.daemon():
        town.uma.says("do it")
        prompt = await town.prompt(town.olga.chat)
        town.model.answers(says("Done."))
        told = await town.told(town.olga.presses(prompt, "Approve"))
        await town.uma.chat.reply("Done.")
        await town.olga.chat.wait_for(lambda _: not prompt.buttons)
    assert told.text == "Approved."
    assert town.made()
    assert "Uma" in prompt.text


async def test_the_reason_of_a_denial_reaches_the_model(town: DiscordTown) -> None:
    """By the form that a button opens; whoever is no operator gets none."""
    town.configure("operators", notify="here")
    async with town.daemon():
        prompt = await town.asks(town.uma)
        refused = await town.uma.presses(prompt, "Deny with reason").answered()
        opened = await town.olga.presses(prompt, "Deny with reason").answered()
        town.model.answers(says("I leave it."))
        await town.told(town.olga.fills_in(opened, "use the other folder"))
        await town.team.reply("I leave it.")
        await town.team.wait_for(lambda _: not prompt.buttons)
    assert (refused.form, refused.is_private) == (None, True)
    assert "use the other folder" in town.model.last_request.result_of("c1").text
    assert "use the other folder" in prompt.text


async def test_asking_by_a_slash_command_is_the_same_conversation(town: DiscordTown) -> None:
    """What was said in messages is known to it, and its answer streams where Discord shows that one comes."""
    town.model.answers(says("Noted."), holds(says("It is heron, as you said."), after=2))
    async with town.daemon() as daemon:
        town.uma.says(town.to_bot("the word is heron"), chat=town.team)
        await daemon.until("delivery.sent")
        await town.discord.wait_for(lambda: town.discord.commands)
        asked = town.vic.commands("ask", "what is the word?", chat=town.team)
        await town.discord.wait_for(lambda: asked.text)
        town.model.release()
        await daemon.until("delivery.sent", count=2)
    assert asked.text == "It is heron, as you said."
    assert not asked.is_private
    assert asked.seconds < 2
    assert "heron" in str(town.model.last_request.messages)
    assert town.team.texts == ["Noted.", "It is heron, as you said."]


async def test_commands_of_operators_are_only_theirs(town: DiscordTown) -> None:
    """Slash commands know the same rights as texts."""
    async with town.daemon():
        told = await town.commands(town.uma, "freeze", "", town.team)
        assert "Only an operator" in told.text
        told = await town.commands(town.olga, "freeze", "", town.team)
    assert told.text.startswith("Frozen")


async def test_another_bot_is_answered_only_where_that_is_wanted_and_not_for_ever(town: DiscordTown) -> None:
    """B075: two bots that thank each other come to an end; a person lets them go on."""
    town.configure(town.table, answer_bots=True, allowed_users=["2001", "7"], require_mention=False)
    town.model.always(says("Thank you."))
    robot = town.discord.user("7", name="Robot", is_bot=True)
    async with town.daemon() as daemon:
        robot.says("I talk to myself", chat=town.team)
        for number in range(8):
            robot.says(f"@zero thank you {number}", chat=town.team)
        await daemon.until("envelope.refused", count=4)
        await daemon.until("delivery.sent")
        town.uma.says("go on", chat=town.team)
        robot.says("@zero thanks again", chat=town.team)
        await daemon.until("envelope.accepted", count=7)
    reasons = [refused["reason"] for refused in daemon.named("envelope.refused")]
    assert reasons == ["not_addressed", "loop", "loop", "loop"]


async def test_an_intent_that_is_off_parks_this_channel_alone(town: DiscordTown) -> None:
    """The daemon lives, and says what to do."""
    town.discord.gateway.refuses = 4014
    town.expected_errors = {"channel.parked"}
    async with town.daemon() as daemon:
        parked = await daemon.until("channel.parked")
    assert "MESSAGE CONTENT INTENT" in parked["advice"]
    assert daemon.named("daemon.ready")[0]["parked"] == ["discord"]


async def test_heartbeats_go_on_while_a_tool_works(town: DiscordTown) -> None:
    """B058: whatever a command does, the gateway hears from us in time, and other chats are answered."""
    town.discord.gateway.beat_seconds = 0.3
    town.configure("security", autonomy="full", sandbox="off")
    town.model.answers(calls("shell", id="c1", command="sleep 3"), says("Hi."), says("Slept."))
    async with town.daemon() as daemon:
        town.olga.says("be busy")
        await daemon.until("tool.started")
        before = len(town.discord.gateway.ops(1))
        town.uma.says("hello")
        await town.uma.chat.reply("Hi.")
        await daemon.until("tool.finished")
        assert len(town.discord.gateway.ops(1)) - before >= 5
        await town.olga.chat.reply("Slept.")
        assert daemon.named("channel.disconnected") == []


@pytest.mark.slow
async def test_a_press_is_acknowledged_while_the_database_is_locked(town: DiscordTown) -> None:
    """B046: within two seconds, by each of five clicks; the words come when the decision is stored."""
    town.expected_errors = {"storage.failed", "storage.alarm"}
    async with town.daemon() as daemon:
        prompt = await town.asks(town.olga)
        town.model.answers(says("Done."))
        with sqlite3.connect(next((town.folder / "state").glob("*.db")), isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            presses = [town.olga.presses(prompt, "Approve") for _ in range(5)]
            await town.discord.wait_for(lambda: all(press.answered_at for press in presses))
            await asyncio.sleep(4)  # it is the time that is tried
            other.execute("ROLLBACK")
        for press in presses:
            await press.answered(patience=30)
        await daemon.until("turn.finished")
    assert max(press.seconds for press in presses) < 2
    assert [press.text for press in presses].count("Approved.") == 1
    assert town.made()
