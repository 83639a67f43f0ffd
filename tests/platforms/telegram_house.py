"""The adapter beside the double, in one process and without a daemon."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import httpx

from channels.telegram import KIND, TelegramSettings
from channels.telegram.adapter import TelegramChannel
from tests.platforms.adapter_parts import COMMANDS, HastyClock, Lines
from tests.platforms.telegram_server import TelegramServer
from zerobot.core.channel import ChannelServices, OutboundFile, OutboundMessage, SentMessage
from zerobot.core.places import Place
from zerobot.testing.intake import MemoryState, RecordingIntake


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
