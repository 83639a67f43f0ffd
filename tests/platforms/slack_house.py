"""The Slack adapter beside the double, in one process and without a daemon."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx

from channels.slack import KIND, SlackSettings
from channels.slack.adapter import SlackChannel
from tests.platforms.adapter_parts import COMMANDS, HastyClock, Lines
from tests.platforms.slack_server import SlackServer
from zerobot.core.channel import ChannelServices, OutboundFile, OutboundMessage, SentMessage
from zerobot.core.places import Place
from zerobot.testing.intake import MemoryState, RecordingIntake


class SlackHouse:
    """A channel of a workspace's app, with everything around it recorded."""

    def __init__(self, server: SlackServer, *, state: MemoryState | None = None, **settings: Any) -> None:
        self.server = server
        self.clock = HastyClock()
        self.log = Lines()
        self.state = state or MemoryState()
        self.http = httpx.AsyncClient(trust_env=False)
        self.intake = RecordingIntake()
        table = {
            "bot_token": server.bot_token,
            "app_token": server.app_token,
            "api_base": server.api_base,
            **settings,
        }
        self.settings = KIND.settings.model_validate(table)
        self.services = ChannelServices(
            name="slack",
            http=lambda: self.http,
            escape=str,
            safe_name=str,
            clock=self.clock,
            log=self.log,
            commands=COMMANDS,
            state=self.state,
        )
        assert isinstance(self.settings, SlackSettings)
        self.channel = SlackChannel(self.settings, self.services)

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

    async def close(self) -> None:
        """Let go of the connections."""
        await self.channel.close()
        await self.http.aclose()


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
