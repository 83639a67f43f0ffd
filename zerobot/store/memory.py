"""Memory in SQLite: entries by owner, found by full text. See `core.memory` for what each method promises."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime

from zerobot.core.clock import Clock
from zerobot.core.envelope import TurnOrigin
from zerobot.core.ids import ConversationId, TurnId
from zerobot.core.memory import (
    KEPT_VERSIONS,
    KEY_CHARACTERS,
    OWNER_ENTRIES,
    TEXT_CHARACTERS,
    MemoryEntry,
    MemoryFullError,
    MemoryKind,
    MemoryOwner,
    MemorySource,
    NewMemory,
    OwnerKind,
    Recalled,
    ScopeOf,
    StoredMemory,
    TurnScope,
)
from zerobot.core.places import Identity
from zerobot.store.columns import moment, moment_or_none, stamp, storable
from zerobot.store.database import Database
from zerobot.store.memory_words import fold, match_expression, owner_word, question_words, relevance, words

POOL = 100
"""Rows that the index ranks first; each of them is then scored by itself."""
OWNERS_IN_INDEX = 50
"""With more owners than these the index is not asked for owners; the query looks at them in any case."""

_OWNED = "owner IN (SELECT value FROM json_each(:owners))"
_COUNT = "SELECT count(*) FROM memories WHERE owner = :owner AND superseded_at IS NULL"
_CURRENT = "SELECT * FROM memories WHERE owner = :owner AND folded_key = :folded_key AND superseded_at IS NULL"
_GET = f"SELECT * FROM memories WHERE id = :id AND {_OWNED}"  # noqa: S608 - a constant
_INSERT = """
    INSERT INTO memories
        (owner, key, folded_key, text, kind, source, written_by, conversation_id, turn_id, created_at)
    VALUES (:owner, :key, :folded_key, :text, :kind, :source, :written_by, :conversation, :turn, :now) RETURNING *
"""
_SUPERSEDE = "UPDATE memories SET superseded_at = :now WHERE id = :id RETURNING *"
_REVIVE = "UPDATE memories SET superseded_at = NULL WHERE id = :id RETURNING *"
_TRIM = """
    DELETE FROM memories WHERE id IN (
        SELECT id FROM memories WHERE owner = :owner AND folded_key = :folded_key AND superseded_at IS NOT NULL
        ORDER BY superseded_at DESC, id DESC LIMIT -1 OFFSET :kept
    )
"""
_DELETE_KEY = "DELETE FROM memories WHERE owner = :owner AND folded_key = :folded_key"
_DELETE = "DELETE FROM memories WHERE id = :id"
_INDEX = "INSERT INTO memory_words (rowid, owner, key_words, text_words) VALUES (:id, :owner, :key, :text)"
_UNINDEX = "DELETE FROM memory_words WHERE rowid = :id"
_SEARCH = f"""
    SELECT m.*, memory_words.key_words, memory_words.text_words
    FROM memory_words JOIN memories m ON m.id = memory_words.rowid
    WHERE memory_words MATCH :match AND m.superseded_at IS NULL AND m.{_OWNED}
    ORDER BY bm25(memory_words, 0.0, 1.5, 1.0), m.id DESC LIMIT :pool
"""  # noqa: S608 - a constant
_LIST = f"""
    SELECT * FROM memories WHERE (:superseded OR superseded_at IS NULL) AND {_OWNED}
    ORDER BY created_at DESC, id DESC LIMIT :limit
"""  # noqa: S608 - a constant
_OWNERS = "SELECT DISTINCT owner FROM memories ORDER BY owner"
_OF_OWNER = "SELECT * FROM memories WHERE owner = :owner ORDER BY id"
_GIVE = "UPDATE memories SET owner = :owner, superseded_at = :superseded_at WHERE id = :id RETURNING *"

# A chat of one person and the bot. That it is one is what its channel said when the conversation began; that nobody
# else has asked here, and that somebody for whom a schedule asks has, is what the turns say. (`<>` would look at all
# turns of the conversation, `<` and `>` are looked up.)
_SCOPE = """
    SELECT t.id, t.origin, t.asker, t.conversation_id, t.outside_content, c.channel,
        c.direct
        AND NOT EXISTS (
            SELECT 1 FROM turns o WHERE o.conversation_id = c.id AND o.origin = 'user' AND o.asker < t.asker
        )
        AND NOT EXISTS (
            SELECT 1 FROM turns o WHERE o.conversation_id = c.id AND o.origin = 'user' AND o.asker > t.asker
        )
        AND EXISTS (
            SELECT 1 FROM turns o WHERE o.conversation_id = c.id AND o.origin = 'user' AND o.asker = t.asker
        ) AS private
    FROM turns t JOIN conversations c ON c.id = t.conversation_id WHERE t.id = :turn
