"""What `zerobot doctor` says of Discord."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from channels.discord import KIND
from tests.platforms.discord_house import DiscordHouse, discord_house
from zerobot.core.channel import Finding


@pytest.fixture
async def house() -> AsyncIterator[DiscordHouse]:
    async with discord_house() as house:
        yield house


async def findings(house: DiscordHouse, **settings: Any) -> list[Finding]:
    table = {"api_base": house.server.api_base, "bot_token": house.server.token, **settings}
    return [each async for each in KIND.check(KIND.settings.model_validate(table), house.services)]


async def test_all_is_well(house: DiscordHouse) -> None:
    """Whose token it is, what it may read, where it is, and how it comes elsewhere."""
    house.server.guild()
    found = await findings(house)
    assert [each.level for each in found] == ["ok"] * 3
    assert "https://discord.com/oauth2/authorize?client_id=900000000000000001&scope=bot+applications.commands" in (
        found[2].text
    )


async def test_a_refused_token_is_told_with_its_key(house: DiscordHouse) -> None:
    """And not shown."""
    (found,) = await findings(house, bot_token="wrong-token")
    assert found.level == "fail"
    assert "[channels.discord] bot_token" in found.advice
    assert "wrong-token" not in str(found)


async def test_an_intent_that_is_off_is_found_before_the_start(house: DiscordHouse) -> None:
    """It would park the channel."""
    house.server.guild()
    house.server.application_flags = 0
    found = await findings(house)
    assert [each.level for each in found] == ["ok", "fail", "ok"]
    assert "MESSAGE CONTENT INTENT" in found[1].advice


async def test_a_bot_in_no_server_gets_its_invitation(house: DiscordHouse) -> None:
    """And one that is not where it should listen."""
    found = await findings(house)
    assert found[2].level == "warn"
    assert "permissions=" in found[2].advice
    house.server.guild()
    found = await findings(house, allowed_guilds=["5"])
    assert found[2].level == "warn"
    assert "5" in found[2].text


async def test_an_api_that_does_not_answer(house: DiscordHouse) -> None:
    """Names what to look at."""
    (found,) = await findings(house, api_base="http://127.0.0.1:9/api/v10")
    assert (found.level, "api_base" in found.advice) == ("fail", True)
