"""A real database in a file, and a clock that stands still."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from zerobot.store.database import Database, open_database
from zerobot.testing.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "zerobot.db"


@pytest.fixture
async def database(path: Path) -> AsyncIterator[Database]:
    async with open_database(path) as opened:
        yield opened
