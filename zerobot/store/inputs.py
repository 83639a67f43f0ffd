"""From waiting envelopes to a turn: which of them belong together, when they are complete, how history keeps them."""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import takewhile

from zerobot.core.envelope import InboundEnvelope, TurnOrigin
from zerobot.core.ids import ConversationId, InboxId, TurnId, new_turn_id
from zerobot.core.messages import UserMessage
from zerobot.store.columns import IS_COMMAND, OPEN_INBOX, WAITS, moment, stamp, storable
from zerobot.store.envelope_json import decode_envelope
from zerobot.store.history import extra_of

ALBUM_QUIET = timedelta(seconds=1)
"""An album's pictures come as events of their own; it is complete when none has come for this long."""

_WAITING = f"""
    SELECT id, envelope, album, sender, accepted_at FROM {OPEN_INBOX}
    WHERE conversation_id = :conversation AND {WAITS} ORDER BY id
"""  # noqa: S608 - constants
# A turn that a reset has cut off takes nothing in: what came after the reset is for the new history.
_MAY_BE_JOINED = f"""
    SELECT t.asker, coalesce(
        (SELECT min(id) FROM {OPEN_INBOX} WHERE conversation_id = c.id AND {IS_COMMAND}), 9223372036854775807
    ) AS command
    FROM turns t JOIN conversations c ON c.id = t.conversation_id
    WHERE t.id = :turn AND t.state = 'running' AND t.origin = 'user' AND t.epoch = c.epoch
        AND NOT EXISTS (SELECT 1 FROM tool_calls WHERE turn_id = t.id AND state <> 'finished')
"""  # noqa: S608 - constants
_EPOCH = "SELECT epoch FROM conversations WHERE id = :conversation"
_BEGIN = """
    INSERT INTO turns (id, conversation_id, epoch, origin, asker, asker_name, reply_to, state, preface, started_at)
    VALUES (:id, :conversation, :epoch, :origin, :asker, :asker_name, :reply_to, 'running', :preface, :now)
"""
_TAKE = "UPDATE inbox SET state = 'taken', turn_id = :turn WHERE id = :id"
INSERT_MESSAGE = """
    INSERT INTO messages (conversation_id, turn_id, role, text, extra, created_at)
    VALUES (:conversation, :turn, :role, :text, :extra, :now) RETURNING id
"""


def next_input(db: sqlite3.Connection, conversation: ConversationId, debounce: timedelta) -> list[sqlite3.Row]:
    """The rows of the inbox that make the next input of a conversation; none when nothing waits.

    It is the oldest one, with the other events of its album; where bursts are joined (`debounce` is not 0), with what
    the same person wrote right after it.
    """
    return _first(db.execute(_WAITING, {"conversation": conversation}).fetchall(), debounce)


def joining(
    db: sqlite3.Connection, turn: TurnId, conversation: ConversationId, debounce: timedelta, now: datetime
) -> list[list[sqlite3.Row]]:
    """The rows of the inputs that may join a running turn now: the head of the queue, as far as it fits.

    Only what the turn's asker wrote joins it, since the turn works with the asker's rights, and nothing joins past an
    input that has to wait: not what is incomplete, nor what came after a command that nobody has carried out yet (it
    may be one that ends the turn). Nothing joins while calls of the turn are open, nor after a reset.
    """
    found = db.execute(_MAY_BE_JOINED, {"turn": turn}).fetchone()
    if found is None:
        return []
    waiting = db.execute(_WAITING, {"conversation": conversation}).fetchall()
    inputs: list[list[sqlite3.Row]] = []
    while rows := _first(waiting, debounce):
        complete = complete_at(rows, debounce)
        fits = all(row["sender"] == found["asker"] and row["id"] < found["command"] for row in rows)
        if not fits or (complete is not None and complete > now):
            break
        inputs.append(rows)
        taken = {row["id"] for row in rows}
        waiting = [row for row in waiting if row["id"] not in taken]
    return inputs


def _first(waiting: Sequence[sqlite3.Row], debounce: timedelta) -> list[sqlite3.Row]:
    if not waiting:
        return []
    first = waiting[0]
    if first["album"]:
        return [row for row in waiting if row["album"] == first["album"]]
    if not debounce:
        return [first]
    return list(takewhile(lambda row: row["sender"] == first["sender"] and not row["album"], waiting))


def complete_at(rows: list[sqlite3.Row], debounce: timedelta) -> datetime | None:
    """When nothing more of an input is to be expected; None: it is complete."""
    quiet = ALBUM_QUIET if rows[0]["album"] else debounce
    return moment(rows[-1]["accepted_at"]) + quiet if quiet else None


def begin(
    db: sqlite3.Connection, conversation: ConversationId, rows: list[sqlite3.Row], preface: str, now: datetime
) -> TurnId:
    """Begin a turn on an input: the turn, what was said, and the rows that it answers."""
    head, last = (decode_envelope(rows[index]["envelope"]) for index in (0, -1))
    turn = new_turn_id()
    fields = {
        "id": turn,
        "conversation": conversation,
        "epoch": db.execute(_EPOCH, {"conversation": conversation}).fetchone()["epoch"],
        "origin": TurnOrigin.USER,
        "asker": str(head.sender),
        "asker_name": storable(head.sender_name),
        "reply_to": head.message_id if head.album else last.message_id,
        "preface": preface,
        "now": stamp(now),
    }
    db.execute(_BEGIN, fields)
    take(db, conversation, turn, rows, now)
    return turn


def take(
    db: sqlite3.Connection, conversation: ConversationId, turn: TurnId, rows: Sequence[sqlite3.Row], now: datetime
) -> UserMessage:
    """Make the rows of an input a message of the turn that answers them from now on; returns it as stored."""
    envelopes = [decode_envelope(row["envelope"]) for row in rows]
    head = envelopes[0]
    message = UserMessage(
        seq=0,
        turn=turn,
        text=storable(_spoken(envelopes)),
        speaker="" if head.direct else head.sender_name or str(head.sender),
        inputs=tuple(InboxId(row["id"]) for row in rows),
    )
    fields = {
        "conversation": conversation,
        "turn": turn,
        "role": "user",
        "text": message.text,
        "extra": extra_of(message),
        "now": stamp(now),
    }
    seq = int(db.execute(INSERT_MESSAGE, fields).fetchone()[0])
    for row in rows:
        db.execute(_TAKE, {"turn": turn, "id": row["id"]})
    return replace(message, seq=seq)


def _spoken(envelopes: list[InboundEnvelope]) -> str:
    """The text of an input as history keeps it: what it answers, and what was said, in the order in which it came."""
    return "\n".join(filter(None, map(_said, envelopes)))


def _said(envelope: InboundEnvelope) -> str:
    if envelope.quote is None:
        return envelope.text
    quoted = "".join(f"> {line}\n" for line in envelope.quote.text.splitlines())
    # A name has no lines of its own: what stands in them would pass for words of who answers.
    author = " ".join(envelope.quote.author.split())
    return f"[In answer to {author}:]\n{quoted}\n{envelope.text}"
