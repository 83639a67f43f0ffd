"""The world that every crash happens in."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.crash.world import World
from tests.platforms.model_server import ModelServer
from tests.platforms.telegram_server import TelegramServer


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A platform, a model and a person; the test starts the daemons."""
    async with ModelServer() as model, TelegramServer() as telegram:
        yield World(tmp_path, model, telegram)
