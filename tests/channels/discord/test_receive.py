"""Receiving from the strict double: over drops, restarts and absences."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from tests.platforms.discord_house import DiscordHouse, discord_house
from tests.platforms.discord_server import Person
from zerobot.core.errors import ChannelFaultError, UnclearError
from zerobot.core.places import Place


@pytest.fixture
async def house() -> AsyncIterator[DiscordHouse]:
    async with discord_house() as house:
        yield house


@pytest.fixture
def ann(house: DiscordHouse) -> Person:
    return house.server.user("1001", name="Ann", username="ann")


async def test_a_message_is_handed_over(house: DiscordHouse, ann: Person) -> None:
    """What a person writes arrives as an envelope, and is answered where it was written."""
    async with house.running() as intake:
        ann.says("hello")
        await intake.until(lambda: intake.texts == ["hello"])
        (envelope,) = intake.accepted
        await house.send(envelope.place.chat, "**Hi**", reply_to=envelope.message_id)
    assert envelope.place == Place("discord", "@1001")
    assert str(envelope.sender) == "discord:1001"
    assert envelope.direct
    assert ann.chat.texts == ["**Hi**"]
    assert ann.chat.replies[0].reply_to is not None
    assert house.server.of("open_direct") == []


async def test_least_intents_are_asked_for(house: DiscordHouse) -> None:
    """Messages of servers and direct ones, and their content: no members, no presences, not even the servers."""
    async with house.running():
        (identify,) = house.server.gateway.ops(2)
    assert identify["d"]["intents"] == 1 << 9 | 1 << 12 | 1 << 15


async def test_nothing_is_passed_over_while_the_disk_is_full(house: DiscordHouse, ann: Person) -> None:
    """What could not be stored is tried again, in order, until it can be."""
    async with house.running() as intake:
        intake.fail(times=3)
        ann.says("one")
        ann.says("two")
        await intake.until(lambda: intake.texts == ["one", "two"])
    assert house.log.names.count("discord.not_stored") == 3


async def test_a_dropped_connection_is_taken_up_again(house: DiscordHouse, ann: Person) -> None:
    """The session is resumed, and what was said meanwhile comes with it, once."""
    async with house.running() as intake:
        await house.server.gateway.drop()
        ann.says("meanwhile")
        await intake.until(lambda: intake.texts == ["meanwhile"])
        ann.says("after it")
        await intake.until(lambda: intake.texts == ["meanwhile", "after it"])
    assert house.server.gateway.identifies == 1
    assert house.server.gateway.resumes == 1
    assert len(intake.breaks) == 1
    assert intake.connects == 2


@pytest.mark.parametrize("code", [4000, 4008, 1006])
async def test_a_close_that_leaves_the_session_is_resumed(house: DiscordHouse, ann: Person, code: int) -> None:
    """Discord asks for another connection, and knows the session still."""
    async with house.running() as intake:
        await house.server.gateway.drop(code=None if code == 1006 else code)
        ann.says("hello")
        await intake.until(lambda: intake.texts == ["hello"])
    assert house.server.gateway.identifies == 1


async def test_a_request_to_connect_again_is_obeyed(house: DiscordHouse, ann: Person) -> None:
    """Opcode 7."""
    async with house.running() as intake:
        await house.server.gateway.ask_to_reconnect()
        await house.server.wait_for(lambda: house.server.gateway.resumes == 1)
        ann.says("hello")
        await intake.until(lambda: intake.texts == ["hello"])


async def test_a_lost_session_is_begun_anew_and_the_history_read(house: DiscordHouse, ann: Person) -> None:
    """After "invalid session" nothing is replayed: what was said in a known chat is found there, once, in order."""
    async with house.running() as intake:
        ann.says("before")
        await intake.until(lambda: intake.texts == ["before"])
        house.server.gateway.forget_sessions()
        ann.says("one")
        ann.says("two")
        await house.server.gateway.drop()
        await intake.until(lambda: intake.texts == ["before", "one", "two"])
        ann.says("three")
        await intake.until(lambda: intake.texts == ["before", "one", "two", "three"])
    assert house.server.gateway.identifies == 2
    assert intake.duplicates == []


async def test_a_session_outlives_a_restart(house: DiscordHouse, ann: Person) -> None:
    """Somebody who never wrote before is heard too: the next process takes the session up."""
    async with house.running():
        pass
    ann.says("the first thing that I ever said")
    second = DiscordHouse(house.server, state=house.state)
    async with second.running() as intake:
        await intake.until(lambda: intake.texts == ["the first thing that I ever said"])
    await second.close()
    assert house.server.gateway.identifies == 1


async def test_a_session_whose_gateway_is_gone_is_taken_up_elsewhere(house: DiscordHouse, ann: Person) -> None:
    """Nobody answers at the address that was stored: the API is asked for another one."""
    async with house.running():
        pass
    (key,) = [key for key in house.state.values if key.startswith("session:")]
    house.state.values[key] = house.state.values[key].replace(house.server.gateway_url, "ws://127.0.0.1:9/ws/")
    ann.says("meanwhile")
    second = DiscordHouse(house.server, state=house.state)
    async with second.running() as intake:
        await intake.until(lambda: intake.texts == ["meanwhile"])
    await second.close()
    assert house.server.gateway.identifies == 1
    assert len(intake.breaks) == 1


async def test_what_is_old_or_too_much_is_let_be(house: DiscordHouse, ann: Person) -> None:
    """After a long absence yesterday's messages are not answered, and of many only so many."""
    async with house.running() as intake:
        ann.says("hi")
        await intake.until(lambda: intake.texts == ["hi"])
    house.server.gateway.forget_sessions()
    ann.says("yesterday", age=25 * 3600)
    ann.says("today")
    second = DiscordHouse(house.server, state=house.state)
    async with second.running() as intake:
        await intake.until(lambda: intake.texts == ["today"])
    await second.close()
    house.server.gateway.forget_sessions()
    for number in range(350):
        ann.says(f"{number}")
    third = DiscordHouse(house.server, state=house.state)
    async with third.running() as intake:
        await intake.until(lambda: len(intake.texts) == 300)
        ann.says("now")
        await intake.until(lambda: intake.texts[-1] == "now")
    await third.close()
    assert "discord.catchup_cut" in third.log.names


