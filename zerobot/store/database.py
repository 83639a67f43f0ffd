"""The database: one writer, a few readers, and one function a transaction."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, Self, TypeVar, cast

import aiosqlite

from zerobot.core.errors import StorageError
from zerobot.store.migrations import load_migrations, migrate

T = TypeVar("T")
Transaction = Callable[[sqlite3.Connection], T]
"""What runs between BEGIN and COMMIT. It awaits nothing and keeps nothing of the connection."""

BUSY_TIMEOUT = 5.0
"""Seconds to wait for another process (a backup, somebody's `sqlite3` shell) before giving up."""

WAL_KEPT = 8 * 1024 * 1024
"""Bytes to which the write-ahead log shrinks after a checkpoint, so that one burst does not keep its size for ever."""

# FULL, for all that is written: one fsync a commit. With NORMAL a power cut (though not a killed process) may take
# back the last commits, and these are promises made to others: "we have your message" (the platform forgets it), "this
# tool was started" (else it runs again), "this part is being sent" (else it is sent twice).
WRITER_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    f"PRAGMA journal_size_limit = {WAL_KEPT}",
)
READER_PRAGMAS = ("PRAGMA query_only = ON",)
BEGIN_WRITE = "BEGIN IMMEDIATE"

# Circumstances; whatever else SQLite complains of (a constraint, bad SQL) is a bug and stays what it is.
_CIRCUMSTANCES = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_NOLFS,
        sqlite3.SQLITE_PROTOCOL,
    }
)


class _Connection(aiosqlite.Connection):
    """An aiosqlite connection that runs a whole function on its thread."""

    async def __aenter__(self) -> Self:
        await self
        return self

    async def run(self, function: Transaction[T]) -> T:
        """Run a function with the connection, after whatever was asked before."""
        # aiosqlite's public methods are a thread hop a statement. Its queue takes any function, but only by this
        # protected name; there is no other use of it.
        result = await self._execute(lambda: function(self._conn))  # type: ignore[no-untyped-call]
        return cast("T", result)


@dataclass(slots=True, eq=False)
class _Write(Generic[T]):
    """A function that waits for its transaction, then what became of it."""

    function: Transaction[T]
    results: list[T] = field(default_factory=list)
    """One, once it is committed."""
    error: BaseException | None = None

    def run(self, db: sqlite3.Connection) -> None:
        """Run it in a transaction of its own."""
        try:
            self.results = [_in_transaction(self.function, BEGIN_WRITE, db)]
        except Exception as error:  # noqa: BLE001 -- it is raised again where the write was asked for
            self.error = error


class Database:
    """The open database. Made by `open_database`."""

    def __init__(self, writer: _Connection, readers: list[_Connection]) -> None:
        self._writer = writer
        self._asked: list[_Write[Any]] = []
        self._writing = asyncio.Lock()
        self._idle: asyncio.LifoQueue[_Connection] = asyncio.LifoQueue()
        for reader in readers:
            self._idle.put_nowait(reader)

    async def write(self, function: Transaction[T]) -> T:
        """Run a function in a transaction and return what it returns; when it raises, nothing of it stays.

        Writes run one after another, in the order in which they were asked for. What was asked for while another
        write was under way is committed together, with one fsync for all; if one of these fails, each is run anew by
        itself, so a function may run twice and changes nothing but the database.

        A caller that is cancelled meanwhile waits for the end of the transaction and is cancelled then: what a caller
        started is done, or is known to have failed, never under way behind his back.

        Raises:
            StorageError: The database did not store it (full disk, broken file, read-only). A later write may work.
        """
        write = _Write(function)
        self._asked.append(write)
        # Awaited to its end right here, whatever happens to this caller.
        task = asyncio.create_task(self._write_asked())
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait((task,))
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled from write.error
        if not write.results:
            # Only the end of the event loop cancels the task that writes.
            raise write.error or asyncio.CancelledError
        return write.results[0]

    async def _write_asked(self) -> None:
        """Write what is asked for when it is our turn: by then that may have been done, together with others."""
        async with self._writing:
            writes, self._asked = self._asked, []
            if not writes:
                return
            try:
                await self._writer.run(partial(_run_all, writes))
            except Exception as error:  # noqa: BLE001 -- it is raised again where the writes were asked for
                for write in writes:
                    write.error = write.error or error

    async def read(self, function: Transaction[T]) -> T:
        """Run a function on one snapshot of what is committed, beside any write; it cannot change anything.

        Raises:
            StorageError: The file cannot be read.
        """
        reader = await self._idle.get()
        try:
            return await reader.run(partial(_in_transaction, function, "BEGIN"))
        finally:
            self._idle.put_nowait(reader)


