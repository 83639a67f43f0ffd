"""What makes a request sendable, and what of a refused one can be mended so that it is sent once more."""

from collections.abc import Sequence
from dataclasses import replace

from zerobot.core.errors import (
    BodyTooLargeError,
    ContextOverflowError,
    HistoryRejectedError,
    PictureRejectedError,
    ProviderError,
)
from zerobot.core.events import StatusChanged
from zerobot.core.log import EventLog
from zerobot.core.messages import Message, UserMessage
from zerobot.core.model import ModelRequest
from zerobot.turn import notices
from zerobot.turn.estimate import estimate
from zerobot.turn.kit import Emit
from zerobot.turn.pictures import newest_pictures, pictures, without_pictures
from zerobot.turn.shrink import shrink
from zerobot.turn.validity import faults, sendable, strict

SHARES = (0.7, 0.5, 0.35)
"""What stays of a request that was too long: at the first overflow, the second and the third without an answer."""
NEWEST_PICTURES = 2
"""How many pictures are still shown when a request with more of them had too many bytes."""


def with_note(request: ModelRequest, note: str) -> ModelRequest:
    """A request in which the model reads a note after the conversation; nothing changes without one."""
    if not note:
        return request
    *before, last = request.messages
    if isinstance(last, UserMessage):
        last = replace(last, note="\n".join(each for each in (last.note, note) if each))
        return replace(request, messages=[*before, last])
    word = UserMessage(seq=last.seq, turn=last.turn, text="", note=note)
    return replace(request, messages=[*request.messages, word])


class Mender:
    """Mends the requests of one turn. What it once had to leave out stays out for the rest of the turn."""

    def __init__(self, emit: Emit, log: EventLog) -> None:
        self._emit = emit
        self._log = log
        self._unshown: set[str] = set()
        """Digests of pictures that a provider did not take. One that comes later is shown all the same."""
        self._budget: int | None = None
        """Tokens that a request may have, once one was too long."""
        self._overflows = 0
        self._resent = False
        self._reported: set[tuple[str, ...]] = set()

    def ready(self, request: ModelRequest) -> ModelRequest:
        """Make a request sendable; what had to be repaired is reported once.

        Raises:
            HistoryRejectedError: Nobody said anything in it, so that there is nothing to answer.
        """
        messages: Sequence[Message] = without_pictures(request.messages, self._unshown, notices.PICTURE_LEFT_OUT)
        found = faults(messages)
        if found:
            self._report(found)
            messages = strict(messages)
        if not sendable(messages):
            raise HistoryRejectedError("there is no message of a person to answer", code="nothing_to_answer")
        if self._budget is not None:
            messages = shrink(messages, self._budget)
        return replace(request, messages=messages)

    def mend(self, request: ModelRequest, error: ProviderError) -> ModelRequest | None:
        """What is sent instead of a request that a provider has refused; None: nothing can be done about it."""
        messages: Sequence[Message] = ()
        if isinstance(error, BodyTooLargeError | PictureRejectedError) and pictures(request.messages):
            messages = self._fewer_pictures(request.messages, error)
        elif isinstance(error, ContextOverflowError):
            messages = self._smaller(request.messages)
        elif isinstance(error, HistoryRejectedError) and not self._resent:
            self._resent = True
            self._report([str(error)])
            messages = strict(request.messages)
        if not messages or tuple(messages) == tuple(request.messages):
            return None
        return replace(request, messages=messages)

    def answered(self) -> None:
        """A request had its answer; the next one may be mended as often."""
        self._overflows = 0
        self._resent = False

    def _fewer_pictures(self, messages: Sequence[Message], error: ProviderError) -> Sequence[Message]:
        """The newest two if it was the bytes; those of the newest message, if one that came earlier may be the bad one.

        If that does not do, or is no less, none.
        """
        every = pictures(messages)
        newest = every[-NEWEST_PICTURES:] if isinstance(error, BodyTooLargeError) else newest_pictures(messages)
        shown = {file.digest for file in every}
        gone = shown - {file.digest for file in newest} or shown
        self._unshown |= gone
        self._log("history.pictures_left_out", level="warning", pictures=len(gone), left=len(shown - gone))
        self._emit(StatusChanged(notices.WITHOUT_PICTURES))
        return without_pictures(messages, gone, notices.PICTURE_LEFT_OUT)

    def _smaller(self, messages: Sequence[Message]) -> Sequence[Message]:
        if self._overflows == len(SHARES):
            return ()
        size = estimate(messages)
        self._budget = int(size * SHARES[self._overflows])
        self._overflows += 1
        smaller = shrink(messages, self._budget)
        self._log("history.shrunk", level="warning", tokens_before=size, tokens_after=estimate(smaller))
        self._emit(StatusChanged(notices.SHORTENING))
        return smaller

    def _report(self, found: Sequence[str]) -> None:
        if tuple(found) not in self._reported:
            self._reported.add(tuple(found))
            self._log("history.repaired", level="warning", faults=list(found))
