"""Tasks beside receiving: who owns them, and how long one is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from zerobot.core.clock import Clock
from zerobot.core.errors import ChannelFaultError


async def with_side_work(receive: Callable[[asyncio.TaskGroup], Awaitable[None]]) -> None:
    """Receive until cancelled, with a group that owns what goes on beside it.

    Args:
        receive: Gets the group.

    Raises:
        ChannelFaultError: As `receive` raises it, not as one of a group's.
    """
    fault: ChannelFaultError | None = None
    async with asyncio.TaskGroup() as side_work:
        try:
            await receive(side_work)
        except ChannelFaultError as error:
            fault = error
    if fault is not None:
        raise fault


async def is_done_within(work: asyncio.Task[object], clock: Clock, seconds: float) -> bool:
    """Wait for some work, but not for long; it goes on whatever becomes of the wait."""
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(clock.sleep(seconds))
        await asyncio.wait((work, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
    return work.done()
