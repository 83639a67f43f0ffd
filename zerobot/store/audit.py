"""Who did what: the entries of the audit trail and the ends of approvals, which are their own record, as one list."""

import sqlite3
from dataclasses import dataclass
from datetime import datetime

from zerobot.core.clock import Clock
from zerobot.store.columns import moment, stamp, storable
from zerobot.store.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One thing that somebody did."""

    at: datetime
    actor: str
    """An identity, or `daemon`."""
    action: str
    """A stable word: `pair.approve`, `grant.revoke`, `freeze`, `approval.denied`, ..."""
    subject: str
    """For an approval its code, the tool and where it was asked for."""
    reason: str = ""
    """What an operator said about it, or why the daemon withdrew it."""


_INSERT = "INSERT INTO audit (at, actor, action, subject) VALUES (:at, :actor, :action, :subject)"
# The second order keeps what came within one tick of the clock: a list read twice is the same.
_LATEST = """
    SELECT at, actor, action, subject, '' AS reason, id AS nth FROM audit
    UNION ALL
    SELECT decided_at, coalesce(decided_by, 'daemon'), 'approval.' || state,
        code || ' ' || tool || ' in ' || channel || ':' || chat, reason, rowid
    FROM approvals WHERE state <> 'pending'
    ORDER BY at DESC, nth DESC LIMIT :limit
"""


def note(db: sqlite3.Connection, actor: str, action: str, subject: str, now: datetime) -> None:
    """Write an entry, in the transaction of what it tells of."""
    db.execute(_INSERT, {"at": stamp(now), "actor": actor, "action": action, "subject": storable(subject)})


class Audit:
    """The audit trail; entries are never changed."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def note(self, actor: str, action: str, subject: str) -> None:
        """Write an entry of its own."""
        now = self._clock.now()
        await self._database.write(lambda db: note(db, actor, action, subject, now))

    async def latest(self, limit: int = 100) -> list[AuditEntry]:
        """What was done last, newest first, approvals included."""
        return await self._database.read(lambda db: [_entry(row) for row in db.execute(_LATEST, {"limit": limit})])


def _entry(row: sqlite3.Row) -> AuditEntry:
    return AuditEntry(
        at=moment(row["at"]), actor=row["actor"], action=row["action"], subject=row["subject"], reason=row["reason"]
    )
