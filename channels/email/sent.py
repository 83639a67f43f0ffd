"""Copies of what was sent, put into the mailbox's folder of sent mail; sending never waits for one nor fails by one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from channels._wire.backoff import Backoff
from zerobot.core.clock import Clock
from zerobot.core.log import EventLog

MOST_BYTES = 64_000_000
"""Of mails that wait to be copied; more are not copied, so that a mailbox that is away costs no memory."""
TRIES = 5
COPY_SECONDS = 300.0
"""For one try; a large file takes its time."""
LAST_SECONDS = 10.0
"""For what waits when the channel closes."""


class SentMailbox(Protocol):
    """A connection to the mailbox."""

    async def find(self, message_id: str, folder: str) -> object | None:
        """Something, if a mail with this id is in the folder."""
        ...

    async def append(self, folder: str, raw: bytes) -> object:
        """Put a mail there, marked as read."""
        ...


@dataclass(frozen=True, slots=True)
class _Copy:
    message_id: str
    raw: bytes


class SentCopies:
    """Keeps copies. The same mail twice, as after a crash, becomes one copy.

    Args:
        opened: Connects, and says which folder is the one; entered for each try, so no connection is held in between.
        clock: Waits between tries.
        log: Gets `email.copy_failed` for a mail of which there is no copy in the end.
    """

    def __init__(
        self, opened: Callable[[], AbstractAsyncContextManager[tuple[SentMailbox, str]]], clock: Clock, log: EventLog
    ) -> None:
        self._opened = opened
        self._backoff = Backoff(clock)
        self._log = log
        self._waiting: asyncio.Queue[_Copy] = asyncio.Queue()
        self._bytes = 0

    def add(self, message_id: str, raw: bytes) -> None:
        """Ask for a copy of a mail that a server has taken; `run` makes it."""
        if self._bytes + len(raw) > MOST_BYTES:
            self._log("email.copy_failed", level="warning", reason="too many wait")
            return
        self._bytes += len(raw)
        self._waiting.put_nowait(_Copy(message_id, raw))

    async def run(self) -> None:
        """Make copies until cancelled."""
        while True:
            await self._make_next()

    async def finish(self) -> None:
        """Wait until all copies that were asked for are made or given up."""
        await self._waiting.join()

    async def close(self) -> None:
        """Make what still waits, but for a short while only: answers go out until the daemon's last moment."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                while not self._waiting.empty():
                    await self._make_next()
        if not self._waiting.empty():
            self._log("email.copy_failed", level="warning", reason="the mailbox was away when the daemon stopped")

    async def _make_next(self) -> None:
        copy = await self._waiting.get()
        try:
            await self._make(copy)
        except asyncio.CancelledError:
            self._waiting.put_nowait(copy)
            self._bytes += len(copy.raw)
            raise
        finally:
            self._bytes -= len(copy.raw)
            self._waiting.task_done()

    async def _make(self, copy: _Copy) -> None:
        for left in reversed(range(TRIES)):
            try:
                async with asyncio.timeout(COPY_SECONDS), self._opened() as (mailbox, folder):
                    if await mailbox.find(copy.message_id, folder) is None:
                        await mailbox.append(folder, copy.raw)
            except Exception as error:  # noqa: BLE001 -- whatever the mailbox does, mails go out
                if not left:
                    self._log("email.copy_failed", level="warning", error=error, reason="the mailbox refused it")
                    return
                await self._backoff.wait()
            else:
                return
