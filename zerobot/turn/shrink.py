"""Making a request smaller that was longer than the model's window (pure; turn-engine spec K9)."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from zerobot.core.ids import CallId
from zerobot.core.messages import AssistantMessage, Message, RecordedCall, UserMessage
from zerobot.turn import notices
from zerobot.turn.settle import shorten

KEPT_OF_RESULT = 2_000
"""Characters that stay of a result that is too long."""
LEAST_OF_RESULT = 200
"""Characters that stay of it when nothing else is left to take away."""
CHARACTERS_A_TOKEN = 4


def estimate(messages: Iterable[Message]) -> int:
    """Tokens of some messages, roughly: four ASCII characters each, any other character one (spec K10)."""
    return sum(_tokens(text) for message in messages for text in _texts(message))


def shrink(messages: Sequence[Message], budget: int) -> tuple[Message, ...]:
    """Bring a sendable history below a size, as far as that goes; it stays sendable.

    Long results are cut first, the longest before the others. Then whole turns are left out, oldest first, the
    conversation's first one last; then the earlier rounds of the turn that runs. The newest words of a person and the
    newest round always stay.

    Args:
        messages: Oldest first.
        budget: Tokens, as `estimate` counts them.
    """
    kept = list(messages)
    for step in (_cut_results(KEPT_OF_RESULT), _drop_turns, _drop_rounds, _cut_results(LEAST_OF_RESULT)):
        if estimate(kept) <= budget:
            break
        kept = step(kept, budget)
    return tuple(kept)


def _cut_results(characters: int) -> Callable[[list[Message], int], list[Message]]:
    """A step that cuts results to some characters, the longest first, until the rest fits."""

    def step(messages: list[Message], budget: int) -> list[Message]:
        left = estimate(messages) - budget
        results = [call for m in messages if isinstance(m, AssistantMessage) for call in m.calls if call.result]
        cut = set()
        for call in sorted(results, key=_result_length, reverse=True):
            if left <= 0 or _result_length(call) <= characters:
                break
            cut.add(call.id)
            left -= _tokens(_result_text(call)) - _tokens(shorten(_result_text(call), characters))
        return [_with_cut(m, cut, characters) if isinstance(m, AssistantMessage) else m for m in messages]

    return step


def _drop_turns(messages: list[Message], budget: int) -> list[Message]:
    turns = _turns(messages)
    gone = False
    while len(turns) > 1 and estimate(m for turn in turns for m in turn) > budget:
        # The first one goes last: it says what the conversation is about.
        del turns[1 if len(turns) > 2 else 0]
        gone = True
    kept = [message for turn in turns for message in turn]
    return _told(kept) if gone else kept


def _drop_rounds(messages: list[Message], budget: int) -> list[Message]:
    newest = max(index for index, message in enumerate(messages) if isinstance(message, UserMessage))
    rest = messages[newest + 1 :]
    gone = False
    while len(rest) > 1 and estimate([*messages[: newest + 1], *rest]) > budget:
        del rest[0]
        gone = True
    kept = [*messages[: newest + 1], *rest]
    return _told(kept) if gone else kept


def _turns(messages: list[Message]) -> list[list[Message]]:
    turns: list[list[Message]] = []
    for message in messages:
        if isinstance(message, UserMessage) or not turns:
            turns.append([])
        turns[-1].append(message)
    return turns


def _told(messages: list[Message]) -> list[Message]:
    """Let the model know that it does not see all; said once, in the first message."""
    first = messages[0]
    if not isinstance(first, UserMessage) or notices.LEFT_OUT in first.note:
        return messages
    note = "\n".join(each for each in (notices.LEFT_OUT, first.note) if each)
    return [replace(first, note=note), *messages[1:]]


def _with_cut(message: AssistantMessage, cut: set[CallId], characters: int) -> AssistantMessage:
    if not any(call.id in cut for call in message.calls):
        return message
    calls = [_cut(call, characters) if call.id in cut else call for call in message.calls]
    return replace(message, calls=tuple(calls))


def _cut(call: RecordedCall, characters: int) -> RecordedCall:
    if call.result is None:
        return call
    return replace(call, result=replace(call.result, text=shorten(call.result.text, characters)))


def _texts(message: Message) -> Iterable[str]:
    yield message.text
    if isinstance(message, UserMessage):
        yield message.note
        return
    yield message.notice
    for block in message.reasoning:
        yield json.dumps(block, default=str)
    for call in message.calls:
        yield call.name
        yield call.raw_arguments
        yield _result_text(call)


def _result_text(call: RecordedCall) -> str:
    return call.result.text if call.result else ""


def _result_length(call: RecordedCall) -> int:
    return len(_result_text(call))


def _tokens(text: str) -> int:
    ascii_characters = len(text.encode("ascii", "ignore"))
    return ascii_characters // CHARACTERS_A_TOKEN + (len(text) - ascii_characters)
