"""The inbox: accepted envelopes, stored before the platform is told that we have them."""

import sqlite3
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from zerobot.core.admission import Admission, Answer
from zerobot.core.clock import Clock
from zerobot.core.envelope import Acceptance, EnvelopeEdit, InboundEnvelope
from zerobot.core.ids import ConversationId, InboxId, ReplyId
from zerobot.core.places import Identity, Place
from zerobot.store import conversations, outbox
from zerobot.store.columns import IS_COMMAND, OPEN_INBOX, WAITS, place_columns, stamp
from zerobot.store.database import Database
from zerobot.store.envelope_json import decode_envelope, encode_envelope
from zerobot.store.pairing import PairingRequest, may_talk, pair_check

QUEUE_LIMIT = 16
"""Inputs that may wait in a conversation; one more is refused, and its sender is told."""
BOTS_IN_A_ROW = 5
"""Inputs of bots that are taken in a conversation within `BOTS_WITHIN` while no person says anything in it."""
BOTS_WITHIN = timedelta(hours=1)

IDS_KEPT = timedelta(days=30)
"""How much longer than its envelope an event's id is known: platforms repeat events hours and days later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What became of an envelope."""

    outcome: Acceptance
    inbox_id: InboxId | None = None
    """Set when it was accepted, or is a known command that nobody has carried out yet."""
    conversation: ConversationId | None = None
    """Set when it was accepted, is known already, or its conversation's queue is full."""
    pairing: PairingRequest | None = None
    """Set when a stranger has to be told his code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingCommand:
    """A command that nobody has carried out yet."""

    id: InboxId
    conversation: ConversationId
    envelope: InboundEnvelope


_SEEN = "SELECT id, conversation_id, state FROM inbox WHERE channel = :channel AND event_id = :event"
_INSERT = """
    INSERT INTO inbox
        (channel, event_id, conversation_id, message_id, sender, album, state, envelope, accepted_at)
    VALUES (:channel, :event, :conversation, :message, :sender, :album, :state, :envelope, :now) RETURNING id
"""
_WAITING_COUNT = f"SELECT count(*) FROM {OPEN_INBOX} WHERE conversation_id = :conversation AND {WAITS}"  # noqa: S608 - constants
_LATELY = """
    SELECT envelope FROM inbox
    WHERE conversation_id = :conversation AND accepted_at > :since AND envelope <> '' ORDER BY id DESC LIMIT :limit
"""
_EDITABLE = """
    SELECT i.id, i.envelope FROM inbox i JOIN conversations c ON c.id = i.conversation_id
    WHERE c.channel = :channel AND c.chat = :chat AND i.message_id = :message AND i.message_id <> ''
        AND (i.sender = :sender OR :anybody) AND i.state = 'waiting'
"""
_REPLACE = "UPDATE inbox SET envelope = :envelope WHERE id = :id"
_CANCEL = "UPDATE inbox SET state = 'cancelled', envelope = '' WHERE id = :id"
_CANCEL_NEXT = f"""
    UPDATE inbox SET state = 'cancelled', envelope = '' WHERE id = (
        SELECT min(id) FROM {OPEN_INBOX} WHERE conversation_id = :conversation AND {WAITS} AND id < :before
    )
"""  # noqa: S608 - constants
_REFUSE = f"""
    UPDATE {OPEN_INBOX} SET state = 'cancelled', envelope = ''
    WHERE channel = :channel AND sender = :sender AND {WAITS}
"""  # noqa: S608 - constants
_COMMANDS = f"""
    SELECT id, conversation_id, envelope FROM {OPEN_INBOX}
    WHERE {IS_COMMAND} ORDER BY id
"""  # noqa: S608 - constants
_COMMAND_DONE = "UPDATE inbox SET state = 'done' WHERE id = :id AND state = 'command'"
_WROTE_LATELY = """
    SELECT 1 FROM inbox i JOIN conversations c ON c.id = i.conversation_id
    WHERE c.channel = :channel AND c.chat = :chat AND c.thread = :thread
        AND i.sender = :sender AND i.accepted_at >= :since LIMIT 1
