"""The outbox: what people get, stored before it is sent, and how far each message of it came.

A part is `queued -> sending -> sent | failed`; `sending` is committed before the platform is called. A part that is
found `sending` is unclear: with a platform id its edit is repeated, without one the platform is asked, or the message
is sent once more with a mark (`mark_repeated`), and never a second time.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import cast

from zerobot.core.channel import MessageBody
from zerobot.core.clock import Clock
from zerobot.core.ids import ConversationId, ReplyId, TurnId
from zerobot.core.places import Place
from zerobot.store.columns import json_object, json_text, moment, place_columns, place_of, stamp, storable
from zerobot.store.database import Database


class ReplyState(StrEnum):
    """How far a reply is."""

    OPEN = "open"
    """Its turn still runs: a draft may show part of it."""
    QUEUED = "queued"
    """Its text is final and has to be delivered."""
    DONE = "done"
    FAILED = "failed"


class PartState(StrEnum):
    """How far one message of a reply is."""

    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyPart:
    """One message of a reply."""

    position: int
    body: MessageBody | None
    """None: the message was shown by a draft, the final text doesn't need it, it is to be deleted."""
    state: PartState
    platform_id: str = ""
    """Empty until the platform told us."""
    repeated: bool = False
    """It was sent a second time, marked as a possible repeat: never send it a third time."""

    @property
    def unclear(self) -> bool:
        """Whether nobody knows if the platform took it."""
        return self.state is PartState.SENDING

    @property
    def maybe_missing(self) -> bool:
        """Whether it was given up after its one repeat: the chat may have it twice, once or not at all."""
        return self.state is PartState.FAILED and self.repeated and self.body is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What is said in one place, as one text and the messages that it becomes."""

    id: ReplyId
    turn: TurnId | None
    conversation: ConversationId | None
    place: Place
    reply_to: str
    """The platform's id of the message that it answers; may be empty."""
    state: ReplyState
    text: str
    """Markdown; empty while it is open."""
    parts: tuple[ReplyPart, ...]
    """By position; of an open reply those that the draft has begun."""
    created_at: datetime
    error: str = ""


_INSERT = """
    INSERT INTO replies (turn_id, conversation_id, channel, chat, thread, reply_to, state, text, created_at)
    VALUES (:turn, :conversation, :channel, :chat, :thread, :reply_to, :state, :text, :now) RETURNING id
"""
_TAKE_OVER = """
    UPDATE replies SET state = 'queued', text = :text, reply_to = :reply_to WHERE turn_id = :turn AND state = 'open'
    RETURNING id
"""
_REPLY = "SELECT * FROM replies WHERE id = :reply"
_UNFINISHED = "SELECT * FROM replies WHERE state IN ('open', 'queued') ORDER BY id"
_OF_TURN = "SELECT * FROM replies WHERE turn_id = :turn ORDER BY id"
_PARTS = "SELECT * FROM reply_parts WHERE reply_id = :reply ORDER BY position"
_FORGET = "DELETE FROM replies WHERE state IN ('done', 'failed') AND finished_at < :before"
_RUNS_NO_MORE = "SELECT 1 FROM turns WHERE id = :turn AND state <> 'running'"
_BEGIN_PART = """
    INSERT INTO reply_parts (reply_id, position, body, state) VALUES (:reply, :position, :body, 'sending')
    ON CONFLICT DO UPDATE SET body = :body, state = 'sending'
"""
_PART_SENT = """
    UPDATE reply_parts SET state = 'sent', platform_id = :platform_id WHERE reply_id = :reply AND position = :position
"""
_PART_FAILED = "UPDATE reply_parts SET state = 'failed' WHERE reply_id = :reply AND position = :position"
_PART_GONE = """
    UPDATE reply_parts SET state = 'queued', platform_id = '' WHERE reply_id = :reply AND position = :position
"""
_RELEASE_PART = """
    UPDATE reply_parts SET state = 'queued' WHERE reply_id = :reply AND position = :position AND state = 'sending'
"""
_MARK_REPEATED = """
    UPDATE reply_parts SET repeated = 1
    WHERE reply_id = :reply AND position = :position AND state = 'sending' AND platform_id = '' AND repeated = 0
"""
_PUT_PART = """
    INSERT INTO reply_parts (reply_id, position, body, state) VALUES (:reply, :position, :body, :state)
    ON CONFLICT DO UPDATE SET body = :body, state = :state
"""
_REMOVE_PART = "DELETE FROM reply_parts WHERE reply_id = :reply AND position = :position"
_NOTE_ERROR = "UPDATE replies SET error = :error WHERE id = :reply"
_FINISH = "UPDATE replies SET state = 'done', finished_at = :now WHERE id = :reply AND state IN ('open', 'queued')"
_FAIL = """
    UPDATE replies SET state = 'failed', error = :error, finished_at = :now
    WHERE id = :reply AND state IN ('open', 'queued')
"""
_FAIL_PARTS = "UPDATE reply_parts SET state = 'failed' WHERE reply_id = :reply AND state IN ('queued', 'sending')"
_SAID_SINCE = """
    SELECT 1 FROM replies WHERE conversation_id = :conversation AND text = :text
    AND created_at >= (SELECT started_at FROM turns WHERE id = :turn)
"""
_DROP_UNSHOWN = """
    DELETE FROM replies WHERE turn_id = :turn AND state = 'open'
    AND NOT EXISTS (SELECT 1 FROM reply_parts WHERE reply_id = replies.id)
"""


