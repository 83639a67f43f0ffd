"""Making a request smaller that was longer than the model's window (pure; turn-engine spec K9)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from zerobot.core.ids import CallId
from zerobot.core.messages import AssistantMessage, Message, RecordedCall, UserMessage
from zerobot.turn import notices
from zerobot.turn.estimate import estimate, tokens_of
from zerobot.turn.pictures import pictures, without_pictures
from zerobot.turn.settle import shorten

KEPT_OF_RESULT = 2_000
"""Characters that stay of a result that is too long."""
LEAST_OF_RESULT = 200
"""Characters that stay of it when nothing else is left to take away."""


def shrink(messages: Sequence[Message], budget: int) -> tuple[Message, ...]:
    """Bring a sendable history below a size, as far as that goes; it stays sendable.

    Long results are cut first, the longest before the others. Then the model only reads about pictures that it was
    shown, the oldest first. Then whole turns are left out, oldest first, the conversation's first one last; then the
    earlier rounds of the turn that runs. The newest words of a person and the newest round always stay.

    Args:
        messages: Oldest first.
        budget: Tokens, as `estimate` counts them.
    """
    kept = list(messages)
    steps = (_cut_results(KEPT_OF_RESULT), _drop_pictures, _drop_turns, _drop_rounds, _cut_results(LEAST_OF_RESULT))
    for step in steps:
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
            left -= tokens_of(_result_text(call)) - tokens_of(shorten(_result_text(call), characters))
        return [_with_cut(m, cut, characters) if isinstance(m, AssistantMessage) else m for m in messages]

    return step


def _drop_pictures(messages: list[Message], budget: int) -> list[Message]:
    while (shown := pictures(messages)) and estimate(messages) > budget:
        messages = without_pictures(messages, {shown[0].digest})
    return messages


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
    newest = max(index for index, message in enumerate(messages) if _is_input(message))
    rest = messages[newest + 1 :]
    gone = False
    while sum(isinstance(m, AssistantMessage) for m in rest) > 1:
        if estimate([*messages[: newest + 1], *rest]) <= budget:
            break
        del rest[0]
        gone = True
    kept = [*messages[: newest + 1], *rest]
    return _told(kept) if gone else kept


def _turns(messages: list[Message]) -> list[list[Message]]:
    turns: list[list[Message]] = []
    for message in messages:
        if not turns or (_is_input(message) and message.turn != turns[-1][-1].turn):
            turns.append([])
        turns[-1].append(message)
    return turns


def _is_input(message: Message) -> bool:
    """Whether a person says something; a note of the engine belongs to what stands before it."""
    return isinstance(message, UserMessage) and bool(message.text or message.files)


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


def _result_text(call: RecordedCall) -> str:
    return call.result.text if call.result else ""


def _result_length(call: RecordedCall) -> int:
    return len(_result_text(call))
