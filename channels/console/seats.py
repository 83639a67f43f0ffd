"""The terminals that are attached: each is told everything, and a slow one keeps nobody waiting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zerobot.core.terminal import Terminal

QUEUED = 1000
"""Items that wait for a terminal; one that is further behind is let go."""


class Seats:
    """The attached terminals."""

    def __init__(self) -> None:
        self._queues: dict[asyncio.Queue[Mapping[str, object]], asyncio.Task[None]] = {}
        self._taken = asyncio.Event()

    @property
    def count(self) -> int:
        """How many are attached."""
        return len(self._queues)

    async def taken(self) -> None:
        """Wait until a terminal is attached."""
        await self._taken.wait()

    def tell(self, item: Mapping[str, object]) -> None:
        """Give every terminal something to show."""
        for queue, task in list(self._queues.items()):
            try:
                queue.put_nowait(item)
            except asyncio.QueueFull:
                task.cancel()

    async def write(self, terminal: Terminal, first: Iterable[Mapping[str, object]]) -> None:
        """Write to one terminal until it is gone or too far behind; `first` comes before anything else."""
        queue: asyncio.Queue[Mapping[str, object]] = asyncio.Queue(QUEUED)
        writing = asyncio.create_task(_write(terminal, queue, first), name="terminal")
        self._queues[queue] = writing
        self._taken.set()
        try:
            await asyncio.wait((writing,))
        finally:
            del self._queues[queue]
            if not self._queues:
                self._taken.clear()
            writing.cancel()
            await asyncio.wait((writing,))


async def _write(
    terminal: Terminal, queue: asyncio.Queue[Mapping[str, object]], first: Iterable[Mapping[str, object]]
) -> None:
    try:
        for item in first:
            await terminal.send(item)
        while True:
            await terminal.send(await queue.get())
    except (OSError, TimeoutError):
        return
