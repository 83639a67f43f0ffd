"""Who did what: entries of its own, the ends of approvals, and the calls that ran, which are their own records."""

import sqlite3
from dataclasses import dataclass
from datetime import datetime

from zerobot.core.clock import Clock
from zerobot.store.columns import moment, stamp, storable
from zerobot.store.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One thing that somebody did, or that a tool did for somebody."""

    at: datetime
    actor: str
    """Who decided: an identity, or `daemon`."""
    action: str
    """A stable word: `pair.approve`, `grant.revoke`, `freeze`, `approval.denied`, `tool.ran`, ..."""
    subject: str
    """For an approval its code, the tool and where it was asked for; for a call the tool and where."""
    reason: str = ""
    """What an operator said about it, or why the daemon withdrew it."""
    asked_by: str = ""
    """Whose turn wanted the call."""
    rule: str = ""
    """The rule of the access policy that wanted the call asked, or let it run."""
    digest: str = ""
    """SHA-256 of exactly what was asked for."""
    outcome: str = ""
    """How the call ended: the code of its result; `started` while it runs; empty: it did not start yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which entries are wanted. Empty: all."""

    who: str = ""
    """Who decided or asked: an identity."""
    action: str = ""
    """The beginning of an action: `approval`, `tool.ran`."""
    since: datetime | None = None


_INSERT = "INSERT INTO audit (at, actor, action, subject) VALUES (:at, :actor, :action, :subject)"
# A call that was asked for is told by its approval; of the others a row says that it ran, and by which rule.
# The second order keeps what came within one tick of the clock: a list read twice is the same.
_LATEST = """
    SELECT * FROM (
        SELECT at, actor, action, subject, '' AS reason, '' AS asked_by, '' AS rule, '' AS digest, '' AS outcome,
            id AS nth FROM audit
        UNION ALL
        SELECT a.decided_at, coalesce(a.decided_by, 'daemon'), 'approval.' || a.state,
            a.code || ' ' || a.tool || ' in ' || a.channel || ':' || a.chat, a.reason, a.asker, a.rule, a.digest,
            CASE c.state WHEN 'finished' THEN c.code WHEN 'started' THEN 'started' ELSE '' END, a.rowid
        FROM approvals a JOIN tool_calls c ON c.id = a.call_id WHERE a.state <> 'pending'
        UNION ALL
        SELECT c.started_at, 'daemon', 'tool.ran', c.name || ' in ' || v.channel || ':' || v.chat, '', t.asker,
            c.rule, '', coalesce(c.code, 'started'), c.rowid
        FROM tool_calls c JOIN turns t ON t.id = c.turn_id JOIN conversations v ON v.id = c.conversation_id
        WHERE c.started_at IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM approvals a WHERE a.call_id = c.id AND a.state = 'approved')
    )
    WHERE (:who = '' OR actor = :who OR asked_by = :who)
        AND (:action = '' OR action = :action OR substr(action, 1, length(:action) + 1) = :action || '.')
        AND at >= :since
    ORDER BY at DESC, nth DESC LIMIT :limit
"""


def note(db: sqlite3.Connection, actor: str, action: str, subject: str, now: datetime) -> None:
    """Write an entry, in the transaction of what it tells of."""
    db.execute(_INSERT, {"at": stamp(now), "actor": actor, "action": action, "subject": storable(subject)})


class Audit:
    """The audit trail. The database itself refuses to change or delete an entry."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def note(self, actor: str, action: str, subject: str) -> None:
        """Write an entry of its own."""
        now = self._clock.now()
        await self._database.write(lambda db: note(db, actor, action, subject, now))

    async def latest(self, limit: int = 100, only: AuditFilter = AuditFilter()) -> list[AuditEntry]:
        """What was done last, newest first, approvals and calls included."""
        values = {
            "limit": limit,
            "who": only.who,
            "action": only.action,
            "since": stamp(only.since) if only.since else "",
        }
        return await self._database.read(lambda db: [_entry(row) for row in db.execute(_LATEST, values)])


def _entry(row: sqlite3.Row) -> AuditEntry:
    return AuditEntry(
        at=moment(row["at"]),
        actor=row["actor"],
        action=row["action"],
        subject=row["subject"],
        reason=row["reason"],
        asked_by=row["asked_by"],
        rule=row["rule"],
        digest=row["digest"],
        outcome=row["outcome"],
    )