"""
_BLANK = """
    UPDATE inbox SET envelope = ''
    WHERE state IN ('done', 'cancelled') AND envelope <> '' AND accepted_at < :before
"""
_DELETE = "DELETE FROM inbox WHERE state IN ('done', 'cancelled') AND accepted_at < :before"


class Inbox:
    """The inbox, a transaction a method."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def accept(
        self, envelope: InboundEnvelope, admission: Admission, *, is_command: bool, queue_limit: int = QUEUE_LIMIT
    ) -> Accepted:
        """Store an envelope, or say why not: it is known already, its sender may not talk, the queue is full.

        A bot is refused too when only bots have spoken for some time: it may be answering our answers.

        What a stranger writes is not stored. A message for which there was no room is not either, but its id is, so
        that a repeat of it isn't answered twice.

        Args:
            envelope: In the common form.
            admission: The settings of its channel.
            is_command: Carried out at once, beside the queue, so it finds room in a full one.
            queue_limit: Inputs that may wait in the conversation.

        Raises:
            StorageError: It is not stored; the platform must not be told that we have it.
        """
        now = self._clock.now()
        text = encode_envelope(envelope)

        def transaction(db: sqlite3.Connection) -> Accepted:
            seen = db.execute(_SEEN, {"channel": envelope.place.channel, "event": envelope.event_id}).fetchone()
            if seen is not None:
                return Accepted(
                    outcome=Acceptance.DUPLICATE,
                    inbox_id=InboxId(seen["id"]) if seen["state"] == "command" else None,
                    conversation=ConversationId(seen["conversation_id"]),
                )
            answer, request = pair_check(db, envelope, admission, now)
            if answer is Answer.REFUSED:
                return Accepted(outcome=Acceptance.NOT_ALLOWED)
            if answer is Answer.PAIRING:
                return Accepted(outcome=Acceptance.PAIRING, pairing=request)
            conversation = conversations.ensure(db, envelope.conversation, envelope.direct, now)
            if envelope.from_bot and _only_bots_lately(db, conversation, now):
                return Accepted(outcome=Acceptance.LOOP, conversation=conversation)
            if is_command:
                inbox_id = _insert(db, envelope, conversation, "command", text, now)
            elif _waiting_count(db, conversation) >= queue_limit:
                _insert(db, envelope, conversation, "cancelled", "", now)
                return Accepted(outcome=Acceptance.FULL, conversation=conversation)
            else:
                inbox_id = _insert(db, envelope, conversation, "waiting", text, now)
            return Accepted(outcome=Acceptance.ACCEPTED, inbox_id=inbox_id, conversation=conversation)

        return await self._database.write(transaction)

    async def edit(self, edit: EnvelopeEdit, admission: Admission) -> bool:
        """Change a message that still waits, or cancel it (text None).

        Returns:
            False: it does not wait, somebody else wrote it, or who wrote it may not talk any more.
        """
        values = place_columns(edit.place) | {
            "message": edit.message_id,
            "sender": str(edit.sender),
            "anybody": edit.sender is None and edit.text is None,
        }

        def transaction(db: sqlite3.Connection) -> bool:
            if edit.sender is not None and not may_talk(db, edit.sender, edit.place.channel, admission):
                return False
            rows = db.execute(_EDITABLE, values).fetchall()
            for row in rows:
                if edit.text is None:
                    db.execute(_CANCEL, {"id": row["id"]})
                else:
                    changed = replace(decode_envelope(row["envelope"]), text=edit.text)
                    db.execute(_REPLACE, {"id": row["id"], "envelope": encode_envelope(changed)})
            return bool(rows)

        return await self._database.write(transaction)

    async def cancel_next(self, conversation: ConversationId, before: InboxId) -> bool:
        """Cancel the oldest input that waits in a conversation, if it came before `before`; False: there is none."""
        values = {"conversation": conversation, "before": before}
        return await self._database.write(lambda db: db.execute(_CANCEL_NEXT, values).rowcount == 1)

    async def refuse(self, sender: Identity, channel: str) -> int:
        """Cancel what somebody has written on a channel and nobody has begun to answer; returns how much that was."""
        values = {"channel": channel, "sender": str(sender)}
        return await self._database.write(lambda db: db.execute(_REFUSE, values).rowcount)

    async def commands_waiting(self) -> list[WaitingCommand]:
        """Commands that were accepted and not carried out, oldest first."""
        return await self._database.read(lambda db: [_command(row) for row in db.execute(_COMMANDS)])

    async def command_done(self, command: InboxId) -> None:
        """A command was carried out."""

        def transaction(db: sqlite3.Connection) -> None:
            db.execute(_COMMAND_DONE, {"id": command})

        await self._database.write(transaction)

    async def answer_command(self, command: WaitingCommand, text: str) -> ReplyId | None:
        """A command was carried out, and this (Markdown) is said about it: one commit, so that it is said once.

        Returns:
            The answer, to be delivered; None: it was answered before.
        """
        now, envelope = self._clock.now(), command.envelope

        def transaction(db: sqlite3.Connection) -> ReplyId | None:
            if db.execute(_COMMAND_DONE, {"id": command.id}).rowcount == 0:
                return None
            return outbox.queue_notice(db, envelope.place, text, now, envelope.message_id, command.conversation)

        return await self._database.write(transaction)

    async def wrote_lately(self, identity: Identity, place: Place, since: datetime) -> bool:
        """Whether a person has written in a place since some time (UTC)."""
        values = place_columns(place) | {"sender": str(identity), "since": stamp(since)}
        return await self._database.read(lambda db: db.execute(_WROTE_LATELY, values).fetchone() is not None)

    async def waiting_count(self, conversation: ConversationId) -> int:
        """How many inputs wait in a conversation."""
        return await self._database.read(lambda db: _waiting_count(db, conversation))

    async def forget_old(self, before: datetime) -> int:
        """Empty the envelopes that were worked off and came before `before` (UTC); much later their ids go too.

        Returns:
            How many rows are gone for good.
        """
        values = {"before": stamp(before)}

        def transaction(db: sqlite3.Connection) -> int:
            db.execute(_BLANK, values)
            return db.execute(_DELETE, {"before": stamp(before - IDS_KEPT)}).rowcount

        return await self._database.write(transaction)


