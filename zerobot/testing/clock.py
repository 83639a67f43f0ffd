"""A clock that stands still until a test moves it."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import count

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
LOOP_PASSES = 25
"""How often the event loop turns before time moves on: more than any chain of awaits that ends in a sleep."""


async def loop_settles() -> None:
    """Let everything run that can run without time, threads or sockets."""
    for _ in range(LOOP_PASSES):
        await asyncio.sleep(0)


class ManualClock:
    """A `Clock` whose time moves by `advance` and `work` alone.

    Args:
        start: Wall time at the beginning, UTC; monotonic time begins at 0.
        settle: Awaited before each step of time, so that whoever works with the time that is has done so. A test with
            a database hands in a function that waits for it too.
    """

    def __init__(self, start: datetime = START, settle: Callable[[], Awaitable[None]] = loop_settles) -> None:
        self._wall = start
        self._monotonic = 0.0
        self._settle = settle
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def now(self) -> datetime:
        """The wall time, UTC."""
        return self._wall

    def monotonic(self) -> float:
        """Seconds that `advance` and `work` have moved."""
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        """Wait until the test has moved time by `seconds`."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        due = self._monotonic + seconds
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (due, next(self._order), future))
        await future

    def jump(self, seconds: float) -> None:
        """Move the wall time only, as an administrator or a time server does; no sleeper notices."""
        self._wall += timedelta(seconds=seconds)

    def work(self, seconds: float) -> None:
        """Let time pass while nothing else runs, as one long calculation does; sleepers notice it afterwards."""
        self._move_to(self._monotonic + seconds)

    def settle_with(self, settle: Callable[[], Awaitable[None]]) -> None:
        """Choose anew what is awaited before each step of time."""
        self._settle = settle

    async def settle(self) -> None:
        """Let everything run that can run before time moves."""
        await self._settle()

    async def advance(self, seconds: float) -> None:
        """Move time, and stop at each moment at which a sleeper is due, so that it sees just that time."""
        target = self._monotonic + seconds
        await self._settle()
        while (due := self.next_due()) is not None and due <= target:
            self._move_to(due)
            self._wake(due)
            await self._settle()
        self._move_to(target)

    async def advance_until(self, condition: Callable[[], bool], *, limit: float = 86_400.0) -> None:
        """Move time from sleeper to sleeper until something holds.

        Args:
            condition: What is waited for.
            limit: Seconds of this clock after which it is a failure.

        Raises:
            AssertionError: It did not come to hold, or nobody sleeps any more.
        """
        end = self._monotonic + limit
        await self._settle()
        while not condition():
            due = self.next_due()
            assert due is not None, "nobody sleeps, so time changes nothing any more"
            assert due <= end, f"it did not happen within {limit} s"
            await self.advance(due - self._monotonic)

    def next_due(self) -> float | None:
        """When the next sleeper wakes, in monotonic seconds; None when nobody sleeps."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def _move_to(self, target: float) -> None:
        target = max(target, self._monotonic)
        self._wall += timedelta(seconds=target - self._monotonic)
        self._monotonic = target

    def _wake(self, due: float) -> None:
        while self._sleepers and self._sleepers[0][0] <= due:
            future = heapq.heappop(self._sleepers)[2]
            if not future.done():
                future.set_result(None)
