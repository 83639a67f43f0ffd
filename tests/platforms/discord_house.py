"""The Discord adapter beside the double, in one process and without a daemon."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from channels.discord import KIND, DiscordSettings
from channels.discord.adapter import DiscordChannel
from tests.platforms.adapter_house import AdapterHouse
from tests.platforms.discord_server import DiscordServer
from zerobot.core.channel import OutboundFile, OutboundMessage, SentMessage
from zerobot.core.places import Place
from zerobot.testing.intake import MemoryState


class DiscordHouse(AdapterHouse[DiscordChannel]):
    """A channel of a server's bot, with everything around it recorded."""

    def __init__(
        self, server: DiscordServer, *, token: str = "", state: MemoryState | None = None, **settings: Any
    ) -> None:
        super().__init__("discord", state)
        self.server = server
        table = {"bot_token": token or server.token, "api_base": server.api_base, **settings}
        self.settings = KIND.settings.model_validate(table)
        assert isinstance(self.settings, DiscordSettings)
        self.channel = DiscordChannel(self.settings, self.services)

    async def send(
        self, chat: str, text: str, *, key: str = "k1", reply_to: str = "", file: OutboundFile | None = None
    ) -> SentMessage:
        """Render a text and send its one message."""
        (body,) = self.channel.render(text)
        place = Place("discord", chat)
        return await self.channel.send(OutboundMessage(place=place, body=body, key=key, reply_to=reply_to, file=file))


@contextlib.asynccontextmanager
async def discord_house(**settings: Any) -> AsyncIterator[DiscordHouse]:
    """A server and a channel of it."""
    async with DiscordServer() as server:
        house = DiscordHouse(server, **settings)
        try:
            yield house
        finally:
            await house.close()
