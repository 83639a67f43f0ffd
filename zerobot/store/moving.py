"""A chat gets a new id on its platform: its conversations and everything pending go along, in one transaction."""

import sqlite3
from dataclasses import replace

from zerobot.core.ids import ConversationId
from zerobot.core.places import ConversationKey, Place
from zerobot.store import memory
from zerobot.store.conversations import Conversation, conversation_of
from zerobot.store.database import Database
from zerobot.store.envelope_json import decode_envelope, encode_envelope

_OF_CHAT = "SELECT * FROM conversations WHERE channel = :channel AND chat = :old ORDER BY id"
_TWIN = """
    SELECT * FROM conversations WHERE channel = :channel AND chat = :new AND thread = :thread AND sender = :sender
"""
_OPEN_TURN = "SELECT 1 FROM turns WHERE conversation_id = :conversation AND state <> 'finished'"
_RENAME = "UPDATE conversations SET chat = :new WHERE id = :conversation"
_PENDING_INPUTS = """
    SELECT i.id, i.envelope FROM inbox i JOIN conversations c ON c.id = i.conversation_id
    WHERE c.channel = :channel AND c.chat = :new AND i.envelope <> ''
"""
_REPLACE_INPUT = "UPDATE inbox SET envelope = :envelope WHERE id = :id"
_CHATS = (
    "UPDATE replies SET chat = :new WHERE channel = :channel AND chat = :old",
    "UPDATE approvals SET chat = :new WHERE channel = :channel AND chat = :old",
    # Where an approval is shown in the new chat already, the old row would be a second one of the same place.
    "UPDATE OR IGNORE approval_prompts SET chat = :new WHERE channel = :channel AND chat = :old",
    "UPDATE pairings SET chat = :new WHERE channel = :channel AND chat = :old",
)

# An id that both have is replaced by our own, which is unique: ids must be unique in a conversation.
_FREE_WIRE_IDS = """
    UPDATE tool_calls SET wire_id = id WHERE conversation_id = :lost
    AND wire_id IN (SELECT wire_id FROM tool_calls WHERE conversation_id = :kept)
"""
# What was in the history stays in it; what a reset had put out of it stays out.
_MAP_EPOCHS = """
    UPDATE turns SET epoch = CASE epoch WHEN :lost_epoch THEN :kept_epoch ELSE -1 END WHERE conversation_id = :lost
"""
_JOIN = """
    UPDATE conversations SET
        window_seq = CASE WHEN EXISTS (SELECT 1 FROM summaries WHERE conversation_id IN (:kept, :lost)) THEN 0
            ELSE min(window_seq, :lost_window) END,
        model = CASE model WHEN '' THEN :lost_model ELSE model END
    WHERE id = :kept
"""
# A summary of one of them says nothing of the other's messages: all are sent again until they are too many.
_NO_SUMMARY = "DELETE FROM summaries WHERE conversation_id IN (:kept, :lost)"
_REPOINT = tuple(
    f"UPDATE {table} SET conversation_id = :kept WHERE conversation_id = :lost"  # noqa: S608 - names are below
    for table in ("inbox", "turns", "messages", "tool_calls", "approvals", "grants", "replies", "model_calls")
)
_REMOVE = "DELETE FROM conversations WHERE id = :lost"


async def move_chat(database: Database, channel: str, old_chat: str, new_chat: str) -> list[ConversationId]:
    """Let everything of a chat go on under the chat's new id; asked again, it changes nothing.

    Where the new id has a conversation of the same key already (a message came from there first), the two become one:
    the one with an open turn stays, else the older one. Two open turns can't be in one conversation: then the
    conversations stay apart, while everything that is said from now on goes to the new id.

    Returns:
        The conversations of the new chat that the old one has become.
    """
    values = {"channel": channel, "old": old_chat, "new": new_chat}

    def transaction(db: sqlite3.Connection) -> list[ConversationId]:
        moved = [_move(db, conversation_of(row), new_chat) for row in db.execute(_OF_CHAT, values).fetchall()]
        for sql in _CHATS:
            db.execute(sql, values)
        _readdress_inputs(db, values)
        return [each for each in moved if each is not None]

    return await database.write(transaction)


def _move(db: sqlite3.Connection, old: Conversation, new_chat: str) -> ConversationId | None:
    """Move one conversation; None: it has an open turn, and so has its twin."""
    place = old.key.place
    values = {"channel": place.channel, "new": new_chat, "thread": place.thread or "", "sender": old.key.sender}
    row = db.execute(_TWIN, values).fetchone()
    if row is not None:
        twin = conversation_of(row)
        if _has_open_turn(db, twin):
            if _has_open_turn(db, old):
                return None
            _merge(db, kept=twin, lost=old)
            return twin.id
        _merge(db, kept=old, lost=twin)
    db.execute(_RENAME, {"new": new_chat, "conversation": old.id})
    return old.id


def _has_open_turn(db: sqlite3.Connection, conversation: Conversation) -> bool:
    return db.execute(_OPEN_TURN, {"conversation": conversation.id}).fetchone() is not None


def _merge(db: sqlite3.Connection, *, kept: Conversation, lost: Conversation) -> None:
    values: dict[str, object] = {
        "kept": kept.id,
        "lost": lost.id,
        "kept_epoch": kept.epoch,
        "lost_epoch": lost.epoch,
        "lost_window": lost.window_seq,
        "lost_model": lost.model,
    }
    memory.repoint(db, kept=kept.id, lost=lost.id)
    for sql in (_FREE_WIRE_IDS, _MAP_EPOCHS, _JOIN, _NO_SUMMARY, *_REPOINT, _REMOVE):
        db.execute(sql, values)


def _readdress_inputs(db: sqlite3.Connection, values: dict[str, str]) -> None:
    """Envelopes name the place where they came from, which is the new one now."""
    new = values["new"]
    for row in db.execute(_PENDING_INPUTS, values).fetchall():
        envelope = decode_envelope(row["envelope"])
        place = Place(envelope.place.channel, new, envelope.place.thread)
        moved = replace(envelope, conversation=ConversationKey(place, envelope.conversation.sender))
        db.execute(_REPLACE_INPUT, {"id": row["id"], "envelope": encode_envelope(moved)})
