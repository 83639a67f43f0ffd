"""Which histories may be sent, and the strict form of one that may not (pure; turn-engine spec 0.3 and K14)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from zerobot.core.messages import AssistantMessage, Message, RecordedCall, UserMessage
from zerobot.store.history import NEVER_FINISHED

NO_TEXT = "(no text)"


def sendable(messages: Sequence[Message]) -> bool:
    """Whether every provider takes this history: `SENDABLE` of the spec."""
    return not faults(messages)


def faults(messages: Sequence[Message]) -> list[str]:
    """Why a history must not be sent, a line a fault, without its words; empty when it may be.

    That each result has its call, next to it, is in the types: a call carries its result.
    """
    found = []
    if not messages:
        found.append("there is no message")
    elif not isinstance(messages[0], UserMessage):
        found.append("the first message is not a person's")
    taken: set[str] = set()
    for message in messages:
        if isinstance(message, UserMessage):
            if not _says_something(message):
                found.append(f"message {message.seq} of a person is empty")
            continue
        if message.says_nothing:
            found.append(f"message {message.seq} of the model is empty")
        for call in message.calls:
            if call.result is None:
                found.append(f"call {call.id} has no result")
            if not call.wire_id or call.wire_id in taken:
                found.append(f"call {call.id} has no wire id of its own")
            taken.add(call.wire_id)
    return found


def strict(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The strict form of a history: what any provider takes, as long as a person said something in it.

    Calls without a result are closed, wire ids made unique, messages that say nothing left out, and so is what stands
    before the first person's words; neighbours that could be one message become one.
    """
    taken: set[str] = set()
    kept: list[Message] = []
    for message in messages:
        if isinstance(message, UserMessage):
            kept.append(message if _says_something(message) else replace(message, text=NO_TEXT))
        elif kept and not message.says_nothing:
            kept.append(replace(message, calls=tuple(_closed(call, taken) for call in message.calls)))
    return tuple(_merged(kept))


def _says_something(message: UserMessage) -> bool:
    return bool(message.text.strip() or message.files or message.note.strip())


def _closed(call: RecordedCall, taken: set[str]) -> RecordedCall:
    wire_id, number = call.wire_id or call.id, 1
    while wire_id in taken:
        number += 1
        wire_id = f"{call.id}_{number}"
    taken.add(wire_id)
    return replace(call, wire_id=wire_id, result=call.result or NEVER_FINISHED)


def _merged(messages: Iterable[Message]) -> list[Message]:
    merged: list[Message] = []
    for message in messages:
        last = merged[-1] if merged else None
        if isinstance(message, UserMessage) and isinstance(last, UserMessage) and message.speaker == last.speaker:
            merged[-1] = replace(
                message,
                text=_joined(last.text, message.text),
                files=(*last.files, *message.files),
                note=_joined(last.note, message.note),
                memory=_joined(last.memory, message.memory),
            )
        elif isinstance(message, AssistantMessage) and isinstance(last, AssistantMessage) and not last.calls:
            merged[-1] = replace(
                message,
                text=_joined(last.text, message.text),
                reasoning=(*last.reasoning, *message.reasoning),
                notice=_joined(last.notice, message.notice),
            )
        else:
            merged.append(message)
    return merged


def _joined(first: str, second: str) -> str:
    return "\n\n".join(each for each in (first, second) if each.strip())
