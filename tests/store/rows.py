"""Rows that a test of the store needs around what it tests."""

import sqlite3
from datetime import UTC, datetime, timedelta

from zerobot.core.approvals import Approval
from zerobot.core.envelope import InboundEnvelope
from zerobot.core.ids import ApprovalId, CallId, ConversationId, TurnId, new_approval_id, new_code
from zerobot.core.places import ConversationKey, Identity, Place
from zerobot.store import approvals, conversations
from zerobot.store.columns import stamp
from zerobot.store.database import Database

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
PLACE = Place("pigeon", "42")
ANN = Identity("pigeon", "1001")
BOB = Identity("pigeon", "2002")
OPERATOR = Identity("pigeon", "9")


def envelope(
    event: str = "e1",
    *,
    place: Place = PLACE,
    sender: Identity = ANN,
    handles: tuple[str, ...] = (),
    direct: bool = True,
    text: str = "hello",
    message: str = "m1",
) -> InboundEnvelope:
    """What a person says."""
    return InboundEnvelope(
        conversation=ConversationKey(place),
        sender=sender,
        event_id=event,
        message_id=message,
        text=text,
        sender_name="Ann",
        sender_handles=handles,
        direct=direct,
    )


async def a_conversation(database: Database, place: Place = PLACE) -> ConversationId:
    """A conversation in a place."""
    return await database.write(lambda db: conversations.ensure(db, ConversationKey(place), direct=True, now=NOW))


async def a_turn(
    database: Database,
    name: str = "t1",
    *,
    place: Place = PLACE,
    state: str = "running",
    said: str = "hello",
    wire_id: str = "",
) -> TurnId:
    """A turn with one message and one recorded call `c-NAME`, in the conversation of a place."""
    conversation = await a_conversation(database, place)

    def transaction(db: sqlite3.Connection) -> TurnId:
        epoch = db.execute("SELECT epoch FROM conversations WHERE id = ?", (conversation,)).fetchone()[0]
        db.execute(
            "INSERT INTO turns (id, conversation_id, epoch, origin, asker, asker_name, reply_to, state, started_at)"
            " VALUES (?, ?, ?, 'user', ?, 'Ann', 'm1', ?, ?)",
            (name, conversation, epoch, str(ANN), state, stamp(NOW)),
        )
        message = db.execute(
            "INSERT INTO messages (conversation_id, turn_id, role, text, created_at)"
            " VALUES (?, ?, 'assistant', ?, ?) RETURNING id",
            (conversation, name, said, stamp(NOW)),
        ).fetchone()[0]
        db.execute(
            "INSERT INTO tool_calls (id, message_id, conversation_id, turn_id, position, wire_id, name, arguments,"
            " raw_arguments, state) VALUES (?, ?, ?, ?, 0, ?, 'shell', '{}', '{}', 'recorded')",
            (f"c-{name}", message, conversation, name, wire_id or f"w-{name}"),
        )
        return TurnId(name)

    return await database.write(transaction)


async def an_approval(
    database: Database, turn: TurnId, *, code: str = "", minutes: int = 60, place: Place = PLACE
) -> Approval:
    """A pending approval for the call of a turn, which ends `minutes` after `NOW`."""
    conversation = await a_conversation(database, place)
    approval = Approval(
        id=ApprovalId(new_approval_id()),
        code=code or new_code(),
        conversation=conversation,
        turn=turn,
        call=CallId(f"c-{turn}"),
        tool="shell",
        arguments={"command": "rm -rf build", "timeout": 1.5, "odd": ["\ud800", None, True]},
        digest="d" * 64,
        rule="risk",
        why="it deletes files",
        description="delete",
        asker=ANN,
        asker_name="Ann \ud83d",
        place=place,
        sandbox="none",
        requested_at=NOW,
        expires_at=NOW + timedelta(minutes=minutes),
    )
    return await database.write(lambda db: approvals.insert(db, approval))
