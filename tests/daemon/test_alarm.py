"""The alarm that the store takes nothing: it cannot go through the store, and is given once."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from zerobot.core.errors import StorageError
from zerobot.daemon.alarm import ObservedDatabase
from zerobot.store.database import open_database
from zerobot.testing.store import Fate, WatchedDatabase


@pytest.fixture
async def databases(tmp_path: Path) -> AsyncIterator[tuple[ObservedDatabase, WatchedDatabase]]:
    """An observed database, and the one in it that a test can make refuse."""
    async with open_database(tmp_path / "zerobot.db", readers=1) as opened:
        inner = WatchedDatabase(opened)
        yield ObservedDatabase(inner), inner


async def test_a_refused_write_is_noticed_and_still_raised(
    databases: tuple[ObservedDatabase, WatchedDatabase],
) -> None:
    """Who writes learns of it as ever, and the next write that succeeds counts as well."""
    observed, inner = databases
    inner.trap(Fate.REFUSED)
    with pytest.raises(StorageError):
        await observed.write(lambda db: db.execute("SELECT 1").fetchone())
    assert observed.refuses
    async with asyncio.timeout(5):
        await observed.refused.wait()
    assert tuple(await observed.write(lambda db: db.execute("SELECT 1").fetchone())) == (1,)
    assert not observed.refuses


async def test_reading_goes_on_while_writes_are_refused(databases: tuple[ObservedDatabase, WatchedDatabase]) -> None:
    """A full disk is no reason not to answer what only reads."""
    observed, inner = databases
    inner.trap(Fate.REFUSED)
    with pytest.raises(StorageError):
        await observed.write(lambda db: db.execute("SELECT 1").fetchone())
    assert tuple(await observed.read(lambda db: db.execute("SELECT 2").fetchone())) == (2,)
    assert observed.refuses
