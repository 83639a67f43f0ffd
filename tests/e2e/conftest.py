"""The stage on which the end-to-end tests play."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.stage import Stage
from tests.platforms.model_server import ModelServer
from tests.platforms.telegram_server import TelegramServer


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """A model, a Telegram and people; the daemon is started by the test. Whoever breaks a rate limit fails it."""
    async with ModelServer(models=("m-1", "m-2")) as model, TelegramServer() as telegram:
        yield Stage(tmp_path, model, telegram)
        assert telegram.violations == []