async def test_a_history_that_cannot_be_read_keeps_nothing_up(house: DiscordHouse, ann: Person) -> None:
    """A chat that is gone is passed over; a passing fault is tried again."""
    async with house.running() as intake:
        ann.says("hi")
        await intake.until(lambda: intake.texts == ["hi"])
    house.server.gateway.forget_sessions()
    ann.says("missed")
    house.server.fail_next("history", 503)
    house.server.break_next("history")
    second = DiscordHouse(house.server, state=house.state)
    async with second.running() as intake:
        await intake.until(lambda: intake.texts == ["missed"])
    await second.close()
    house.server.gateway.forget_sessions()
    house.server.fail_next("history", 403, 50001, "Missing Access")
    third = DiscordHouse(house.server, state=house.state)
    async with third.running() as intake:
        ann.says("now")
        await intake.until(lambda: intake.texts == ["now"])
    await third.close()


async def test_heartbeats_without_an_answer_are_a_broken_connection(house: DiscordHouse, ann: Person) -> None:
    """A socket that is open and dead is noticed after two beats, told, and left for another."""
    house.server.gateway.beat_seconds = 0.05
    async with house.running() as intake:
        house.server.gateway.acknowledges = False
        await intake.until(lambda: intake.breaks)
        house.server.gateway.acknowledges = True
        ann.says("hello")
        await intake.until(lambda: intake.texts == ["hello"])
    assert "its heartbeats are not acknowledged" in intake.breaks


