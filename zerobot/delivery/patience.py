"""How long to wait before something is tried again."""

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from zerobot.core.clock import Clock
from zerobot.core.errors import StorageError
from zerobot.core.log import EventLog

T = TypeVar("T")

LONGEST_BACKOFF = 60.0
"""Seconds between tries; they begin at 1 and double, and each wait is drawn between 0 and that."""

Jitter = Callable[[float], float]
"""Draws a wait between 0 and some seconds."""


def full_jitter(longest: float) -> float:
    """Any wait up to the longest is as likely: many that failed together do not come back together."""
    return random.uniform(0.0, longest)  # noqa: S311 -- no secret


class Patience:
    """Waits between tries.

    Args:
        clock: What waits.
        log: Gets `storage.failed` for each write that has to be tried again.
        jitter: Draws the waits.
    """

    def __init__(self, clock: Clock, log: EventLog, jitter: Jitter = full_jitter) -> None:
        self.clock = clock
        self._log = log
        self._jitter = jitter

    async def back_off(self, faults: int, at_least: float = 0.0) -> None:
        """Wait after a failure.

        Args:
            faults: How many there were in a row, this one included.
            at_least: Seconds that the platform asked for.
        """
        longest = min(2.0 ** min(faults - 1, 16), LONGEST_BACKOFF)
        await self.clock.sleep(max(at_least, self._jitter(longest)))

    async def stored(self, write: Callable[[], Awaitable[T]]) -> T:
        """Write what has happened already: it must be on record before anything else, so a full disk is waited out."""
        faults = 0
        while True:
            try:
                return await write()
            except StorageError as error:
                self._log("storage.failed", level="error", error=error)
                faults += 1
                await self.back_off(faults)
