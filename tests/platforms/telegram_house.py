"""The adapter beside the double, in one process and without a daemon."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

import httpx

from channels.telegram import KIND, TelegramSettings
from channels.telegram.adapter import TelegramChannel
from tests.platforms.telegram_server import TelegramServer
from zerobot.core.channel import ChannelServices, ChatCommand, OutboundFile, OutboundMessage, SentMessage
from zerobot.core.log import Level
from zerobot.core.places import Place
from zerobot.testing.intake import MemoryState, RecordingIntake

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

    def now(self) -> datetime:
        """The time."""
        return datetime.now(UTC)

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


class TelegramHouse:
    """A channel of a server's bot, with everything around it recorded."""

    def __init__(self, server: TelegramServer, *, token: str = "", state: MemoryState | None = None) -> None:
        self.server = server
        self.clock = HastyClock()
        self.log = Lines()
        self.state = state or MemoryState()
        self.http = httpx.AsyncClient(trust_env=False)
        self.intake = RecordingIntake()
        self.settings = KIND.settings.model_validate({"bot_token": token or server.token, "api_base": server.api_base})
        self.services = ChannelServices(
            name="telegram",
            http=lambda: self.http,
            escape=str,
            safe_name=str,
            clock=self.clock,
            log=self.log,
            commands=COMMANDS,
            state=self.state,
        )
        assert isinstance(self.settings, TelegramSettings)
        self.channel = TelegramChannel(self.settings, self.services)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[RecordingIntake]:
        """Receive inside of this scope, once it is connected."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.channel.run(self.intake))
            await self.intake.until(lambda: self.intake.connects)
            try:
                yield self.intake
            finally:
                task.cancel()

    async def send(
        self, chat: str, text: str, *, thread: str | None = None, reply_to: str = "", file: OutboundFile | None = None
    ) -> SentMessage:
        """Render a text and send its first message."""
        bodies: Sequence[object] = self.channel.render(text)
        assert len(bodies) == 1
        place = Place("telegram", chat, thread)
        body = self.channel.render(text)[0]
        return await self.channel.send(OutboundMessage(place=place, body=body, key="k1", reply_to=reply_to, file=file))

    async def close(self) -> None:
        """Let go of the connections."""
        await self.channel.close()
        await self.http.aclose()


@contextlib.asynccontextmanager
async def telegram_house() -> AsyncIterator[TelegramHouse]:
    """A server and a channel of it."""
    async with TelegramServer() as server:
        house = TelegramHouse(server)
        try:
            yield house
        finally:
            await house.close()