async def test_a_gateway_that_is_away_is_tried_again(house: DiscordHouse, ann: Person) -> None:
    """Neither a refused handshake nor an API that does not answer ends the channel."""
    house.server.gateway.lets_in = False
    house.server.fail_next("me", 502)
    house.server.break_next("gateway_bot")

    async def mend() -> None:
        await house.intake.until(lambda: len(house.intake.breaks) >= 4)
        house.server.gateway.lets_in = True

    async with asyncio.TaskGroup() as group:
        group.create_task(mend())
        async with house.running() as intake:
            ann.says("hello")
            await intake.until(lambda: intake.texts == ["hello"])


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (4014, "MESSAGE CONTENT INTENT"),
        (4004, "[channels.discord] bot_token"),
        (4013, "update"),
        (4011, "several bots"),
    ],
)
async def test_a_close_that_nothing_mends_parks_the_channel(house: DiscordHouse, code: int, words: str) -> None:
    """Who reads it knows what to do."""
    house.server.gateway.refuses = code
    with pytest.raises(ChannelFaultError) as caught:
        await house.channel.run(house.intake)
    assert words in caught.value.advice


async def test_a_refused_token_parks_the_channel_and_is_not_told(house: DiscordHouse) -> None:
    """By the API, before any session is begun."""
    wrong = DiscordHouse(house.server, token="wrong-token")
    with pytest.raises(ChannelFaultError) as caught:
        await wrong.channel.run(wrong.intake)
    await wrong.close()
    assert "[channels.discord] bot_token" in caught.value.advice
    assert "wrong-token" not in f"{caught.value} {caught.value.advice} {wrong.log.events}"
    assert house.server.gateway.identifies == 0


async def test_no_session_is_begun_when_none_is_left(house: DiscordHouse) -> None:
    """One too many, and Discord resets the token."""
    house.server.sessions_left = 0

    async def give_one() -> None:
        await house.intake.until(lambda: house.intake.breaks)
        assert house.server.gateway.identifies == 0
        house.server.sessions_left = 1

    async with asyncio.TaskGroup() as group:
        group.create_task(give_one())
        async with house.running():
            pass
    assert house.clock.waits[0] >= 2.0


async def test_threads_posts_and_servers(house: DiscordHouse, ann: Person) -> None:
    """A thread is a place of its own; a forum's post brings its title along."""
    team = house.server.channel("team")
    forum = house.server.channel("help", guild=team.guild, forum=True)
    thread, post = house.server.thread(team), house.server.thread(forum, "It does not start")
    async with house.running() as intake:
        ann.says("@zero one", chat=team)
        ann.says("@zero two", chat=thread)
        ann.says("@zero please help", chat=post)
        await intake.until(lambda: len(intake.accepted) == 3)
    assert [envelope.place.chat for envelope in intake.accepted] == [team.id, thread.id, post.id]
    assert intake.texts == ["one", "two", "It does not start\nplease help"]


async def test_a_mention_of_the_bots_role_is_meant_for_it(house: DiscordHouse, ann: Person) -> None:
    """Its roles are asked for once; another role is talk."""
    team = house.server.channel("team")
    assert team.guild is not None
    team.guild.bot_roles = ["555"]
    async with house.running() as intake:
        for text in ("<@&555> one", "<@&555> two", "<@&666> three", "four"):
            ann.says(text, chat=team)
        await intake.until(lambda: len(intake.accepted) == 4)
    assert [envelope.addressed for envelope in intake.accepted] == [True, True, False, False]
    assert intake.texts[:2] == ["one", "two"]
    assert len(house.server.of("member")) == 1


async def test_only_people_are_heard(house: DiscordHouse, ann: Person) -> None:
    """No bot, no webhook, no notice of Discord's own, and not the bot itself."""
    robot = house.server.user("7", name="Robot", is_bot=True)
    async with house.running() as intake:
        robot.says("beep")
        ann.says("hook", webhook_id="5")
        ann.says("joined", type=7)
        await house.send("@1001", "from me")
        ann.says("hello")
        await intake.until(lambda: intake.texts)
    assert intake.texts == ["hello"]


