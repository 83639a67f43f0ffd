"""Calls that repeat: which are the same, how often in a row, and what the model is told about it (pure; spec K7)."""

from collections.abc import Sequence
from itertools import takewhile

from zerobot.core.ids import CallId
from zerobot.core.messages import RecordedCall
from zerobot.security.digest import canonical_json
from zerobot.turn import notices
from zerobot.turn.check import parse_arguments

HINTS = ((8, notices.REPEATS_ANSWER_NOW), (5, notices.REPEATS_OPTIONS), (3, notices.REPEATS))
"""From how many of the same call in a row which hint is added to the result."""
LIMIT = 12
"""The same call so often in a row ends the turn, by an answer."""


def call_key(call: RecordedCall) -> str:
    """What two calls have in common that are the same: the tool and the arguments, whatever the order of their keys.

    Arguments that are no JSON object are compared by their text.
    """
    if parse_arguments(call.raw_arguments) is None:
        return f"{call.name} {call.raw_arguments}"
    return f"{call.name} {canonical_json(dict(call.arguments)).decode('ascii')}"


def streak(rounds: Sequence[Sequence[RecordedCall]], call: CallId) -> int:
    """How often in a row the same was asked for, up to a call and with it. Copies within a step count once.

    Args:
        rounds: The calls of a turn, step by step.
        call: One of them; 0 when it is none.
    """
    keys: list[str] = []
    for calls in rounds:
        seen: set[str] = set()
        for each in calls:
            key = call_key(each)
            if key not in seen:
                seen.add(key)
                keys.append(key)
            if each.id == call:
                return len(list(takewhile(lambda other, key=key: other == key, reversed(keys))))  # type: ignore[misc]
    return 0


def hint(count: int) -> str:
    """What is added to the result of a call that comes for the `count`-th time in a row; mostly nothing."""
    return next((words for least, words in HINTS if count >= least), "")
