"""Conversations: one stream of messages each, found by its key."""

import json
import sqlite3
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from zerobot.core.ids import ConversationId, InboxId
from zerobot.core.places import ConversationKey, Identity, Place
from zerobot.store.columns import OPEN_INBOX, WAITS, moment, moment_or_none, place_columns, place_of, stamp
from zerobot.store.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation's row."""

    id: ConversationId
    key: ConversationKey
    direct: bool
    epoch: int
    """Raised by a reset; a turn of an older epoch adds nothing to the history any more."""
    window_seq: int
    """The first message in the model's view."""
    model: str
    """Chosen for this conversation; empty: the agent's."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSummary:
    """A conversation as a list shows it."""

    conversation: Conversation
    last_activity: datetime
    messages: int
    waiting: int
    """Inputs that no turn has taken yet."""
    state: str
    """`idle`, or what its open turn is: `running`, `suspended`, `paused`."""


_FIND = """
    SELECT * FROM conversations
    WHERE channel = :channel AND chat = :chat AND thread = :thread AND sender = :sender
"""
_INSERT = """
    INSERT INTO conversations (channel, chat, thread, sender, direct, created_at)
    VALUES (:channel, :chat, :thread, :sender, :direct, :now) RETURNING id
"""
_GET = "SELECT * FROM conversations WHERE id = :conversation"
_AT = "SELECT * FROM conversations WHERE channel = :channel AND chat = :chat AND thread = :thread ORDER BY id"
_LIST = f"""
    SELECT c.*,
        (SELECT count(*) FROM messages m WHERE m.conversation_id = c.id) AS messages,
        (SELECT max(m.created_at) FROM messages m WHERE m.conversation_id = c.id) AS last_message,
        (SELECT max(i.accepted_at) FROM inbox i WHERE i.conversation_id = c.id) AS last_input,
        (SELECT count(*) FROM {OPEN_INBOX} WHERE conversation_id = c.id AND {WAITS}) AS waiting,
        (SELECT t.state FROM turns t WHERE t.conversation_id = c.id AND t.state <> 'finished') AS turn_state
    FROM conversations c WHERE :conversation IS NULL OR c.id = :conversation ORDER BY c.id
"""  # noqa: S608 - constants
_AT_WORK_FOR = """
    SELECT t.conversation_id FROM turns t JOIN conversations c ON c.id = t.conversation_id
    WHERE t.state <> 'finished' AND t.asker = :asker AND c.channel = :channel
"""
_AT_WORK = """
    SELECT DISTINCT c.channel, c.chat, c.thread FROM turns t JOIN conversations c ON c.id = t.conversation_id
    WHERE t.state <> 'finished' ORDER BY c.channel, c.chat, c.thread
"""
MAX_ID = 2**63 - 1
"""Above every row id of SQLite."""

_CANCEL_WAITING = f"""
    UPDATE {OPEN_INBOX} SET state = 'cancelled', envelope = ''
    WHERE conversation_id = :conversation AND {WAITS} AND id < :before
"""  # noqa: S608 - constants
_RESET = """
    UPDATE conversations SET epoch = epoch + 1,
        window_seq = 1 + coalesce((SELECT max(id) FROM messages WHERE conversation_id = :conversation), 0)
    WHERE id = :conversation
"""
# A message that came after the wish to start afresh may have begun its turn already: it belongs to the new epoch.
_TAKE_ALONG = """
    UPDATE turns SET epoch = epoch + 1
    WHERE conversation_id = :conversation AND state <> 'finished'
        AND EXISTS (SELECT 1 FROM inbox WHERE turn_id = turns.id)
        AND NOT EXISTS (SELECT 1 FROM inbox WHERE turn_id = turns.id AND id < :before)
    RETURNING id
"""
_SEE_AGAIN = """
    UPDATE conversations SET window_seq = (SELECT min(id) FROM messages WHERE turn_id = :turn) WHERE id = :conversation
"""
_SET_MODEL = "UPDATE conversations SET model = :model WHERE id = :conversation"
_EXPORT_MESSAGES = """
    SELECT * FROM messages WHERE id IN (
        SELECT id FROM messages WHERE conversation_id = :conversation ORDER BY id DESC LIMIT :last
    ) ORDER BY id
"""
_EXPORT_CALLS = """
    SELECT * FROM tool_calls WHERE conversation_id = :conversation AND message_id >= :first
    ORDER BY message_id, position
