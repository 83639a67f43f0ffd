"""Messages and tool calls: how they lie in the database, and the valid history that is made of them."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import cast

from zerobot.core.ids import CallId, ConversationId, InboxId, TurnId
from zerobot.core.messages import (
    AssistantMessage,
    Earlier,
    History,
    Message,
    RecordedCall,
    ResultCode,
    StoredFile,
    ToolResult,
    UserMessage,
)
from zerobot.store.columns import json_text

# A row of `summaries` of another epoch counts for nothing. A turn that a reset has cut off has an epoch of its own.
VIEW = """
    SELECT coalesce(t.epoch, c.epoch) AS epoch, c.window_seq, coalesce(t.epoch, c.epoch) = c.epoch AS current,
        coalesce(s.head, '[]') AS head, coalesce(s.kept, '[]') AS kept, coalesce(s.covers, 0) AS covers,
        coalesce(s.after_seq, 0) AS after_seq, coalesce(s.text, '') AS text
    FROM conversations c
        LEFT JOIN turns t ON t.id = :turn
        LEFT JOIN summaries s ON s.conversation_id = c.id AND s.epoch = c.epoch
    WHERE c.id = :conversation
"""
# Only messages of the conversation's current epoch: what a turn writes after /new stays out of the new history, while
# that turn itself still works with what it has written.
# Three ways to be in it, none of which reads what has left the window: merged by their indexes, nothing is sorted.
MESSAGES = """
    SELECT m.id, m.turn_id, m.role, m.text, m.extra
    FROM (
            SELECT id, turn_id, role, text, extra FROM messages
            WHERE conversation_id = :conversation AND id >= :start
            UNION ALL
            SELECT id, turn_id, role, text, extra FROM messages
            WHERE conversation_id = :conversation AND id < :start AND id IN (SELECT value FROM json_each(:verbatim))
            UNION ALL
            SELECT id, turn_id, role, text, extra FROM messages
            WHERE turn_id = :turn AND id < :start AND id NOT IN (SELECT value FROM json_each(:verbatim))
        ) m
        JOIN turns t ON t.id = m.turn_id
    WHERE t.epoch = (SELECT epoch FROM conversations WHERE id = :conversation) OR m.turn_id = :turn
    ORDER BY m.id
"""
CALLS = """
    SELECT id, message_id, position, wire_id, name, arguments, raw_arguments, state, code, result, receipt
    FROM tool_calls WHERE message_id IN (SELECT value FROM json_each(:messages))
    ORDER BY message_id, position
"""
# No index: a person asks for it, rarely.
RECEIVED = """
    SELECT id, conversation_id, turn_id, position, wire_id, name, arguments, raw_arguments, state, code, result, receipt
    FROM tool_calls WHERE receipt = :receipt AND state = 'finished'
"""
NEVER_FINISHED = ToolResult(
    code=ResultCode.INTERRUPTED,
    text="This call was interrupted; whether it took effect is not known. Do not assume that it did.",
)


def load_history(db: sqlite3.Connection, conversation: ConversationId, turn: TurnId | None = None) -> History:
    """Read the messages in the model's view, valid whatever lies in the database; only the last round may be open.

    Args:
        db: In a transaction.
        conversation: Whose messages.
        turn: A turn that is being worked on: its own messages belong to it even when a reset came meanwhile, or when
            they have left the window.
    """
    view = db.execute(VIEW, {"conversation": conversation, "turn": turn}).fetchone()
    if view is None:
        return History()
    earlier = _earlier(view)
    fields = {
        "conversation": conversation,
        "turn": turn,
        "start": view["window_seq"],
        "verbatim": json.dumps([*earlier.head, *earlier.kept]),
    }
    rows = db.execute(MESSAGES, fields).fetchall()
    answers = json.dumps([row["id"] for row in rows if row["role"] == "assistant"])
    by_message: dict[int, list[RecordedCall]] = {}
    for row in db.execute(CALLS, {"messages": answers}):
        by_message.setdefault(row["message_id"], []).append(call_of(row))
    return History(project([message_of(row, by_message.get(row["id"], ())) for row in rows]), earlier)


def call_with_receipt(db: sqlite3.Connection, receipt: str) -> tuple[ConversationId, TurnId, RecordedCall] | None:
    """Find the call whose result has this receipt; None when none is on record."""
    row = db.execute(RECEIVED, {"receipt": receipt}).fetchone()
    return None if row is None else (ConversationId(row["conversation_id"]), TurnId(row["turn_id"]), call_of(row))


def _earlier(view: sqlite3.Row) -> Earlier:
    if not view["current"]:
        return Earlier(epoch=view["epoch"])
    return Earlier(
        epoch=view["epoch"],
        start=view["window_seq"],
        head=tuple(json.loads(view["head"])),
        kept=tuple(json.loads(view["kept"])),
        covers=view["covers"],
        text=view["text"],
        after=view["after_seq"],
    )


def project(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Make a valid history of what is stored.

    A call without a result is closed as interrupted unless its round is the last message; messages that say nothing
    are left out, and so is whatever stands before the first user message.
    """
    kept: list[Message] = []
    last = len(messages) - 1
    for index, message in enumerate(messages):
        if isinstance(message, UserMessage):
            kept.append(message)
        elif kept and not message.says_nothing:
            kept.append(message if index == last else _closed(message))
    return tuple(kept)


