"""Chats in which people speak to the bot, and how far each was read: what is asked about after a time of absence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from zerobot.core.channel import ChannelState

_KEY = "known"
_MOST = 100
"""Chats that are remembered; the ones that were silent longest are forgotten first."""


@dataclass(frozen=True, slots=True)
class KnownChat:
    """One chat."""

    read_to: str
    """The platform's id of the newest message that was handed over."""
    about: str = ""
    """What the adapter has to know of the chat beside its id: whose direct chat it is, say."""


class KnownChats:
    """Remembers chats over restarts. A value that cannot be read counts as none."""

    def __init__(self, state: ChannelState, chats: Mapping[str, KnownChat], key: str = _KEY) -> None:
        """Begin with what is known; `load` is how one is made."""
        self._state = state
        self._key = key
        self._chats = dict(chats)
        self._changed = False

    @classmethod
    async def load(cls, state: ChannelState, key: str = _KEY) -> KnownChats:
        """Read what was stored.

        Args:
            state: Where it is kept.
            key: Its name there; another one for what is counted apart, such as threads.

        Raises:
            StorageError: It cannot be read now.
        """
        try:
            value = json.loads(await state.get(key) or "{}")
            chats = {str(chat): KnownChat(str(read_to), str(about)) for chat, (read_to, about) in value.items()}
        except (ValueError, TypeError, AttributeError):
            chats = {}
        return cls(state, chats, key)

    @property
    def chats(self) -> Mapping[str, KnownChat]:
        """All of them, the one that was silent longest first."""
        return dict(self._chats)

    def spoken_to(self, chat: str, message: str, about: str = "") -> None:
        """Somebody spoke to the bot in a chat, by this message; `store` makes it last."""
        self._chats.pop(chat, None)
        self._chats[chat] = KnownChat(message, about)
        while len(self._chats) > _MOST:
            del self._chats[next(iter(self._chats))]
        self._changed = True

    def read(self, chat: str, message: str) -> None:
        """A message of people among themselves was read; it counts only in a chat that is known."""
        known = self._chats.get(chat)
        if known is not None:
            self._chats[chat] = KnownChat(message, known.about)
            self._changed = True

    async def store(self) -> None:
        """Make what is known last.

        Raises:
            StorageError: It was not stored; the next call tries it again.
        """
        if self._changed:
            value = {chat: [known.read_to, known.about] for chat, known in self._chats.items()}
            await self._state.set(self._key, json.dumps(value))
            self._changed = False
