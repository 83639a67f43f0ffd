"""What an adapter gets in a test without a daemon: a clock that waits for nothing, a kept log, some commands."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

from zerobot.core.channel import ChatCommand
from zerobot.core.log import Level

COMMANDS = (
    ChatCommand(name="help", summary="What I can do"),
    ChatCommand(name="stop", summary="Stop this turn"),
    ChatCommand(name="freeze", summary="Stop everything", operators_only=True),
)


class HastyClock:
    """True time, but nobody waits; what somebody wanted to wait is kept."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.ahead = 0.0
        """Seconds that this clock's monotonic time is ahead of the true one."""
        self.wall = timedelta()
        """By how much its wall time is ahead."""

    def now(self) -> datetime:
        """The time."""
        return datetime.now(UTC) + self.wall

    def monotonic(self) -> float:
        """Seconds."""
        return time.monotonic() + self.ahead

    async def sleep(self, seconds: float) -> None:
        """Let the others work, and go on."""
        self.waits.append(seconds)
        await asyncio.sleep(0.01)


class Lines:
    """An `EventLog` that keeps its events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, object]]] = []

    def __call__(
        self, event: str, /, *, level: Level = "info", error: BaseException | None = None, **fields: object
    ) -> None:
        """Keep an event."""
        self.events.append((event, {"level": level, "error": repr(error), **fields}))

    @property
    def names(self) -> list[str]:
        """The events' names."""
        return [name for name, _ in self.events]
