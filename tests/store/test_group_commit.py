"""Writes that were asked for together share a commit, and nothing else."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from zerobot.store.database import Database, open_database

FRAME = 4096 + 24
"""Bytes that one changed page takes in the write-ahead log: https://www.sqlite.org/fileformat2.html#the_write_ahead_log"""


def put(value: int) -> Callable[[sqlite3.Connection], int]:
    """Make a write that notes a value and returns how many are there then."""

    def transaction(db: sqlite3.Connection) -> int:
        db.execute("INSERT INTO channel_state (channel, key, value) VALUES ('test', ?, ?)", (f"{value:03}", str(value)))
        return int(db.execute("SELECT count(*) FROM channel_state").fetchone()[0])

    return transaction


def put_and_fail(db: sqlite3.Connection) -> int:
    """Note a value and fail."""
    put(999)(db)
    raise LookupError("mine")


async def values(database: Database) -> list[int]:
    """What is committed."""
    sql = "SELECT value FROM channel_state ORDER BY key"
    return [int(row[0]) for row in await database.read(lambda db: db.execute(sql).fetchall())]


async def test_writes_asked_for_together_are_done_in_order(tmp_path: Path) -> None:
    """Each sees those asked for before it and none behind it, and gets its own result."""
    async with open_database(tmp_path / "db") as database:
        assert await asyncio.gather(*(database.write(put(n)) for n in range(30))) == list(range(1, 31))


async def test_writes_asked_for_together_share_a_commit(tmp_path: Path) -> None:
    """Thirty small writes at once put far fewer pages into the log than thirty one after another."""
    sizes = []
    for name, at_once in (("apart", 1), ("together", 30)):
        async with open_database(tmp_path / name) as database:
            begin = (tmp_path / f"{name}-wal").stat().st_size
            for first in range(0, 30, at_once):
                await asyncio.gather(*(database.write(put(first + n)) for n in range(at_once)))
            sizes.append((tmp_path / f"{name}-wal").stat().st_size - begin)
    assert sizes[0] >= 30 * FRAME
    assert sizes[1] < sizes[0] / 4


async def test_a_write_that_fails_takes_no_other_along(tmp_path: Path) -> None:
    """Of writes asked for together only the failing one raises, with its own error, and nothing of it stays."""
    async with open_database(tmp_path / "db") as database:
        writes = [database.write(each) for each in (put(0), put(1), put_and_fail, put(2), put(3))]
        results = await asyncio.gather(*writes, return_exceptions=True)
        assert [result for result in results if isinstance(result, int)] == [1, 2, 3, 4]
        assert isinstance(results[2], LookupError)
        assert await values(database) == [0, 1, 2, 3]


async def test_a_cancelled_caller_costs_the_others_nothing(tmp_path: Path) -> None:
    """Writes asked for together with one whose caller is cancelled are stored; so is that one, before it is told."""
    async with open_database(tmp_path / "db") as database:
        tasks = [asyncio.create_task(database.write(put(n))) for n in range(4)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        tasks[2].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(result, asyncio.CancelledError) for result in results] == [True, False, True, False]
        assert await values(database) == [0, 1, 2, 3]


async def test_a_closed_database_tells_every_writer(tmp_path: Path) -> None:
    """Writes asked for after the end all raise; none waits for ever."""
    async with open_database(tmp_path / "db") as database:
        pass
    results = await asyncio.gather(*(database.write(put(n)) for n in range(3)), return_exceptions=True)
    assert all(isinstance(result, ValueError) for result in results)
    with pytest.raises(ValueError, match="closed"):
        await database.write(put(3))
