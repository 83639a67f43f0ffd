"""Chats that a platform has asked us to leave alone for a while, over restarts."""

from __future__ import annotations

import contextlib
import json
from datetime import datetime, timedelta

from zerobot.core.channel import ChannelState
from zerobot.core.clock import Clock
from zerobot.core.errors import StorageError

_KEY = "pauses"
_WORTH_KEEPING = 3.0
"""Seconds: a shorter pause is over by the time a daemon has started again."""


class Pauses:
    """How long which chat gets no call. A state that can't be read or written costs only the memory over a restart."""

    def __init__(self, state: ChannelState, clock: Clock) -> None:
        """Read nothing yet.

        Args:
            state: Where they are kept.
            clock: Its monotonic time counts; its wall time stands in the state.
        """
        self._state = state
        self._clock = clock
        self._until: dict[str, float] = {}
        self._recalled = False

    async def left(self, chat: str) -> float:
        """Seconds for which a chat is still to be left alone; 0: it may be called."""
        await self._recall()
        left = self._until.get(chat, 0.0) - self._clock.monotonic()
        if left <= 0:
            self._until.pop(chat, None)
        return max(left, 0.0)

    async def begin(self, chat: str, seconds: float) -> None:
        """Leave a chat alone for some seconds, as the platform said."""
        now = self._clock.monotonic()
        self._until[chat] = now + seconds
        if seconds < _WORTH_KEEPING:
            return
        left = {chat: until - now for chat, until in self._until.items() if until - now >= _WORTH_KEEPING}
        with contextlib.suppress(StorageError):
            await self._state.set(_KEY, json.dumps({"at": self._clock.now().isoformat(), "left": left}))

    async def _recall(self) -> None:
        """Take over what an earlier process was told; something unreadable counts as nothing."""
        if self._recalled:
            return
        try:
            value = json.loads(await self._state.get(_KEY) or "null")
            passed = self._clock.now() - datetime.fromisoformat(value["at"])
            left = {str(chat): float(seconds) for chat, seconds in value["left"].items()}
        except (StorageError, ValueError, KeyError, TypeError, AttributeError):
            passed, left = timedelta(), {}
        self._recalled = True
        # A wall clock that was set back must not make a pause longer than Telegram asked for.
        gone = max(passed.total_seconds(), 0.0)
        for chat, seconds in left.items():
            until = self._clock.monotonic() + seconds - gone
            self._until[chat] = max(until, self._until.get(chat, 0.0))