def queue_turn_reply(
    db: sqlite3.Connection,
    turn: TurnId,
    conversation: ConversationId,
    place: Place,
    reply_to: str,
    text: str,
    now: datetime,
) -> ReplyId:
    """Give a turn its final text to deliver: in its open reply, whose draft is then finished, or in a new one."""
    row = db.execute(_TAKE_OVER, {"turn": turn, "text": storable(text), "reply_to": reply_to}).fetchone()
    if row is not None:
        return ReplyId(row["id"])
    return _insert(db, ReplyState.QUEUED, place, text, now, reply_to=reply_to, conversation=conversation, turn=turn)


def queue_notice(
    db: sqlite3.Connection,
    place: Place,
    text: str,
    now: datetime,
    reply_to: str = "",
    conversation: ConversationId | None = None,
    turn: TurnId | None = None,
) -> ReplyId:
    """Queue a text of its own, beside whatever reply its turn may have open."""
    return _insert(db, ReplyState.QUEUED, place, text, now, reply_to=reply_to, conversation=conversation, turn=turn)


def drop_open_reply(db: sqlite3.Connection, turn: TurnId) -> ReplyId | None:
    """End the open reply of a turn that has nothing more to say.

    Returns:
        None when nothing was shown, the reply is forgotten then. Else the reply: it is queued with an empty text, so
        that delivery takes back what the draft showed.
    """
    db.execute(_DROP_UNSHOWN, {"turn": turn})
    row = db.execute(_TAKE_OVER, {"turn": turn, "text": "", "reply_to": ""}).fetchone()
    return None if row is None else ReplyId(row["id"])