def _closed(message: AssistantMessage) -> AssistantMessage:
    if not message.open_calls:
        return message
    calls = tuple(call if call.result else replace(call, result=NEVER_FINISHED) for call in message.calls)
    return replace(message, calls=calls)


def call_of(row: sqlite3.Row) -> RecordedCall:
    """Bring a row of `tool_calls` into its value."""
    finished = row["state"] == "finished"
    result = ToolResult(code=ResultCode(row["code"]), text=row["result"], receipt=row["receipt"]) if finished else None
    return RecordedCall(
        id=CallId(row["id"]),
        wire_id=row["wire_id"],
        name=row["name"],
        arguments=json.loads(row["arguments"]),
        raw_arguments=row["raw_arguments"],
        position=row["position"],
        started=row["state"] != "recorded",
        result=result,
    )


def message_of(row: sqlite3.Row, calls: Iterable[RecordedCall]) -> Message:
    """Bring a row of `messages` into its value, with the calls that belong to it."""
    extra: Mapping[str, object] = json.loads(row["extra"])
    if row["role"] == "user":
        return UserMessage(
            seq=row["id"],
            turn=TurnId(row["turn_id"]),
            text=row["text"],
            speaker=str(extra.get("speaker", "")),
            files=tuple(_file(file) for file in _list(extra, "files")),
            note=str(extra.get("note", "")),
            memory=str(extra.get("memory", "")),
            inputs=tuple(InboxId(each) for each in cast("list[int]", extra.get("inputs", []))),
        )
    return AssistantMessage(
        seq=row["id"],
        turn=TurnId(row["turn_id"]),
        text=row["text"],
        calls=tuple(calls),
        reasoning=tuple(_list(extra, "reasoning")),
        partial=bool(extra.get("partial", False)),
        notice=str(extra.get("notice", "")),
        context_tokens=_number(extra, "context_tokens"),
    )


def _file(fields: Mapping[str, object]) -> StoredFile:
    kind, name, mime, path = (str(fields[key]) for key in ("kind", "name", "mime", "path"))
    size = fields["size"]
    assert isinstance(size, int), "written by extra_of below"
    return StoredFile(kind=kind, name=name, mime=mime, size=size, path=path, digest=str(fields.get("digest", "")))


def _list(extra: Mapping[str, object], key: str) -> list[dict[str, object]]:
    value = extra.get(key, [])
    assert isinstance(value, list), "written by extra_of below"
    return value


def _number(extra: Mapping[str, object], key: str) -> int:
    value = extra.get(key, 0)
    assert isinstance(value, int), "written by extra_of below"
    return value


def extra_of(message: Message) -> str:
    """What of a message has no column of its own, as JSON; empty fields are left out."""
    if isinstance(message, UserMessage):
        fields: dict[str, object] = {
            "speaker": message.speaker,
            "files": [asdict(file) for file in message.files],
            "note": message.note,
            "memory": message.memory,
            "inputs": list(message.inputs),
        }
    else:
        fields = {
            "reasoning": [dict(block) for block in message.reasoning],
            "partial": message.partial,
            "notice": message.notice,
            "context_tokens": message.context_tokens,
        }
    return json_text({key: value for key, value in fields.items() if value})
