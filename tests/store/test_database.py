"""One function a transaction, and what happens when the disk, the caller or the function fails."""

import asyncio
import json
import os
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.rows import envelope
from zerobot.core.errors import StorageError
from zerobot.store.database import Database, open_database
from zerobot.store.envelope_json import decode_envelope, encode_envelope
from zerobot.store.migrations import Migration, load_migrations, migrate, schema_version

INSERT = "INSERT INTO audit (at, actor, action, subject) VALUES ('', '', '', ?)"


def put(text: str) -> "Put":
    return Put(text)


class Put:
    """A transaction that writes one row."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self, db: sqlite3.Connection) -> None:
        db.execute(INSERT, (self.text,))


def subjects(db: sqlite3.Connection) -> list[str]:
    return [row["subject"] for row in db.execute("SELECT subject FROM audit ORDER BY id")]


async def test_what_was_written_is_there_after_reopening(path: Path) -> None:
    """A transaction that returned is on disk."""
    async with open_database(path) as database:
        await database.write(put("one"))
    async with open_database(path) as database:
        assert await database.read(subjects) == ["one"]


async def test_a_transaction_that_raises_leaves_nothing(database: Database) -> None:
    """All or nothing, and the error reaches the caller as it is."""

    def half(db: sqlite3.Connection) -> None:
        put("half")(db)
        raise LookupError("no")

    with pytest.raises(LookupError):
        await database.write(half)
    await database.write(put("after"))
    assert await database.read(subjects) == ["after"]


async def test_a_broken_constraint_is_a_bug_and_no_storage_error(database: Database) -> None:
    """Only what the machine cannot help is called `StorageError`."""
    with pytest.raises(sqlite3.IntegrityError):
        await database.write(lambda db: db.execute("INSERT INTO audit (at) VALUES (NULL)"))
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        await database.write(lambda db: db.execute("INSERT INTO reply_parts VALUES (7, 0, NULL, 'sent', '', 0)"))


async def test_a_reader_cannot_write(database: Database) -> None:
    """`read` refuses a change."""
    with pytest.raises((sqlite3.OperationalError, StorageError)):
        await database.read(put("sly"))
    assert await database.read(subjects) == []


async def test_a_reader_sees_the_last_commit_while_a_write_is_under_way(database: Database) -> None:
    """Reading neither waits for a write nor sees half of it."""
    await database.write(put("old"))
    wrote, may_commit = threading.Event(), threading.Event()

    def slow(db: sqlite3.Connection) -> None:
        put("new")(db)
        wrote.set()
        may_commit.wait()

    write = asyncio.create_task(database.write(slow))
    await asyncio.to_thread(wrote.wait)
    try:
        assert await database.read(subjects) == ["old"]
    finally:
        may_commit.set()
    await write
    assert await database.read(subjects) == ["old", "new"]


async def test_a_cancelled_caller_is_cancelled_after_its_transaction(database: Database) -> None:
    """Nobody is told 'cancelled' while his transaction may still happen; when he is told, it has happened."""
    inside, may_end = threading.Event(), threading.Event()

    def slow(db: sqlite3.Connection) -> None:
        inside.set()
        may_end.wait()
        put("done")(db)

    write = asyncio.create_task(database.write(slow))
    await asyncio.to_thread(inside.wait)
    try:
        for _ in range(3):
            write.cancel()
            await asyncio.sleep(0)
            assert not write.done()
    finally:
        may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await write
    assert await database.read(subjects) == ["done"]


async def test_a_cancelled_caller_of_a_failing_transaction_is_cancelled(database: Database) -> None:
    """The failure is the cause of the cancellation that is raised; no exception is left behind unseen."""
    inside, may_end = threading.Event(), threading.Event()

    def fails(_db: sqlite3.Connection) -> None:
        inside.set()
        may_end.wait()
        raise LookupError("no")

    async def caller() -> BaseException | None:
        try:
            await database.write(fails)
        except asyncio.CancelledError as error:
            return error.__cause__
        return None

    write = asyncio.create_task(caller())
    await asyncio.to_thread(inside.wait)
    write.cancel()
    may_end.set()
    assert isinstance(await write, LookupError)


async def test_writes_happen_in_the_order_in_which_they_were_asked_for(database: Database) -> None:
    """First in, first out."""
    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(database.write(put(str(number))))
    assert await database.read(subjects) == [str(number) for number in range(20)]


async def test_a_full_disk_is_a_storage_error_and_passes(database: Database) -> None:
    """SQLITE_FULL loses only its own transaction; once there is room, the same connection works on."""

    def pages(db: sqlite3.Connection) -> int:
        return int(db.execute("PRAGMA page_count").fetchone()[0])

    await database.write(put("before"))
    limit = await database.write(pages)

    def fill(db: sqlite3.Connection) -> None:
        put("small")(db)
        put("x" * 200_000)(db)

    def set_limit(db: sqlite3.Connection, count: int) -> None:
        db.execute(f"PRAGMA max_page_count = {count}")

    await database.write(lambda db: set_limit(db, limit))
    for _ in range(2):
        with pytest.raises(StorageError, match="full"):
            await database.write(fill)
    assert await database.read(subjects) == ["before"]
    await database.write(lambda db: set_limit(db, 1_000_000))
    await database.write(fill)
    assert len(await database.read(subjects)) == 3


async def test_no_database_is_a_storage_error(path: Path) -> None:
    """A file of something else is refused and left as it is."""
    content = b"not a database, and long enough to be read as one" * 50
    await asyncio.to_thread(path.write_bytes, content)
    with pytest.raises(StorageError):
        async with open_database(path):
            pass
    assert await asyncio.to_thread(path.read_bytes) == content


async def test_a_missing_directory_is_a_storage_error(tmp_path: Path) -> None:
    """The error names the file."""
    with pytest.raises(StorageError, match="nowhere"):
        async with open_database(tmp_path / "nowhere" / "zerobot.db"):
            pass


async def test_all_files_are_private_whatever_the_umask_says(path: Path) -> None:
    """The database and its companions are for their owner only."""
    before = os.umask(0)
    try:
        async with open_database(path) as database:
            await database.write(put("secret"))
            files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert files == {"zerobot.db": 0o600, "zerobot.db-wal": 0o600, "zerobot.db-shm": 0o600}


async def test_a_database_that_became_readable_is_closed_again(path: Path) -> None:
    """A restored backup with an open mode is private after the next start."""
    await asyncio.to_thread(path.touch, mode=0o644)
    async with open_database(path):
        assert stat.S_IMODE((await asyncio.to_thread(path.stat)).st_mode) == 0o600


async def test_a_new_file_gets_the_newest_schema(path: Path) -> None:
    """Opening brings a database from version 0 to the last migration; opening again changes nothing."""
    newest = len(load_migrations())
    for _ in range(2):
        async with open_database(path) as database:
            assert await database.read(schema_version) == newest
            assert await database.read(lambda db: db.execute("PRAGMA integrity_check").fetchone()[0]) == "ok"


async def test_a_newer_database_is_refused(path: Path) -> None:
    """A downgrade is told what to do, and the file stays as it was."""
    async with open_database(path) as database:
        await database.write(put("kept"))
        await database.write(lambda db: db.execute("PRAGMA user_version = 900"))
    with pytest.raises(StorageError, match="newer zerobot"):
        async with open_database(path):
            pass
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT subject FROM audit").fetchall() == [("kept",)]
    db.close()


def test_a_failing_migration_leaves_the_version_before_it() -> None:
    """Each migration is all or nothing; those before it stay."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    good = Migration(version=1, name="001_good.sql", sql="CREATE TABLE a (x);")
    bad = Migration(version=2, name="002_bad.sql", sql="CREATE TABLE b (x); INSERT INTO missing VALUES (1);")
    with pytest.raises(sqlite3.OperationalError):
        migrate(db, [good, bad])
    assert schema_version(db) == 1
    assert [row[0] for row in db.execute("SELECT name FROM sqlite_master")] == ["a"]
    mended = Migration(version=2, name="002_bad.sql", sql="CREATE TABLE b (x);")
    assert migrate(db, [good, mended]) == 1
    assert schema_version(db) == 2
    db.close()


def test_an_envelope_that_waits_since_an_older_version_is_read_by_this_one() -> None:
    """What was accepted before an update is answered after it: the row gets the fields that are new since."""
    migrations = load_migrations()
    original = envelope(text="Straße 💡")
    older = json.loads(encode_envelope(original))
    del older["from_bot"]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db, migrations[:5])
        db.execute("PRAGMA foreign_keys = OFF")
        insert = (
            "INSERT INTO inbox (channel, event_id, conversation_id, message_id, sender, album, state, envelope,"
            " accepted_at) VALUES ('pigeon', ?, 1, '', 'pigeon:1', '', 'waiting', ?, '')"
        )
        for number, text in enumerate([json.dumps(older), "", "cut of"]):
            db.execute(insert, (str(number), text))
        migrate(db, migrations)
        stored = [row[0] for row in db.execute("SELECT envelope FROM inbox ORDER BY id")]
    assert decode_envelope(stored[0]) == original
    assert stored[1:] == ["", "cut of"]