class Outbox:
    """The outbox, a transaction a method. Those that change a part expect one that exists; no such part is a bug."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def open_draft(
        self, turn: TurnId, conversation: ConversationId, place: Place, reply_to: str, body: MessageBody
    ) -> ReplyId | None:
        """Open the reply of a turn with its first part `sending`: committed before the platform is called.

        A turn has one open reply; one that goes on after a restart finds it by `open_of_turn`.

        Returns:
            None: the turn does not run any more, its last word is in the outbox already; nothing may be shown.
        """
        now = self._clock.now()

        def transaction(db: sqlite3.Connection) -> ReplyId | None:
            if db.execute(_RUNS_NO_MORE, {"turn": turn}).fetchone() is not None:
                return None
            reply = _insert(
                db, ReplyState.OPEN, place, "", now, reply_to=reply_to, conversation=conversation, turn=turn
            )
            db.execute(_BEGIN_PART, {"reply": reply, "position": 0, "body": _body_text(body)})
            return reply

        return await self._database.write(transaction)

    async def begin_part(self, reply: ReplyId, position: int, body: MessageBody | None) -> None:
        """Note that a part is about to be sent, edited or (body None) deleted: it is `sending` from here on."""
        await self._execute(_BEGIN_PART, {"reply": reply, "position": position, "body": _body_text(body)})

    async def part_sent(self, reply: ReplyId, position: int, platform_id: str) -> None:
        """The platform took it, under this id."""
        await self._change(_PART_SENT, reply, position, platform_id=platform_id)

    async def part_failed(self, reply: ReplyId, position: int, error: str) -> None:
        """The platform will never take it; the reply keeps the reason, its other parts go on."""

        def transaction(db: sqlite3.Connection) -> None:
            _change_part(db, _PART_FAILED, {"reply": reply, "position": position})
            db.execute(_NOTE_ERROR, {"reply": reply, "error": storable(error)})

        await self._database.write(transaction)

    async def part_gone(self, reply: ReplyId, position: int) -> None:
        """Its message no longer exists on the platform (somebody deleted the draft): it is queued to be sent anew."""
        await self._change(_PART_GONE, reply, position)

    async def release_part(self, reply: ReplyId, position: int) -> None:
        """The platform surely did not take it: `sending` is `queued` again; any other state stays."""
        await self._execute(_RELEASE_PART, {"reply": reply, "position": position})

    async def mark_repeated(self, reply: ReplyId, position: int) -> bool:
        """Ask for the one repeat that an unclear part may have; False: it had it already, it must not be sent."""
        values = {"reply": reply, "position": position}
        return await self._database.write(lambda db: db.execute(_MARK_REPEATED, values).rowcount == 1)

    async def plan(self, reply: ReplyId, bodies: Sequence[MessageBody]) -> Reply:
        """Fit the final messages onto the parts that exist, and return the reply with what is left to do.

        A part on the platform is queued to be edited unless it shows its body already; one that is unclear stays
        `sending`; what is too many is queued to be deleted (body None). The same plan again changes nothing.
        """

        def transaction(db: sqlite3.Connection) -> Reply:
            found = {part.position: part for part in _load(db, reply).parts}
            for position, body in enumerate(bodies):
                _put(db, reply, position, body, _planned_state(found.pop(position, None), body))
            for position, surplus in found.items():
                if surplus.platform_id:
                    _put(db, reply, position, None, _planned_state(surplus, None))
                else:
                    db.execute(_REMOVE_PART, {"reply": reply, "position": position})
            return _load(db, reply)

        return await self._database.write(transaction)

    async def finish(self, reply: ReplyId, notice: str = "") -> ReplyId | None:
        """All of it that can be delivered is delivered.

        Args:
            reply: The reply.
            notice: What the chat has to be told of it; queued in the same transaction, so that it is said just once.

        Returns:
            The notice; None: there is none, or the reply had ended before.
        """
        now = self._clock.now()

        def transaction(db: sqlite3.Connection) -> ReplyId | None:
            ended = db.execute(_FINISH, {"reply": reply, "now": stamp(now)}).rowcount
            if not ended or not notice:
                return None
            found = _load(db, reply)
            return queue_notice(db, found.place, notice, now, conversation=found.conversation)

        return await self._database.write(transaction)

    async def fail(self, reply: ReplyId, error: str) -> None:
        """Give it up with all that is not sent yet; `error` says why, for people."""
        values = {"reply": reply, "error": storable(error), "now": stamp(self._clock.now())}

        def transaction(db: sqlite3.Connection) -> None:
            if db.execute(_FAIL, values).rowcount:
                db.execute(_FAIL_PARTS, {"reply": reply})

        await self._database.write(transaction)

    async def drop_open(self, turn: TurnId) -> ReplyId | None:
        """See `drop_open_reply`."""
        return await self._database.write(partial(drop_open_reply, turn=turn))

    async def notice(self, place: Place, text: str, reply_to: str = "") -> ReplyId:
        """Queue a text of its own, in its own transaction; see `queue_notice`."""
        now = self._clock.now()
        return await self._database.write(lambda db: queue_notice(db, place, text, now, reply_to))

    async def notice_once(
        self, place: Place, text: str, conversation: ConversationId, turn: TurnId, reply_to: str = ""
    ) -> ReplyId | None:
        """Queue a text of its own that a turn gives rise to; None: it was said since the turn began, by whomever.

        What such a notice was about outlives the process that said it, so memory cannot tell whether it was said.
        """
        now = self._clock.now()
        values = {"conversation": conversation, "text": storable(text), "turn": turn}

        def transaction(db: sqlite3.Connection) -> ReplyId | None:
            if db.execute(_SAID_SINCE, values).fetchone() is not None:
                return None
            return queue_notice(db, place, text, now, reply_to, conversation=conversation)

        return await self._database.write(transaction)

    async def forget_old(self, before: datetime) -> int:
        """Delete replies that were settled before `before` (UTC), with their parts; what was said stays in the history.

        Returns:
            How many replies are gone.
        """
        return await self._database.write(lambda db: db.execute(_FORGET, {"before": stamp(before)}).rowcount)

    async def unfinished(self) -> list[Reply]:
        """Open and queued replies, oldest first."""
        return await self._database.read(lambda db: _with_parts(db, db.execute(_UNFINISHED)))

    async def get(self, reply: ReplyId) -> Reply:
        """A reply as it is now.

        Raises:
            LookupError: There is none with this id.
        """
        return await self._database.read(partial(_load, reply=reply))

    async def of_turn(self, turn: TurnId) -> list[Reply]:
        """All replies and notices of a turn, oldest first."""
        return await self._database.read(lambda db: _with_parts(db, db.execute(_OF_TURN, {"turn": turn})))

    async def open_of_turn(self, turn: TurnId) -> Reply | None:
        """The reply that a turn's draft shows, if it has one."""
        return next((reply for reply in await self.of_turn(turn) if reply.state is ReplyState.OPEN), None)

    async def _execute(self, sql: str, values: dict[str, object]) -> None:
        def transaction(db: sqlite3.Connection) -> None:
            db.execute(sql, values)

        await self._database.write(transaction)

    async def _change(self, sql: str, reply: ReplyId, position: int, **values: str) -> None:
        await self._database.write(lambda db: _change_part(db, sql, {"reply": reply, "position": position, **values}))