"""


def ensure(db: sqlite3.Connection, key: ConversationKey, direct: bool, now: datetime) -> ConversationId:  # noqa: FBT001 - one of its columns
    """The conversation with this key, made if there is none yet; `direct` is as it was when it was made."""
    values = _key_columns(key)
    row = db.execute(_FIND, values).fetchone()
    if row is None:
        row = db.execute(_INSERT, values | {"direct": direct, "now": stamp(now)}).fetchone()
    return ConversationId(row["id"])


class Conversations:
    """Conversations, a transaction a method."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, conversation: ConversationId) -> Conversation | None:
        """A conversation by its id."""
        return await self._database.read(partial(_first, sql=_GET, values={"conversation": conversation}))

    async def find(self, key: ConversationKey) -> Conversation | None:
        """A conversation by its key."""
        return await self._database.read(partial(_first, sql=_FIND, values=_key_columns(key)))

    async def at(self, place: Place) -> list[Conversation]:
        """The conversations in a place: several where people in it have their own."""
        values = place_columns(place)
        return await self._database.read(lambda db: [conversation_of(row) for row in db.execute(_AT, values)])

    async def reset(self, conversation: ConversationId, before: InboxId | None = None) -> int | None:
        """Start afresh: what was said stays stored, but the model sees none of it, and what waits is cancelled.

        Args:
            conversation: Its id.
            before: Only inputs that came before this one are touched; None: all.

        Returns:
            How many waiting inputs were cancelled; None: there is no such conversation.
        """
        values = {"conversation": conversation, "before": MAX_ID if before is None else before}

        def transaction(db: sqlite3.Connection) -> int | None:
            cancelled = db.execute(_CANCEL_WAITING, values).rowcount
            if db.execute(_RESET, values).rowcount == 0:
                return None
            later = db.execute(_TAKE_ALONG, values).fetchone()
            if later is not None:
                db.execute(_SEE_AGAIN, values | {"turn": later["id"]})
            return cancelled

        return await self._database.write(transaction)

    async def at_work(self) -> "list[Place]":
        """Where a turn is open: running, waiting, or left by an earlier process."""
        return await self._database.read(lambda db: [place_of(row) for row in db.execute(_AT_WORK)])

    async def at_work_for(self, asker: Identity, channel: str) -> "list[ConversationId]":
        """Where on a channel a turn is open that somebody has asked for."""
        values = {"asker": str(asker), "channel": channel}
        return await self._database.read(
            lambda db: [ConversationId(row["conversation_id"]) for row in db.execute(_AT_WORK_FOR, values)]
        )

    async def set_model(self, conversation: ConversationId, model: str) -> bool:
        """Choose the model of a conversation; empty: the agent's again. False: no such conversation."""
        return await self._change(_SET_MODEL, conversation=conversation, model=model)

    async def export(self, conversation: ConversationId, last: int | None = None) -> list[dict[str, object]]:
        """What was said in it, resets or not, as plain values: a message with its calls each, oldest first.

        Args:
            conversation: Its id.
            last: Only so many messages, the newest; None: all.
        """

        def transaction(db: sqlite3.Connection) -> list[dict[str, object]]:
            wanted = {"conversation": conversation, "last": -1 if last is None else last}
            rows = db.execute(_EXPORT_MESSAGES, wanted).fetchall()
            calls: dict[int, list[dict[str, object]]] = {}
            first = rows[0]["id"] if rows else MAX_ID
            for row in db.execute(_EXPORT_CALLS, {"conversation": conversation, "first": first}):
                calls.setdefault(row["message_id"], []).append(_exported_call(row))
            return [_exported_message(row, calls.get(row["id"], [])) for row in rows]

        return await self._database.read(transaction)

    async def list(self, conversation: ConversationId | None = None) -> "list[ConversationSummary]":
        """All conversations, or the one with this id; the one that was active last first."""
        values = {"conversation": conversation}
        summaries = await self._database.read(lambda db: [_summary(row) for row in db.execute(_LIST, values)])
        return sorted(summaries, key=lambda summary: summary.last_activity, reverse=True)

    async def _change(self, sql: str, **values: object) -> bool:
        return await self._database.write(lambda db: db.execute(sql, values).rowcount == 1)


def conversation_of(row: sqlite3.Row) -> Conversation:
    """A row of the table as a value."""
    return Conversation(
        id=ConversationId(row["id"]),
        key=ConversationKey(place_of(row), row["sender"]),
        direct=bool(row["direct"]),
        epoch=row["epoch"],
        window_seq=row["window_seq"],
        model=row["model"],
        created_at=moment(row["created_at"]),
    )


def _key_columns(key: ConversationKey) -> dict[str, object]:
    return {**place_columns(key.place), "sender": key.sender}


def _first(db: sqlite3.Connection, sql: str, values: dict[str, object]) -> Conversation | None:
    row = db.execute(sql, values).fetchone()
    return None if row is None else conversation_of(row)


def _summary(row: sqlite3.Row) -> ConversationSummary:
    conversation = conversation_of(row)
    said = (moment_or_none(row["last_message"]), moment_or_none(row["last_input"]))
    return ConversationSummary(
        conversation=conversation,
        last_activity=max((each for each in said if each is not None), default=conversation.created_at),
        messages=row["messages"],
        waiting=row["waiting"],
        state=row["turn_state"] or "idle",
    )


def _exported_message(row: sqlite3.Row, calls: list[dict[str, object]]) -> dict[str, object]:
    return {
        "seq": row["id"],
        "turn": row["turn_id"],
        "role": row["role"],
        "text": row["text"],
        "at": row["created_at"],
        "extra": json.loads(row["extra"]),
        "calls": calls,
    }


def _exported_call(row: sqlite3.Row) -> dict[str, object]:
    return {
        "id": row["id"],
        "name": row["name"],
        "arguments": json.loads(row["arguments"]),
        "state": row["state"],
        "code": row["code"],
        "result": row["result"],
        "started_at": row["started_at"],
        "finished_at": row["finished_at"],
    }
