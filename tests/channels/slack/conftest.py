"""What the tests of Slack's adapter share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.channels.slack.town import SlackTown
from tests.platforms.model_server import ModelServer
from tests.platforms.slack_house import SlackHouse, slack_house
from tests.platforms.slack_server import Person, SlackServer
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


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[SlackTown]:
    """Slack, people and a model."""
    async with ModelServer(models=("m-1",)) as model, SlackServer() as slack:
        yield SlackTown(tmp_path, model, slack)
        assert slack.violations == []
