"""How long to wait after a fault: full jitter, from one second up to a minute."""

from __future__ import annotations

import random
from collections.abc import Callable

from zerobot.core.clock import Clock

_FIRST_SECONDS = 1.0
_LONGEST_SECONDS = 60.0
_HEALTHY_SECONDS = 60.0
# Even the luckiest throw leaves the other side a moment.
_SHORTEST_SECONDS = 0.05


class Backoff:
    """Counts faults; a minute without one makes the next wait short again."""

    def __init__(self, clock: Clock, throw: Callable[[], float] = random.random) -> None:
        """Begin without faults.

        Args:
            clock: Monotonic time.
            throw: Gives a number from 0 up to 1.
        """
        self._clock = clock
        self._throw = throw
        self._faults = 0
        self._quiet_since = 0.0

    async def wait(self, at_least: float = 0.0) -> None:
        """Wait after a fault, at least the seconds that the other side asked for."""
        if self._clock.monotonic() - self._quiet_since >= _HEALTHY_SECONDS:
            self._faults = 0
        ceiling = min(_FIRST_SECONDS * 2**self._faults, _LONGEST_SECONDS)
        self._faults = min(self._faults + 1, 10)
        await self._clock.sleep(max(self._throw() * ceiling, _SHORTEST_SECONDS, at_least))
        self._quiet_since = self._clock.monotonic()
