"""Discord, people and a model."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.channels.discord.town import DiscordTown
from tests.platforms.discord_server import DiscordServer
from tests.platforms.model_server import ModelServer


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[DiscordTown]:
    """Whoever breaks a rate limit, or answers an interaction too late, fails the test."""
    async with ModelServer(models=("m-1",)) as model, DiscordServer() as discord:
        yield DiscordTown(tmp_path, model, discord)
        assert discord.violations == []
        assert discord.interactions.late == []
