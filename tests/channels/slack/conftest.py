"""What the tests of Slack's adapter share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.platforms.slack_house import SlackHouse, slack_house
from tests.platforms.slack_server import Person
from tests.platforms.slack_world import Channel


@pytest.fixture
async def house() -> AsyncIterator[SlackHouse]:
    """An adapter beside the double; nothing may go astray."""
    async with slack_house() as house:
        yield house


@pytest.fixture
def ann(house: SlackHouse) -> Person:
    """Somebody who talks to the bot."""
    return house.server.user("U1001", name="Ann")


@pytest.fixture
def team(house: SlackHouse) -> Channel:
    """A channel that the bot is in."""
    return house.server.channel("team")
