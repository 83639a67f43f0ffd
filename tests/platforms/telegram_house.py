"""The adapter beside the double, in one process and without a daemon."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence

from channels.telegram import KIND, TelegramSettings
from channels.telegram.adapter import TelegramChannel
from tests.platforms.adapter_house import AdapterHouse
from tests.platforms.telegram_server import TelegramServer
from zerobot.core.channel import OutboundFile, OutboundMessage, SentMessage
from zerobot.core.places import Place
from zerobot.testing.intake import MemoryState


class TelegramHouse(AdapterHouse[TelegramChannel]):
    """A channel of a server's bot, with everything around it recorded."""

    def __init__(self, server: TelegramServer, *, token: str = "", state: MemoryState | None = None) -> None:
        super().__init__("telegram", state)
        self.server = server
        self.settings = KIND.settings.model_validate({"bot_token": token or server.token, "api_base": server.api_base})
        assert isinstance(self.settings, TelegramSettings)
        self.channel = TelegramChannel(self.settings, self.services)

    async def send(
        self, chat: str, text: str, *, thread: str | None = None, reply_to: str = "", file: OutboundFile | None = None
    ) -> SentMessage:
        """Render a text and send its first message."""
        bodies: Sequence[object] = self.channel.render(text)
        assert len(bodies) == 1
        place = Place("telegram", chat, thread)
        body = self.channel.render(text)[0]
        return await self.channel.send(OutboundMessage(place=place, body=body, key="k1", reply_to=reply_to, file=file))


@contextlib.asynccontextmanager
async def telegram_house() -> AsyncIterator[TelegramHouse]:
    """A server and a channel of it."""
    async with TelegramServer() as server:
        house = TelegramHouse(server)
        try:
            yield house
        finally:
            await house.close()
