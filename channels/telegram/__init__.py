"""Telegram, by way of the Bot API: what the daemon must know before it loads the platform's library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from channels.telegram.settings import TelegramSettings
from zerobot.core.channel import Capabilities, Channel, ChannelKind, ChannelServices, Finding, Pace, Question
from zerobot.core.places import Place

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["KIND", "TelegramSettings", "is_group"]


def is_group(place: Place) -> bool:
    """Whether a place is a group: the ids of groups and channels are negative, those of people are not."""
    return place.chat.startswith("-")


def _open(settings: BaseModel, services: ChannelServices) -> Channel:
    from channels.telegram.adapter import open_channel  # noqa: PLC0415 -- loads the platform's library

    return open_channel(TelegramSettings.model_validate(settings), services)


async def _check(settings: BaseModel, services: ChannelServices) -> AsyncIterator[Finding]:
    from channels.telegram.check import check_channel  # noqa: PLC0415 -- loads the platform's library

    async for finding in check_channel(TelegramSettings.model_validate(settings), services):
        yield finding


KIND = ChannelKind(
    name="telegram",
    title="Telegram",
    settings=TelegramSettings,
    capabilities=Capabilities(
        edits=True,
        buttons=True,
        # A chat action is shown for 5 seconds or less: https://core.telegram.org/bots/api#sendchataction
        typing_interval=4.0,
        groups=True,
    ),
    # https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this: about one message a second in a
    # chat, 20 a minute in a group, 30 a second for the whole bot. A tenth is left for what we cannot see.
    pace=Pace(
        draft_interval=1.1,
        chat_calls=(1, 1.0),
        bot_calls=(30, 1.0),
        group_draft_interval=3.1,
        group_calls=(20, 60.0),
        is_group=is_group,
    ),
    extra="telegram",
    library="telegram",
    questions=(
        Question(
            key="bot_token",
            prompt="Bot token",
            secret=True,
            help="Talk to @BotFather on Telegram, send /newbot, and copy the token that it answers with.",
        ),
    ),
    open=_open,
    check=_check,
)