"""

AgentOf = Callable[[str], str]
"""The name of the agent who answers on a channel."""


class SqliteMemory:
    """A `MemoryBackend` in the daemon's own database.

    Args:
        database: Where the entries are.
        clock: Says when something was remembered.
        entries: How many current ones an owner can have.
    """

    def __init__(self, database: Database, clock: Clock, *, entries: int = OWNER_ENTRIES) -> None:
        self._database = database
        self._clock = clock
        self._entries = entries

    async def remember(self, new: NewMemory) -> StoredMemory:
        """See `MemoryBackend`; the same text under the same key again changes nothing."""
        now = self._clock.now()
        checked = _checked(new)
        return await self._database.write(lambda db: _remember(db, checked, now, self._entries))

    async def recall(self, owners: Sequence[MemoryOwner], question: str, limit: int) -> list[Recalled]:
        """See `MemoryBackend`."""
        asked = question_words(question)
        if not (owners and asked):
            return []
        return await self._database.read(lambda db: _recall(db, owners, asked)[:limit])

    async def list(self, owners: Sequence[MemoryOwner], limit: int, *, superseded: bool = False) -> list[MemoryEntry]:
        """See `MemoryBackend`."""
        values = {"owners": _owners_json(owners), "superseded": superseded, "limit": limit}
        return await self._database.read(lambda db: [_entry(row) for row in db.execute(_LIST, values)])

    async def forget(self, owners: Sequence[MemoryOwner], entry: int) -> MemoryEntry | None:
        """See `MemoryBackend`."""

        def transaction(db: sqlite3.Connection) -> MemoryEntry | None:
            row = db.execute(_GET, {"id": entry, "owners": _owners_json(owners)}).fetchone()
            return None if row is None else _delete(db, row)

        return await self._database.write(transaction)

    async def forget_key(self, owner: MemoryOwner, key: str) -> MemoryEntry | None:
        """See `MemoryBackend`."""

        def transaction(db: sqlite3.Connection) -> MemoryEntry | None:
            row = db.execute(_CURRENT, {"owner": storable(str(owner)), "folded_key": fold(storable(key))}).fetchone()
            return None if row is None else _delete(db, row)

        return await self._database.write(transaction)

    async def restore(self, owners: Sequence[MemoryOwner], entry: int) -> StoredMemory | None:
        """See `MemoryBackend`."""
        now = self._clock.now()

        def transaction(db: sqlite3.Connection) -> StoredMemory | None:
            row = db.execute(_GET, {"id": entry, "owners": _owners_json(owners)}).fetchone()
            if row is None or row["superseded_at"] is None:
                return None
            return _restore(db, row, now)

        return await self._database.write(transaction)

    async def owners(self) -> Sequence[MemoryOwner]:
        """See `MemoryBackend`."""
        return await self._database.read(lambda db: [MemoryOwner.parse(row[0]) for row in db.execute(_OWNERS)])


def turn_scopes(database: Database, agent_of: AgentOf) -> ScopeOf:
    """A function that looks up what a turn may touch, by what is stored of it.

    Args:
        database: Where the turns are.
        agent_of: The name of the agent of a channel.
    """

    async def scope_of(turn: TurnId) -> TurnScope | None:
        row = await database.read(lambda db: db.execute(_SCOPE, {"turn": turn}).fetchone())
        return None if row is None else _scope(row, agent_of)

    return scope_of


def repoint(db: sqlite3.Connection, *, kept: ConversationId, lost: ConversationId) -> None:
    """Give what belongs to one conversation to another, in the transaction that makes the two one.

    Where both have an entry under a key, that of the lost one becomes an earlier version.
    """
    source, target = str(MemoryOwner.conversation(lost)), str(MemoryOwner.conversation(kept))
    for row in db.execute(_OF_OWNER, {"owner": source}).fetchall():
        twin = db.execute(_CURRENT, {"owner": target, "folded_key": row["folded_key"]}).fetchone()
        superseded_at = row["superseded_at"]
        if superseded_at is None and twin is not None:
            superseded_at = max(row["created_at"], twin["created_at"])
        db.execute(_UNINDEX, {"id": row["id"]})
        moved = db.execute(_GIVE, {"id": row["id"], "owner": target, "superseded_at": superseded_at}).fetchone()
        if superseded_at is None:
            _indexed(db, moved)


def _checked(new: NewMemory) -> dict[str, object]:
    """The columns of a new entry.

    Raises:
        ValueError: See `MemoryBackend.remember`.
    """
    key, text = storable(" ".join(new.key.split())), storable(new.text.strip())
    if not fold(key) or len(key) > KEY_CHARACTERS:
        raise ValueError(f"a key has 1 to {KEY_CHARACTERS} characters")
    if not text or len(text) > TEXT_CHARACTERS:
        raise ValueError(f"a text has 1 to {TEXT_CHARACTERS} characters")
    if new.owner.kind is OwnerKind.AGENT and new.source is not MemorySource.OPERATOR:
        raise ValueError("what all may read is written by operators only")
    return {
        "owner": storable(str(new.owner)),
        "key": key,
        "folded_key": fold(key),
        "text": text,
        "kind": new.kind,
        "source": new.source,
        "written_by": storable(str(new.written_by)),
        "conversation": new.conversation,
        "turn": new.turn,
    }


def _remember(db: sqlite3.Connection, values: dict[str, object], now: datetime, entries: int) -> StoredMemory:
    current = db.execute(_CURRENT, values).fetchone()
    if current is None and db.execute(_COUNT, values).fetchone()[0] >= entries:
        raise MemoryFullError(MemoryOwner.parse(str(values["owner"])), entries)
    if current is not None and (current["text"], current["kind"]) == (values["text"], values["kind"]):
        return StoredMemory(entry=_entry(current))
    superseded = None if current is None else _supersede(db, current, now)
    row = db.execute(_INSERT, values | {"now": stamp(now)}).fetchone()
    db.execute(_TRIM, values | {"kept": KEPT_VERSIONS})
    return StoredMemory(entry=_indexed(db, row), superseded=superseded)


def _restore(db: sqlite3.Connection, earlier: sqlite3.Row, now: datetime) -> StoredMemory:
    # What is forgotten is forgotten with its versions, so where there is a version, something is current.
    current = db.execute(_CURRENT, {"owner": earlier["owner"], "folded_key": earlier["folded_key"]}).fetchone()
    superseded = _supersede(db, current, now)
    revived = db.execute(_REVIVE, {"id": earlier["id"]}).fetchone()
    return StoredMemory(entry=_indexed(db, revived), superseded=superseded)


def _supersede(db: sqlite3.Connection, current: sqlite3.Row, now: datetime) -> MemoryEntry:
    """Make a current entry an earlier version, which is not found any more."""
    superseded = db.execute(_SUPERSEDE, {"id": current["id"], "now": stamp(now)}).fetchone()
    db.execute(_UNINDEX, {"id": current["id"]})
    return _entry(superseded)


def _indexed(db: sqlite3.Connection, row: sqlite3.Row) -> MemoryEntry:
    """Let a current entry be found."""
    db.execute(
        _INDEX,
        {
            "id": row["id"],
            "owner": owner_word(row["owner"]),
            "key": " ".join(words(row["key"])),
            "text": " ".join(words(row["text"])),
        },
    )
    return _entry(row)


def _delete(db: sqlite3.Connection, row: sqlite3.Row) -> MemoryEntry:
    if row["superseded_at"] is None:
        db.execute(_UNINDEX, {"id": row["id"]})
        db.execute(_DELETE_KEY, {"owner": row["owner"], "folded_key": row["folded_key"]})
    else:
        db.execute(_DELETE, {"id": row["id"]})
    return _entry(row)


def _recall(db: sqlite3.Connection, owners: Sequence[MemoryOwner], asked: Sequence[str]) -> list[Recalled]:
    named = [owner_word(storable(str(owner))) for owner in owners] if len(owners) <= OWNERS_IN_INDEX else []
    values = {"match": match_expression(named, asked), "owners": _owners_json(owners), "pool": POOL}
    found = [
        Recalled(_entry(row), relevance(asked, row["key_words"].split(), row["text_words"].split()))
        for row in db.execute(_SEARCH, values)
    ]
    fitting = [each for each in found if each.relevance > 0]
    return sorted(fitting, key=lambda each: (each.relevance, each.entry.created_at, each.entry.id), reverse=True)


def _owners_json(owners: Sequence[MemoryOwner]) -> str:
    return json.dumps([storable(str(owner)) for owner in owners])


def _entry(row: sqlite3.Row) -> MemoryEntry:
    return MemoryEntry(
        id=row["id"],
        owner=MemoryOwner.parse(row["owner"]),
        key=row["key"],
        text=row["text"],
        kind=MemoryKind(row["kind"]),
        source=MemorySource(row["source"]),
        written_by=Identity.parse(row["written_by"]),
        conversation=None if row["conversation_id"] is None else ConversationId(row["conversation_id"]),
        turn=None if row["turn_id"] is None else TurnId(row["turn_id"]),
        created_at=moment(row["created_at"]),
        superseded_at=moment_or_none(row["superseded_at"]),
    )


def _scope(row: sqlite3.Row, agent_of: AgentOf) -> TurnScope:
    return TurnScope(
        turn=TurnId(row["id"]),
        origin=TurnOrigin(row["origin"]),
        asker=Identity.parse(row["asker"]),
        conversation=ConversationId(row["conversation_id"]),
        agent=agent_of(row["channel"]),
        private=bool(row["private"]),
        outside_content=bool(row["outside_content"]),
    )
