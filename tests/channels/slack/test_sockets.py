"""Connections: replaced in time, found dead, refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from channels.slack import socket as sockets
from tests.platforms.slack_house import SlackHouse
from tests.platforms.slack_server import Person
from zerobot.core.errors import ChannelFaultError


async def test_the_next_connection_is_there_before_the_old_one_goes(house: SlackHouse, ann: Person) -> None:
    """Slack refreshes connections as a matter of routine: nothing is lost, nothing comes twice, nobody is alarmed."""
    async with house.running() as intake:
        for number in range(6):
            ann.says(str(number))
            if number % 2:
                await house.server.sockets.refresh()
        await intake.until(lambda: len(intake.accepted) == 6)
    assert intake.texts == [str(number) for number in range(6)]
    assert (intake.duplicates, intake.breaks, house.server.sockets.lost) == ([], [], [])
    assert house.server.sockets.connects == 4


async def test_a_connection_that_breaks_is_made_again(house: SlackHouse, ann: Person) -> None:
    """What was said in between is read from the history."""
    async with house.running() as intake:
        ann.says("before")
        await intake.until(lambda: intake.accepted)
        await house.server.sockets.drop()
        ann.says("meanwhile")
        await intake.until(lambda: "meanwhile" in intake.texts)
    assert len(intake.breaks) == 1


async def test_a_connection_from_which_nothing_is_heard_is_given_up(
    house: SlackHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is not greeted is of no use."""
    monkeypatch.setattr(sockets, "GREETING_SECONDS", 0.05)
    house.server.sockets.greets = False
    async with asyncio.TaskGroup() as group:
        task = group.create_task(house.channel.run(house.intake))
        await house.intake.until(lambda: house.intake.breaks)
        assert house.intake.connects == 0
        house.server.sockets.greets = True
        await house.intake.until(lambda: house.intake.connects)
        task.cancel()
    assert house.intake.breaks[0] == "no answer"


@pytest.mark.parametrize(
    ("tokens", "key"),
    [({"bot_token": "xoxb-wrong"}, "bot_token"), ({"app_token": "xapp-wrong"}, "app_token")],
)
async def test_a_refused_token_parks_the_channel(house: SlackHouse, tokens: dict[str, Any], key: str) -> None:
    """It is said which one, and what to do; nothing is tried for ever."""
    wrong = SlackHouse(house.server, **tokens)
    with pytest.raises(ChannelFaultError) as raised:
        await wrong.channel.run(wrong.intake)
    assert f"[channels.slack] {key}" in raised.value.advice
    assert "wrong" not in f"{raised.value} {raised.value.advice}"
    await wrong.close()


async def test_a_token_that_is_revoked_parks_the_channel(house: SlackHouse) -> None:
    """Also while it runs."""
    house.server.fail_next("apps.connections.open", "token_revoked", times=9)
    with pytest.raises(ChannelFaultError):
        await house.channel.run(house.intake)
    assert len(house.server.of("apps.connections.open")) == 1


async def test_socket_mode_that_is_switched_off_parks_the_channel(house: SlackHouse) -> None:
    """Slack says so by its reason."""
    task = asyncio.create_task(house.channel.run(house.intake))
    await house.intake.until(lambda: house.intake.connects)
    await house.server.sockets.say({"type": "disconnect", "reason": "link_disabled"})
    with pytest.raises(ChannelFaultError, match="Socket Mode"):
        await task


async def test_an_outage_is_waited_out(house: SlackHouse, ann: Person) -> None:
    """Gateways' errors, limits and broken connections, at the start and later, each longer than the one before."""
    house.server.fail_next("auth.test", "", 503)
    house.server.break_next("auth.test")
    house.server.fail_next("apps.connections.open", "ratelimited", retry_after=30)
    house.server.fail_next("apps.connections.open", "", 502)
    async with house.running() as intake:
        ann.says("hello")
        await intake.until(lambda: intake.accepted)
    assert len(intake.breaks) == 4
    assert max(house.clock.waits) >= 30


async def test_refreshes_without_end_are_slowed_down(house: SlackHouse) -> None:
    """A server that sends us away at each greeting does not get a storm of connections."""
    async with house.running():
        for _ in range(3):
            await house.server.sockets.refresh()
        await house.server.wait_for(lambda: house.server.sockets.connects >= 4)
    assert len(house.clock.waits) >= 1
