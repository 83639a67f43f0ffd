"""Waiting for something or for time, whichever is first, with a clock that a test may hold still."""

import asyncio

from zerobot.core.clock import Clock


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
