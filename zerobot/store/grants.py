"""Grants: "always in this chat", with an end date, listed and revocable."""

import sqlite3
from dataclasses import dataclass
from datetime import datetime

from zerobot.core.access import Grant
from zerobot.core.clock import Clock
from zerobot.core.ids import ConversationId
from zerobot.core.places import Identity, Place
from zerobot.store import audit
from zerobot.store.columns import moment, moment_or_none, place_of, stamp, storable
from zerobot.store.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRecord:
    """A grant with what people want to know of it."""

    grant: Grant
    place: Place
    granted_at: datetime
    expires_at: datetime
    revoked_at: datetime | None


_INSERT = """
    INSERT INTO grants (conversation_id, tool, pattern, granted_by, granted_at, expires_at)
    VALUES (:conversation, :tool, :pattern, :by, :now, :expires_at) RETURNING *
"""
_ACTIVE = """
    SELECT * FROM grants
    WHERE conversation_id = :conversation AND revoked_at IS NULL AND expires_at > :now ORDER BY id
"""
_LIST = """
    SELECT g.*, c.channel, c.chat, c.thread FROM grants g JOIN conversations c ON c.id = g.conversation_id
    WHERE :conversation IS NULL OR g.conversation_id = :conversation ORDER BY g.id
"""
_REVOKE = "UPDATE grants SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL RETURNING tool, pattern"


def insert(
    db: sqlite3.Connection,
    conversation: ConversationId,
    tool: str,
    pattern: str,
    by: Identity,
    now: datetime,
    expires_at: datetime,
) -> Grant:
    """Store a grant, in the transaction of the decision that made it."""
    values = {
        "conversation": conversation,
        "tool": storable(tool),
        "pattern": storable(pattern),
        "by": str(by),
        "now": stamp(now),
        "expires_at": stamp(expires_at),
    }
    return _grant(db.execute(_INSERT, values).fetchone())


class Grants:
    """Grants, a transaction a method."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(
        self, conversation: ConversationId, tool: str, pattern: str, by: Identity, expires_at: datetime
    ) -> Grant:
        """Store a grant that ends at `expires_at` (UTC); `pattern` as in `core.access.Grant`."""
        now = self._clock.now()
        return await self._database.write(lambda db: insert(db, conversation, tool, pattern, by, now, expires_at))

    async def active(self, conversation: ConversationId, now: datetime) -> list[Grant]:
        """What holds in a conversation at this moment."""
        values = {"conversation": conversation, "now": stamp(now)}
        return await self._database.read(lambda db: [_grant(row) for row in db.execute(_ACTIVE, values)])

    async def list(self, conversation: ConversationId | None = None) -> "list[GrantRecord]":
        """All grants, of one conversation or everywhere, also those that ended."""
        values = {"conversation": conversation}
        return await self._database.read(lambda db: [_record(row) for row in db.execute(_LIST, values)])

    async def revoke(self, grant: int, by: Identity) -> bool:
        """End a grant now, on record; False when there is none with this id that is not revoked yet."""
        now = self._clock.now()

        def transaction(db: sqlite3.Connection) -> bool:
            row = db.execute(_REVOKE, {"id": grant, "now": stamp(now)}).fetchone()
            if row is None:
                return False
            audit.note(db, str(by), "grant.revoke", f"{grant} {row['tool']} {row['pattern']}".rstrip(), now)
            return True

        return await self._database.write(transaction)


def _grant(row: sqlite3.Row) -> Grant:
    return Grant(
        id=row["id"],
        conversation=row["conversation_id"],
        tool=row["tool"],
        pattern=row["pattern"],
        granted_by=row["granted_by"],
        expires_at=row["expires_at"],
    )


def _record(row: sqlite3.Row) -> GrantRecord:
    return GrantRecord(
        grant=_grant(row),
        place=place_of(row),
        granted_at=moment(row["granted_at"]),
        expires_at=moment(row["expires_at"]),
        revoked_at=moment_or_none(row["revoked_at"]),
    )
