"""What a model said, in the store: the message, the calls that it asked for, and what came of each."""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from zerobot.core.ids import CallId
from zerobot.core.messages import AssistantMessage, ToolResult
from zerobot.store import inputs
from zerobot.store.columns import json_text, storable
from zerobot.store.history import extra_of
from zerobot.store.turn_rows import Turn

LONGEST_WIRE_ID = 40

_INSERT_CALL = """
    INSERT INTO tool_calls
        (id, message_id, conversation_id, turn_id, position, wire_id, name, arguments, raw_arguments, state)
    VALUES (:id, :message, :conversation, :turn, :position, :wire_id, :name, :arguments, :raw_arguments, 'recorded')
"""
_WIRE_ID_TAKEN = "SELECT 1 FROM tool_calls WHERE conversation_id = :conversation AND wire_id = :wire_id"
_FINISH_CALL = """
    UPDATE tool_calls SET state = 'finished', code = :code, result = :text, receipt = :receipt, finished_at = :now
    WHERE id = :call AND state <> 'finished'
"""


def insert_answer(db: sqlite3.Connection, turn: Turn, message: AssistantMessage, now: str) -> AssistantMessage:
    """Store an answer with its calls; returns it as stored. `now` is a stamp."""
    message = replace(message, text=storable(message.text))
    fields = {
        "conversation": turn.conversation,
        "turn": turn.id,
        "role": "assistant",
        "text": message.text,
        "extra": extra_of(message),
        "now": now,
    }
    seq = int(db.execute(inputs.INSERT_MESSAGE, fields).fetchone()[0])
    calls = []
    for call in message.calls:
        wire_id = storable(call.wire_id)
        if (
            not _fits_every_wire(wire_id)
            or db.execute(_WIRE_ID_TAKEN, {"conversation": turn.conversation, "wire_id": wire_id}).fetchone()
        ):
            wire_id = call.id
        stored = replace(call, wire_id=wire_id, name=storable(call.name), raw_arguments=storable(call.raw_arguments))
        row = {
            "id": call.id,
            "message": seq,
            "conversation": turn.conversation,
            "turn": turn.id,
            "position": call.position,
            "wire_id": wire_id,
            "name": stored.name,
            "arguments": json_text(call.arguments),
            "raw_arguments": stored.raw_arguments,
        }
        db.execute(_INSERT_CALL, row)
        calls.append(stored)
    finish_calls(db, [(call.id, call.result) for call in calls if call.result is not None], now)
    return replace(message, seq=seq, calls=tuple(calls))


def _fits_every_wire(ident: str) -> bool:
    """Whether each protocol takes an id as it is; the strictest wants at most 40 of these characters."""
    return 0 < len(ident) <= LONGEST_WIRE_ID and all(
        char.isascii() and (char.isalnum() or char in "_-") for char in ident
    )


def finish_calls(db: sqlite3.Connection, results: Sequence[tuple[CallId, ToolResult]], now: str) -> None:
    """Give calls their results; one that has its result keeps it. `now` is a stamp."""
    for call, result in results:
        fields = {"call": call, "code": result.code, "text": result.text, "receipt": result.receipt, "now": now}
        db.execute(_FINISH_CALL, fields)
