"""What was said to the bot while it was away: asked for chat by chat, within bounds of age and number."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

from channels.slack.rooms import Rooms
from channels.slack.web import LinkError, Payload, Web, WebError
from zerobot.core.channel import ChannelServices

LONGEST_ABSENCE = timedelta(hours=24)
"""Older messages are let be: an answer of yesterday helps nobody."""
MOST_MESSAGES = 300
"""Of one chat."""
MOST_CHATS = 20
"""Chats, and threads: those in which the bot was spoken to last. Histories are of tier 3: 50 calls a minute."""
_PAGE = 100
_TRIES = 3
_LONGEST_WAIT = 60.0


class CatchUp:
    """Reads histories.

    Args:
        web: Makes the calls.
        rooms: Knows the channels of direct chats.
        services: Name, clock and log.
    """

    def __init__(self, web: Web, rooms: Rooms, services: ChannelServices) -> None:
        self._web = web
        self._rooms = rooms
        self._services = services

    async def missed(self, chat: str, thread: str, read_to: str) -> AsyncIterator[Payload]:
        """The messages that came after the newest one that was read, in order.

        Args:
            chat: The chat.
            thread: A thread in it; empty: what stands in the chat itself.
            read_to: The `ts` of the newest that was read.
        """
        oldest = (self._services.clock.now() - LONGEST_ABSENCE).timestamp()
        after = read_to if float(read_to) > oldest else f"{oldest:.6f}"
        found: list[Payload] = []
        cursor = ""
        while len(found) < MOST_MESSAGES:
            page = await self._page(chat, thread, after, cursor)
            # A thread's first message comes along with each page.
            found += [each for each in page.get("messages", ()) if float(each["ts"]) > float(after)]
            cursor = str((page.get("response_metadata") or {}).get("next_cursor") or "")
            if not cursor:
                break
        else:
            self._services.log("slack.catchup_cut", level="warning", channel=self._services.name, messages=len(found))
        for message in sorted(found, key=lambda each: float(each["ts"])):
            yield message

    async def _page(self, chat: str, thread: str, after: str, cursor: str) -> Payload:
        """Some messages; none when they cannot be had."""
        method = "conversations.replies" if thread else "conversations.history"
        for _ in range(_TRIES):
            try:
                return await self._web.call(
                    method,
                    channel=await self._rooms.channel(chat),
                    ts=thread or None,
                    oldest=after,
                    limit=_PAGE,
                    cursor=cursor or None,
                )
            except (WebError, LinkError) as error:
                self._services.log("slack.catchup_failed", level="warning", error=error, channel=self._services.name)
                refused = isinstance(error, WebError) and error.status < 500 and error.retry_after is None
                wait = (error.retry_after if isinstance(error, WebError) else None) or 1.0
                if refused or wait > _LONGEST_WAIT:
                    break
                await self._services.clock.sleep(wait)
        return {}
