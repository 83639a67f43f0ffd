"""Who decided what: the audit trail and the decisions on approvals, which are their own record, as one list."""

import sqlite3
from dataclasses import dataclass
from datetime import datetime

from zerobot.store.columns import moment
from zerobot.store.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """One thing that somebody did."""

    at: datetime
    actor: str
    """An identity, or `daemon`."""
    action: str
    """A stable word: `approval.approved`, `approval.denied`, `pair.approve`, `freeze`, ..."""
    subject: str
    """For an approval its code, the tool and where it was asked for."""
    reason: str = ""
    """What an operator said about it."""


_LATEST = """
    SELECT at, actor, action, subject, '' AS reason FROM audit
    UNION ALL
    SELECT decided_at, decided_by, 'approval.' || state, code || ' ' || tool || ' in ' || channel || ':' || chat, reason
    FROM approvals WHERE state IN ('approved', 'denied')
    ORDER BY at DESC LIMIT :limit
"""


async def latest_deeds(database: Database, limit: int) -> list[Deed]:
    """The newest deeds, newest first."""
    return await database.read(lambda db: [_deed(row) for row in db.execute(_LATEST, {"limit": limit})])


def _deed(row: sqlite3.Row) -> Deed:
    return Deed(
        at=moment(row["at"]), actor=row["actor"], action=row["action"], subject=row["subject"], reason=row["reason"]
    )