def _insert(
    db: sqlite3.Connection,
    envelope: InboundEnvelope,
    conversation: ConversationId,
    state: str,
    text: str,
    now: datetime,
) -> InboxId:
    values = {
        "channel": envelope.place.channel,
        "event": envelope.event_id,
        "conversation": conversation,
        "message": envelope.message_id,
        "sender": str(envelope.sender),
        "album": envelope.album,
        "state": state,
        "envelope": text,
        "now": stamp(now),
    }
    return InboxId(db.execute(_INSERT, values).fetchone()["id"])


def _only_bots_lately(db: sqlite3.Connection, conversation: ConversationId, now: datetime) -> bool:
    """Whether a bot's turn would be one too many in a row."""
    values = {"conversation": conversation, "since": stamp(now - BOTS_WITHIN), "limit": BOTS_IN_A_ROW}
    lately = [decode_envelope(row["envelope"]) for row in db.execute(_LATELY, values)]
    return len(lately) == BOTS_IN_A_ROW and all(each.from_bot for each in lately)


def _waiting_count(db: sqlite3.Connection, conversation: ConversationId) -> int:
    return int(db.execute(_WAITING_COUNT, {"conversation": conversation}).fetchone()[0])


def _command(row: sqlite3.Row) -> WaitingCommand:
    return WaitingCommand(
        id=InboxId(row["id"]),
        conversation=ConversationId(row["conversation_id"]),
        envelope=decode_envelope(row["envelope"]),
    )
