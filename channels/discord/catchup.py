"""What was said to the bot while it was away: asked for chat by chat, within bounds of age and number."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

from channels._wire.known import KnownChat
from channels.discord.rest import LinkError, Payload, Rest, RestError
from channels.discord.rooms import Rooms
from zerobot.core.channel import ChannelServices

LONGEST_ABSENCE = timedelta(hours=24)
"""Older messages are let be: an answer of yesterday helps nobody."""
MOST_MESSAGES = 300
"""Of one chat."""
_PAGE = 100
# https://discord.com/developers/docs/reference#snowflakes
_EPOCH_MS = 1_420_070_400_000
_TRIES = 3


def snowflake_at(moment: datetime) -> int:
    """The least id of what is made at a moment."""
    return (int(moment.timestamp() * 1000) - _EPOCH_MS) << 22


class CatchUp:
    """Reads histories.

    Args:
        rest: Makes the calls.
        rooms: Knows the channels of direct chats.
        services: Name, clock and log.
    """

    def __init__(self, rest: Rest, rooms: Rooms, services: ChannelServices) -> None:
        self._rest = rest
        self._rooms = rooms
        self._services = services

    async def missed(self, chat: str, known: KnownChat) -> AsyncIterator[Payload]:
        """The messages of a chat that came after the newest one that was read, in order.

        Args:
            chat: The chat.
            known: How far it was read.
        """
        oldest = snowflake_at(self._services.clock.now() - LONGEST_ABSENCE)
        after = max(int(known.read_to), oldest) if known.read_to.isdecimal() else oldest
        found = 0
        while found < MOST_MESSAGES:
            page = await self._page(chat, after)
            for message in sorted(page, key=lambda each: int(each["id"])):
                yield message
            found += len(page)
            if len(page) < _PAGE:
                return
            after = max(int(each["id"]) for each in page)
        self._services.log("discord.catchup_cut", level="warning", channel=self._services.name, messages=found)

    async def _page(self, chat: str, after: int) -> list[Payload]:
        """Messages right after one; none when they cannot be had."""
        for _ in range(_TRIES):
            try:
                channel = await self._rooms.channel(chat)
                return list(await self._rest.logs_from(channel, _PAGE, after=after))
            except (RestError, LinkError) as error:
                self._services.log("discord.catchup_failed", level="warning", error=error, channel=self._services.name)
                if isinstance(error, RestError) and error.status < 500 and error.retry_after is None:
                    return []
                wait = error.retry_after if isinstance(error, RestError) and error.retry_after else 1.0
                await self._services.clock.sleep(wait)
        return []