async def test_it_listens_where_it_is_told_to(house: DiscordHouse, ann: Person) -> None:
    """By server and by channel; in a thread of such a channel too, and always in direct messages."""
    team = house.server.channel("team")
    other = house.server.channel("other", guild=team.guild)
    elsewhere = house.server.channel("elsewhere")
    assert team.guild is not None
    choosy = DiscordHouse(house.server, allowed_guilds=[int(team.guild.id)], allowed_channels=[team.id])
    async with choosy.running() as intake:
        for number, chat in enumerate([elsewhere, other, house.server.thread(other)]):
            ann.says(f"@zero not {number}", chat=chat)
        for number, chat in enumerate([team, house.server.thread(team), ann.chat]):
            ann.says(f"@zero {number}", chat=chat)
        await intake.until(lambda: len(intake.accepted) == 3)
        await house.server.wait_for(lambda: house.server.commands)
        told = await ann.commands("help", chat=elsewhere).answered()
    await choosy.close()
    assert [envelope.text for envelope in intake.accepted] == ["0", "1", "2"]
    assert told.is_private


async def test_edits_and_deletions_are_told(house: DiscordHouse, ann: Person) -> None:
    """Whose message it was that is gone Discord does not say; a preview that appears is no edit."""
    team = house.server.channel("team")
    async with house.running() as intake:
        here, there = ann.says("one"), ann.says("@zero two", chat=team)
        ann.edits(here, "three")
        ann.edits(there, "@zero four")
        house.server.emit("MESSAGE_UPDATE", {"id": here.id, "channel_id": ann.chat.id, "embeds": []})
        ann.deletes(here)
        ann.deletes(there)
        await intake.until(lambda: len(intake.edits) == 4)
    assert [(edit.place.chat, edit.message_id, edit.text) for edit in intake.edits] == [
        ("@1001", here.id, "three"),
        (team.id, there.id, "four"),
        ("@1001", here.id, None),
        (team.id, there.id, None),
    ]
    assert [edit.sender is None for edit in intake.edits] == [False, False, True, True]


async def test_one_odd_event_does_not_make_the_channel_deaf(house: DiscordHouse, ann: Person) -> None:
    """Those around it arrive."""
    async with house.running() as intake:
        house.server.emit("MESSAGE_CREATE", {"id": "?", "author": {"id": "1"}, "type": 0, "guild_id": "2"})
        house.server.emit("MESSAGE_CREATE", {"id": "5"})
        house.server.emit("INTERACTION_CREATE", {"type": 3, "user": {"id": "1"}})
        ann.says("hello")
        await intake.until(lambda: intake.texts == ["hello"])
    assert house.log.names.count("discord.undecodable") == 3


async def test_the_commands_are_told_when_they_change(house: DiscordHouse) -> None:
    """Once, not at each start; in other words when the scope is another."""
    async with house.running():
        await house.server.wait_for(lambda: house.server.commands)
        await house.server.wait_for(lambda: "commands" in house.state.values)
    assert [command["name"] for command in house.server.commands] == ["ask", "help", "stop", "freeze"]
    house.server.gateway.forget_sessions()
    second = DiscordHouse(house.server, state=house.state)
    async with second.running():
        await house.server.wait_for(lambda: house.server.gateway.identifies == 2)
    await second.close()
    assert len(house.server.of("commands")) == 1
    guild = house.server.guild()
    house.server.gateway.forget_sessions()
    third = DiscordHouse(house.server, state=house.state, command_scope="guild", allowed_guilds=[guild.id])
    async with third.running():
        await house.server.wait_for(lambda: guild.commands)
    await third.close()
    assert house.server.commands == []


async def test_no_line_of_a_log_has_a_secret_or_words(
    house: DiscordHouse, ann: Person, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the library's lines nor ours, at any level."""
    caplog.set_level(logging.DEBUG)
    async with house.running() as intake:
        ann.says("heron")
        await intake.until(lambda: intake.texts)
        house.server.break_next("create_message")
        with pytest.raises(UnclearError) as caught:
            await house.send("@1001", "otter")
    shown = caplog.text + str(house.log.events) + str(caught.value) + str(intake.breaks)
    for secret in (house.server.token, "heron", "otter"):
        assert secret not in shown
