"""What `doctor` says about a bot."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from channels.telegram import KIND
from tests.platforms.telegram_house import TelegramHouse, telegram_house
from tests.platforms.telegram_server import TelegramServer
from zerobot.core.channel import Finding
from zerobot.core.places import Place


@pytest.fixture
async def house() -> AsyncIterator[TelegramHouse]:
    async with telegram_house() as house:
        yield house


async def findings(house: TelegramHouse, **settings: object) -> list[Finding]:
    table = {"bot_token": house.server.token, "api_base": house.server.api_base, **settings}
    return [one async for one in KIND.check(KIND.settings.model_validate(table), house.services)]


async def test_all_is_well(house: TelegramHouse) -> None:
    """A line for the token, one for the webhook, one for groups."""
    found = await findings(house)
    assert [one.level for one in found] == ["ok", "ok", "ok"]
    assert "@zero_bot" in found[0].text


async def test_a_wrong_token(house: TelegramHouse) -> None:
    """The advice names the key; no line has the token."""
    (found,) = await findings(house, bot_token="4242:wrong")
    assert found.level == "fail"
    assert "[channels.telegram] bot_token" in found.advice
    assert "4242:wrong" not in str(found)


async def test_no_server(house: TelegramHouse) -> None:
    """A server that is not there is named."""
    (found,) = await findings(house, api_base="http://127.0.0.1:9")
    assert found.level == "fail"
    assert "http://127.0.0.1:9" in found.text


async def test_what_would_keep_messages_from_us(house: TelegramHouse) -> None:
    """A webhook, and privacy mode where the bot should read everything."""
    house.server.webhook = "https://example.com"
    found = await findings(house, require_mention=False)
    assert [one.level for one in found] == ["ok", "warn", "warn"]


def test_groups_have_a_pace_of_their_own() -> None:
    """Telegram takes a message a second in a chat and 20 a minute in a group, whose ids are negative."""
    group, direct = Place("telegram", "-100123", "11"), Place("telegram", "1001")
    assert KIND.pace.draft_interval_in(group) == 3.1
    assert KIND.pace.calls_in(group) == (20, 60.0)
    assert KIND.pace.draft_interval_in(direct) == 1.1
    assert KIND.pace.calls_in(direct) == (1, 1.0)


async def test_opening_connects_nothing() -> None:
    """A kind opens a channel without a call."""
    async with TelegramServer() as server, telegram_house() as house:
        settings = KIND.settings.model_validate({"bot_token": server.token, "api_base": server.api_base})
        channel = KIND.open(settings, house.services)
        await channel.close()
        assert server.calls == []


def test_a_kind_is_read_without_its_library() -> None:
    """`config check` and a daemon without this channel don't pay for the library, nor need it."""
    code = "import sys, channels.telegram; print([name for name in ('telegram', 'httpx') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
