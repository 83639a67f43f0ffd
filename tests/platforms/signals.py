"""What tests wait for at a platform's double."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

PATIENCE = 15.0
"""Seconds after which something awaited counts as not happening."""


class Signal:
    """Wakes whoever waits for a condition, each time that something has changed."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def fire(self) -> None:
        """Something has changed."""
        self._event.set()
        self._event = asyncio.Event()

    async def until(self, condition: Callable[[], Any], seen: Callable[[], object], patience: float = PATIENCE) -> None:
        """Wait until a condition holds.

        Args:
            condition: Looked at after each change.
            seen: What there is instead, for the failure's text.
            patience: Seconds.
        """
        if not await self.within(condition, patience):
            raise AssertionError(f"it did not happen within {patience} s; there is: {seen()}")

    async def within(self, condition: Callable[[], Any], seconds: float) -> bool:
        """Wait some seconds for a condition, and return whether it came to hold."""
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    await self._event.wait()
        except TimeoutError:
            return bool(condition())
        return True


class Hold:
    """Keeps a call waiting; `arrived` is set when it has come, and `release` lets it go on."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self._released = asyncio.Event()

    def release(self) -> None:
        """Let it go on."""
        self._released.set()

    async def keep(self) -> None:
        """Wait here."""
        self.arrived.set()
        await self._released.wait()
