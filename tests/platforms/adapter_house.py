"""An adapter beside the double of its platform, in one process and without a daemon."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

import httpx

from tests.platforms.adapter_parts import COMMANDS, HastyClock, Lines
from zerobot.core.channel import Channel, ChannelServices
from zerobot.testing.intake import MemoryState, RecordingIntake

C = TypeVar("C", bound=Channel)


class AdapterHouse(Generic[C]):
    """What each adapter's house has: what the channel is lent, and where what it does is recorded.

    Args:
        name: Of the channel's table.
        state: What an earlier channel has left; None: nothing.
    """

    channel: C
    """Made by the house of each platform."""

    def __init__(self, name: str, state: MemoryState | None = None) -> None:
        self.clock = HastyClock()
        self.log = Lines()
        self.state = state or MemoryState()
        self.http = httpx.AsyncClient(trust_env=False)
        self.intake = RecordingIntake()
        self.services = ChannelServices(
            name=name,
            http=lambda: self.http,
            escape=str,
            safe_name=str,
            clock=self.clock,
            log=self.log,
            commands=COMMANDS,
            state=self.state,
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[RecordingIntake]:
        """Receive inside of this scope, once it is connected."""
        connects = self.intake.connects
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.channel.run(self.intake))
            await self.intake.until(lambda: self.intake.connects > connects)
            try:
                yield self.intake
            finally:
                task.cancel()

    async def close(self) -> None:
        """Let go of the connections."""
        await self.channel.close()
        await self.http.aclose()