def _insert(
    db: sqlite3.Connection,
    state: ReplyState,
    place: Place,
    text: str,
    now: datetime,
    *,
    reply_to: str,
    conversation: ConversationId | None,
    turn: TurnId | None,
) -> ReplyId:
    values = place_columns(place) | {
        "turn": turn,
        "conversation": conversation,
        "reply_to": reply_to,
        "state": state,
        "text": storable(text),
        "now": stamp(now),
    }
    return ReplyId(db.execute(_INSERT, values).fetchone()["id"])


def _change_part(db: sqlite3.Connection, sql: str, values: dict[str, object]) -> None:
    changed = db.execute(sql, values).rowcount
    assert changed == 1, f"reply {values['reply']} has no part {values['position']}"


def _planned_state(old: ReplyPart | None, body: MessageBody | None) -> PartState:
    """What a part becomes when its final body is known."""
    if old is None:
        return PartState.QUEUED
    if old.unclear and not old.platform_id:
        return PartState.SENDING
    # Settled with just this body: shown, or refused for good.
    if old.state in (PartState.SENT, PartState.FAILED) and _body_text(old.body) == _body_text(body):
        return old.state
    return PartState.QUEUED


def _put(db: sqlite3.Connection, reply: ReplyId, position: int, body: MessageBody | None, state: PartState) -> None:
    db.execute(_PUT_PART, {"reply": reply, "position": position, "body": _body_text(body), "state": state})


def _load(db: sqlite3.Connection, reply: ReplyId) -> Reply:
    replies = _with_parts(db, db.execute(_REPLY, {"reply": reply}))
    if not replies:
        raise LookupError(f"there is no reply {reply}")
    return replies[0]


def _with_parts(db: sqlite3.Connection, rows: Iterable[sqlite3.Row]) -> list[Reply]:
    return [_reply(row, db.execute(_PARTS, {"reply": row["id"]}).fetchall()) for row in rows]


def _reply(row: sqlite3.Row, parts: Sequence[sqlite3.Row]) -> Reply:
    return Reply(
        id=ReplyId(row["id"]),
        turn=TurnId(row["turn_id"]) if row["turn_id"] else None,
        conversation=None if row["conversation_id"] is None else ConversationId(row["conversation_id"]),
        place=place_of(row),
        reply_to=row["reply_to"],
        state=ReplyState(row["state"]),
        text=row["text"],
        parts=tuple(_part(part) for part in parts),
        created_at=moment(row["created_at"]),
        error=row["error"],
    )


def _part(row: sqlite3.Row) -> ReplyPart:
    return ReplyPart(
        position=row["position"],
        body=_body(row["body"]),
        state=PartState(row["state"]),
        platform_id=row["platform_id"],
        repeated=bool(row["repeated"]),
    )


def _body_text(body: MessageBody | None) -> str | None:
    return None if body is None else json_text({"text": body.text, "format": body.format})


def _body(text: str | None) -> MessageBody | None:
    if text is None:
        return None
    value = json_object(text)
    return MessageBody(text=cast("str", value["text"]), format=cast("dict[str, object]", value["format"]))
