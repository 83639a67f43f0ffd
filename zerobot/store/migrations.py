"""Numbered migrations: each `NNN_name.sql` beside this module is one version, applied in one transaction."""

import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from zerobot.core.errors import StorageError

_NAME = re.compile(r"(\d{3})_[a-z0-9_]+\.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step of the schema."""

    version: int
    """The database's `user_version` once it is applied; from 1, without gaps."""
    name: str
    sql: str


def load_migrations() -> tuple[Migration, ...]:
    """Read the migrations that ship in the package, in order."""
    found: list[Migration] = []
    for entry in files("zerobot.store").joinpath("migrations").iterdir():
        match = _NAME.fullmatch(entry.name)
        if match is not None:
            sql = entry.read_text(encoding="utf-8")
            found.append(Migration(version=int(match[1]), name=entry.name, sql=sql))
    found.sort(key=lambda migration: migration.version)
    versions = [migration.version for migration in found]
    assert versions == list(range(1, len(found) + 1)), f"migrations must be numbered from 1 without gaps: {versions}"
    return tuple(found)


def schema_version(db: sqlite3.Connection) -> int:
    """The version that a database is at; 0 for a new file."""
    row = db.execute("PRAGMA user_version").fetchone()
    return int(row[0])


def migrate(db: sqlite3.Connection, migrations: Sequence[Migration]) -> int:
    """Bring a database to the newest version; return the version that it had before.

    Who calls it holds the state directory's lock, so nobody else migrates the same file.

    Args:
        db: In autocommit mode, outside any transaction.
        migrations: All versions from 1, in order.

    Raises:
        StorageError: A newer zerobot wrote this database. It is left as it is.
        sqlite3.Error: A migration failed; the database is at the version before it.
    """
    before = schema_version(db)
    if before > len(migrations):
        raise StorageError(
            f"this database was written by a newer zerobot (schema {before}, this version knows {len(migrations)}): "
            "install that version again, or restore a backup made before the upgrade"
        )
    for migration in migrations[before:]:
        try:
            # The version is set inside the transaction: a crash leaves either both or neither.
            db.executescript(f"BEGIN IMMEDIATE;\n{migration.sql}\nPRAGMA user_version = {migration.version};\nCOMMIT;")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
    return before
