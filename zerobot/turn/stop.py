"""Stopping a turn from outside: the first cause wins, and every wait of the turn ends at once."""

import asyncio
from collections.abc import Coroutine
from enum import StrEnum
from typing import Any, TypeVar

T = TypeVar("T")


class StopCause(StrEnum):
    """Why a turn is stopped before its end."""

    USER = "user"
    TIMEOUT = "timeout"
    SHUTDOWN = "shutdown"
    """The daemon ends: the turn is left in the store and goes on at the next start."""


class TurnStoppedError(Exception):
    """Raised inside a turn, at the place where it was stopped."""

    def __init__(self, cause: StopCause) -> None:
        super().__init__(cause)
        self.cause = cause


class StopSignal:
    """One turn's stop switch."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.cause: StopCause | None = None

    def request(self, cause: StopCause) -> bool:
        """Stop the turn; False when it was stopped before."""
        if self.cause is not None:
            return False
        self.cause = cause
        self._event.set()
        return True

    async def wait(self) -> None:
        """Wait until somebody stops the turn."""
        await self._event.wait()

    def check(self) -> None:
        """Raise if the turn was stopped.

        Raises:
            TurnStoppedError: It was.
        """
        if self.cause is not None:
            raise TurnStoppedError(self.cause)

    async def unless_stopped(self, work: Coroutine[Any, Any, T]) -> T:
        """Do some work; a stop cancels it. Work that has ended by then counts: its result is returned.

        Raises:
            TurnStoppedError: The turn was stopped before the work had ended.
            RuntimeError: The work gave up by itself, as if it had been cancelled.
        """
        task = asyncio.create_task(work)
        waiter = asyncio.create_task(self.wait())
        try:
            await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED)
            if task.cancelled():
                raise RuntimeError("the work was cancelled from inside")
            if task.done():
                return task.result()
        finally:
            waiter.cancel()
            task.cancel()
            await asyncio.wait({task, waiter})
            if not task.cancelled():
                # Looked at, so that an error on the way out is not reported as one that nobody has seen.
                task.exception()
        self.check()
        raise AssertionError("the work has not ended and nobody stopped it")
