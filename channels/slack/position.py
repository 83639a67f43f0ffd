"""How far each chat and each thread was read, and which threads are the bot's own, over restarts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from channels._wire.known import KnownChats
from channels.slack.decode import is_direct
from zerobot.core.channel import ChannelState
from zerobot.core.places import Place

_OWN = "own"


@dataclass(frozen=True, slots=True)
class Unread:
    """Where something may have been said."""

    chat: str
    thread: str
    """Empty: what stands in the chat itself."""
    read_to: str
    """The `ts` of the newest message that was read."""


class Position:
    """Chats and threads in which people speak to the bot; `load` is how one is made.

    Args:
        chats: Of direct ones it is remembered which channel they are.
        threads: By chat and thread.
    """

    def __init__(self, chats: KnownChats, threads: KnownChats) -> None:
        self._chats = chats
        self._threads = threads

    @classmethod
    async def load(cls, state: ChannelState) -> Position:
        """Read what was stored.

        Raises:
            StorageError: It cannot be read now.
        """
        return cls(await KnownChats.load(state), await KnownChats.load(state, "threads"))

    def direct_channels(self) -> Iterator[tuple[str, str]]:
        """The direct chats, as (person, channel)."""
        return ((chat, each.about) for chat, each in self._chats.chats.items() if is_direct(chat) and each.about)

    def owns(self, place: Place) -> bool:
        """Whether a place is a thread that began with words to the bot: all of it is meant for the bot."""
        known = self._threads.chats.get(_key(place))
        return known is not None and known.about == _OWN

    def read(self, place: Place, ts: str, channel: str, *, opens: bool, spoken: bool, own: bool) -> None:
        """A message was handed over; `store` makes it last.

        Args:
            place: Where it was written.
            ts: Its id.
            channel: Of a direct chat; empty: of another one.
            opens: Whether it stands in the chat itself, and opens the thread if there is one.
            spoken: Whether it was said to the bot; else it counts only where that was the case before.
            own: Whether its thread is the bot's own.
        """
        if opens:
            _read(self._chats, place.chat, ts, channel, spoken=spoken)
        if place.thread is not None:
            _read(self._threads, _key(place), ts, _OWN if own else "", spoken=spoken)

    def unread(self, most: int) -> list[Unread]:
        """Where something may have been said since: chats before their threads, of each the last ones spoken in."""
        chats = [Unread(chat, "", each.read_to) for chat, each in self._chats.chats.items()]
        threads = []
        for key, each in self._threads.chats.items():
            chat, _, thread = key.partition("/")
            threads.append(Unread(chat, thread, each.read_to))
        return [*chats[-most:], *threads[-most:]]

    async def store(self) -> None:
        """Make it last.

        Raises:
            StorageError: It was not stored; the next call tries it again.
        """
        await self._chats.store()
        await self._threads.store()


def _key(place: Place) -> str:
    return f"{place.chat}/{place.thread}"


def _read(known: KnownChats, key: str, ts: str, about: str, *, spoken: bool) -> None:
    before = known.chats.get(key)
    if before is not None and float(ts) <= float(before.read_to):
        return
    if spoken:
        known.spoken_to(key, ts, about)
    else:
        known.read(key, ts)
