"""Discord, by way of its gateway and REST API: what the daemon must know before it loads the platform's library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from channels.discord.settings import DiscordSettings
from zerobot.core.channel import Capabilities, Channel, ChannelKind, ChannelServices, Finding, Pace, Question

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["KIND", "DiscordSettings"]


def _open(settings: BaseModel, services: ChannelServices) -> Channel:
    from channels.discord.adapter import open_channel  # noqa: PLC0415 -- loads the platform's library

    return open_channel(DiscordSettings.model_validate(settings), services)


async def _check(settings: BaseModel, services: ChannelServices) -> AsyncIterator[Finding]:
    from channels.discord.check import check_channel  # noqa: PLC0415 -- loads the platform's library

    async for finding in check_channel(DiscordSettings.model_validate(settings), services):
        yield finding


KIND = ChannelKind(
    name="discord",
    title="Discord",
    settings=DiscordSettings,
    capabilities=Capabilities(
        edits=True,
        buttons=True,
        # The indicator is shown for 10 seconds: https://discord.com/developers/docs/resources/channel#trigger-typing-indicator
        typing_interval=8.0,
        groups=True,
    ),
    # 50 requests a second for the whole bot: https://discord.com/developers/docs/topics/rate-limits#global-rate-limit
    # 5 in 5 seconds is what the X-RateLimit headers of a channel's messages say, for new ones and for edits; here both
    # share it. A draft leaves one call of it free.
    pace=Pace(draft_interval=1.3, chat_calls=(5, 5.0), bot_calls=(50, 1.0), strict=True),
    extra="discord",
    library="discord",
    questions=(
        Question(
            key="bot_token",
            prompt="Bot token",
            secret=True,
            help="Make an application on https://discord.com/developers/applications; on its page Bot reset the token, "
            "copy it, and switch on MESSAGE CONTENT INTENT.",
        ),
    ),
    open=_open,
    check=_check,
)
