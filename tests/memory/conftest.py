"""A real database with two people, their chats, and a group."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.memory.people import People
from zerobot.store.database import Database, open_database
from zerobot.store.memory import SqliteMemory
from zerobot.testing.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(tmp_path / "zerobot.db") as opened:
        yield opened


@pytest.fixture
def memory(database: Database, clock: ManualClock) -> SqliteMemory:
    return SqliteMemory(database, clock)


@pytest.fixture
def people(database: Database) -> People:
    return People(database)
