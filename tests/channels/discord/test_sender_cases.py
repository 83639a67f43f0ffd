"""Who sent it: events with known right answers, from the gateway's form to who may talk and who may decide."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.channels.security_cases import cases, check_sender
from tests.platforms.discord_house import discord_house

# What each event of the gateway has beside what a case is about.
LEFT_OUT = {"id": "9", "token": "t", "channel_id": "8", "timestamp": "2026-01-02T03:04:05+00:00"}
BEA = "9999"


@pytest.mark.parametrize("case", cases("senders", "discord"), ids=lambda case: str(case["id"]))
async def test_an_event_counts_for_who_really_sent_it(case: dict[str, Any]) -> None:
    """By the platform's id alone; no bot is a person, no reaction a press, and only an operator's press counts."""
    text = json.dumps(case["event"]).replace("{approve}", "a:0123456789abcdefghijkl").replace("{code}", "BCDF23")
    event = json.loads(text)
    where = {"guild_id": "7"} if "member" in event["d"] else {}
    async with discord_house() as house:
        bea = house.server.user(BEA, name="Bea", username="bea")
        async with house.running() as intake:
            house.server.emit(event["t"], LEFT_OUT | where | event["d"])
            # What came after it was taken, so it was.
            after = bea.says("after it")
            await bea.sends_press(after, "a:after").answered()
            await intake.until(lambda: "after it" in intake.texts)
        assert "discord.undecodable" not in house.log.names
    said = [each for each in intake.accepted if each.sender.id != BEA]
    pressed = [each for each in intake.presses if each.presser.id != BEA]
    check_sender(case, [*said, *pressed])
