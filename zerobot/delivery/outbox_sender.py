"""Brings what is in the outbox to its place: each part in order, once, whatever the platform does."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from zerobot.core.channel import MessageBody, OutboundMessage, SentMessage, SettlesUnclear
from zerobot.core.errors import (
    DeliveryError,
    GoneError,
    MovedError,
    RefusedError,
    StorageError,
    TryLaterError,
    UnclearError,
    UnreachableError,
)
from zerobot.core.places import Place
from zerobot.delivery.line import Bench, Line, Shown, part_key
from zerobot.delivery.pacing import Priority
from zerobot.store.outbox import PartState, Reply, ReplyPart, ReplyState

LONGEST_BACKOFF = 60.0
"""Seconds between tries; they begin at 1 and double, and each wait is drawn between 0 and that."""
KEPT = timedelta(days=1)
"""How long a reply is tried: an answer of yesterday helps nobody."""
REPEAT_AFTER = 32.0
"""Seconds before the one repeat of a message whose connection broke. There is no second repeat, so it must not fall into
the same outage; most such messages did arrive, so nobody misses it meanwhile. After a crash it is repeated at once."""
NOTHING_VISIBLE = "(no text)"
REFUSED = "(The rest of this message was refused here.)"
REFUSED_KEPT = 500
"""Characters of a message that was refused in its plain form too, which are tried with the notice instead of it."""

Jitter = Callable[[float], float]
"""Draws a wait between 0 and some seconds."""


def full_jitter(longest: float) -> float:
    """Any wait up to the longest is as likely: many that failed together do not come back together."""
    return random.uniform(0.0, longest)  # noqa: S311 -- no secret


class _GivenUpError(Exception):
    """A reply can't be delivered at all; `str(error)` says why."""


@dataclass(slots=True, kw_only=True)
class _Job:
    """One part on its way."""

    reply: Reply
    position: int
    place: Place
    body: MessageBody | None
    id: str
    """Of the message to edit; empty: there is none."""
    reply_to: str
    unclear: bool
    """A send of it ended unclear."""
    repeat: bool
    """It may be a repeat, and says so."""
    live: bool = False
    """It became unclear in this process: the outage may still be on."""
    stale: str = ""
    """A message that could not be edited and is to go once there is a new one."""
    form: int = 0
    """0: as rendered, 1: plain, 2: shortened."""
    moved: bool = False
    faults: int = 0


class OutboxSender:
    """Delivers one reply at a time; who calls it keeps the order of a place.

    Args:
        bench: The outbox, the clock, the log.
        jitter: Draws the waits between tries.
    """

    def __init__(self, bench: Bench, jitter: Jitter = full_jitter) -> None:
        self._bench = bench
        self._jitter = jitter

    async def deliver(self, reply: Reply, line: Line, shown: Mapping[int, Shown]) -> None:
        """Deliver a queued reply to its end: sent, or failed for good. Any other reply is left alone.

        Args:
            reply: Whose text is final.
            line: The channel of its place.
            shown: What its draft left on the platform, as far as this process knows.
        """
        if reply.state is not ReplyState.QUEUED:
            return
        reply = await self._patiently(reply, lambda: self._bench.outbox.plan(reply.id, _bodies(reply, line)))
        failed = 0
        try:
            for part in reply.parts:
                known = shown.get(part.position)
                failed += not await self._deliver_part(reply, part, line, known)
        except (_GivenUpError, UnreachableError) as error:
            await self._patiently(reply, lambda: self._bench.outbox.fail(reply.id, str(error)))
            self._log("delivery.failed", reply, level="warning", error=error, reason=_reason(error))
            return
        await self._patiently(reply, lambda: self._bench.outbox.finish(reply.id))
        self._log("delivery.sent", reply, parts=len(reply.parts) - failed, failed=failed)
