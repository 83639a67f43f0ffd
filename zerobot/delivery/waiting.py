"""Waiting for something or for time, whichever is first, with a clock that a test may hold still."""

import asyncio
from datetime import datetime

from zerobot.core.clock import Clock

LONGEST_LOOK = 60.0
"""Seconds after which the wall time is looked at again: it may have been set meanwhile."""


async def event_or_timeout(event: asyncio.Event, clock: Clock, seconds: float | None) -> bool:
    """Wait until the event is set, at most some seconds (None: as long as it takes).

    Returns:
        Whether the event is set.
    """
    if seconds is None:
        await event.wait()
    elif not event.is_set() and seconds > 0:
        async with asyncio.TaskGroup() as group:
            over = group.create_task(clock.sleep(seconds), name="timeout")
            happened = group.create_task(event.wait(), name="event")
            await asyncio.wait((over, happened), return_when=asyncio.FIRST_COMPLETED)
            over.cancel()
            happened.cancel()
    return event.is_set()


async def event_or_moment(event: asyncio.Event, clock: Clock, moment: datetime | None) -> None:
    """Wait until the event is set or a moment (UTC; None: there is none) has come by the wall clock.

    It may return before that; whoever waits looks at the clock and waits again.
    """
    seconds = None if moment is None else min(max((moment - clock.now()).total_seconds(), 0.001), LONGEST_LOOK)
    await event_or_timeout(event, clock, seconds)