@asynccontextmanager
async def open_database(path: Path, *, readers: int = 2) -> AsyncIterator[Database]:
    """Open the database, create it (0600) if there is none, and bring its schema to this version.

    Args:
        path: The file; who opens it holds the lock of its directory.
        readers: Connections for reading beside the writer; each has a thread.

    Raises:
        StorageError: It cannot be opened, is no database, or a newer zerobot wrote it.
    """
    _create_private(path)
    async with AsyncExitStack() as stack:
        with _as_storage_error():
            writer = await stack.enter_async_context(_connection(path, WRITER_PRAGMAS))
            await writer.run(lambda db: migrate(db, load_migrations()))
            pool = [await stack.enter_async_context(_connection(path, READER_PRAGMAS)) for _ in range(readers)]
        yield Database(writer, pool)


def _create_private(path: Path) -> None:
    """Create the file with mode 0600 whatever the umask is; SQLite gives its companion files the mode of this one."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.fchmod(handle, 0o600)
        finally:
            os.close(handle)
    except OSError as error:
        raise StorageError(f"cannot open the database {path}: {error.strerror}") from error


def _connection(path: Path, pragmas: tuple[str, ...]) -> _Connection:
    """A connection that is opened, on its own thread, when it is entered."""

    def connect() -> sqlite3.Connection:
        db = sqlite3.connect(path, timeout=BUSY_TIMEOUT, isolation_level=None, cached_statements=256)
        try:
            db.row_factory = sqlite3.Row
            for pragma in pragmas:
                db.execute(pragma)
        except BaseException:
            db.close()
            raise
        return db

    return _Connection(connect, iter_chunk_size=64)


def _run_all(writes: Sequence[_Write[Any]], db: sqlite3.Connection) -> None:
    """Run writes in one transaction; when that fails, each in its own, so that nobody fails for another's reason."""
    if len(writes) > 1:
        try:
            results = _in_transaction(lambda db: [write.function(db) for write in writes], BEGIN_WRITE, db)
        except Exception:  # noqa: BLE001, S110 -- whose error it is shows when they run one by one
            pass
        else:
            for write, result in zip(writes, results, strict=True):
                write.results = [result]
            return
    for write in writes:
        write.run(db)


def _in_transaction(function: Transaction[T], begin: str, db: sqlite3.Connection) -> T:
    """Run a function between `begin` and COMMIT; roll back when anything fails, the commit included."""
    with _as_storage_error():
        try:
            db.execute(begin)
            result = function(db)
            db.execute("COMMIT")
        except BaseException:
            # After some faults (a full disk) SQLite has rolled back by itself.
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        return result


@contextmanager
def _as_storage_error() -> Iterator[None]:
    """Name what SQLite cannot help as `StorageError`."""
    try:
        yield
    except sqlite3.Error as error:
        # Errors of the Python module itself have no code: those are misuse. The low byte is the kind of an error.
        code = getattr(error, "sqlite_errorcode", 0)
        if code & 0xFF not in _CIRCUMSTANCES:
            raise
        name = getattr(error, "sqlite_errorname", "")
        raise StorageError(f"the database refused: {error} ({name})") from error
