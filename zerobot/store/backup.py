"""An online backup: a consistent copy of the database while the daemon works."""

import os
import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

from zerobot.core.errors import StorageError
from zerobot.store.database import Database

_MAGIC = b"SQLite format 3\x00"
"""How every such file begins (https://www.sqlite.org/fileformat.html, section 1.3)."""


async def backup(database: Database, target: Path) -> int:
    """Copy the database, as it is at this moment, to a file of its own (0600).

    An earlier backup at `target` is replaced, at once and only when the new one is complete.

    Returns:
        Its size in bytes.

    Raises:
        StorageError: It can't be written; or `target` is something else than a database, or lies beside ours: then what
            is there stays.
    """

    def transaction(db: sqlite3.Connection) -> int:
        draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        try:
            _refuse_other_files(target)
            _refuse_own_folder(db, target)
            _copy(db, draft)
            draft.replace(target)
            return target.stat().st_size
        except OSError as error:
            raise StorageError(f"cannot write the backup {target}: {error.strerror}") from error
        finally:
            draft.unlink(missing_ok=True)

    return await database.read(transaction)


def _refuse_own_folder(db: sqlite3.Connection, target: Path) -> None:
    """The live database looks like an earlier backup: nothing in its folder is ever replaced."""
    own = Path(db.execute("PRAGMA database_list").fetchone()["file"]).resolve().parent
    if target.resolve().parent == own:
        raise StorageError(f"{target} is in the folder of the database itself; name a file elsewhere for the backup")


def _refuse_other_files(target: Path) -> None:
    if not target.exists():
        return
    with target.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise StorageError(f"{target} exists and is no database; name another file for the backup")


def _copy(db: sqlite3.Connection, draft: Path) -> None:
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(sqlite3.connect(draft, isolation_level=None)) as copy:
        db.backup(copy)
        # One file, without companions, and readable from a medium that can't be written.
        copy.execute("PRAGMA journal_mode = DELETE")
