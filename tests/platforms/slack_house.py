"""The Slack adapter beside the double, in one process and without a daemon."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from channels.slack import KIND, SlackSettings
from channels.slack.adapter import SlackChannel
from tests.platforms.adapter_house import AdapterHouse
from tests.platforms.slack_server import SlackServer
from zerobot.core.channel import OutboundFile, OutboundMessage, SentMessage
from zerobot.core.places import Place
from zerobot.testing.intake import MemoryState


class SlackHouse(AdapterHouse[SlackChannel]):
    """A channel of a workspace's app, with everything around it recorded."""

    def __init__(self, server: SlackServer, *, state: MemoryState | None = None, **settings: Any) -> None:
        super().__init__("slack", state)
        self.server = server
        table = {
            "bot_token": server.bot_token,
            "app_token": server.app_token,
            "api_base": server.api_base,
            **settings,
        }
        self.settings = KIND.settings.model_validate(table)
        assert isinstance(self.settings, SlackSettings)
        self.channel = SlackChannel(self.settings, self.services)

    async def send(
        self,
        chat: str,
        text: str,
        *,
        thread: str | None = None,
        key: str = "k1",
        reply_to: str = "",
        answers: str = "",
        file: OutboundFile | None = None,
    ) -> SentMessage:
        """Render a text and send its one message."""
        (body,) = self.channel.render(text)
        message = OutboundMessage(
            place=Place("slack", chat, thread),
            body=body,
            key=key,
            reply_to=reply_to,
            answers=answers or reply_to,
            file=file,
        )
        return await self.channel.send(message)


@contextlib.asynccontextmanager
async def slack_house(**settings: Any) -> AsyncIterator[SlackHouse]:
    """A server and a channel of it."""
    async with SlackServer() as server:
        house = SlackHouse(server, **settings)
        try:
            yield house
        finally:
            await house.close()
        assert server.violations == []
