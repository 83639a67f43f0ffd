"""The gateway's session over restarts: resumed, it brings what was said meanwhile, wherever that was."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from channels.discord.gateway import Session
from zerobot.core.channel import ChannelState
from zerobot.core.clock import Clock
from zerobot.core.errors import StorageError

_KEY = "session"
# Discord does not say how long it keeps a session; trying in vain costs one more connection.
_LASTS = timedelta(minutes=10)
_SECONDS_BETWEEN_WRITES = 10.0


class Position:
    """How far the events of a session were taken over.

    What it says may be a little old: events that come again are known to the inbox.

    Args:
        state: Where it is kept.
        clock: For its age, and to write seldom.
        bot: The bot's id: another bot on the same channel has sessions of its own.
    """

    def __init__(self, state: ChannelState, clock: Clock, bot: str) -> None:
        self._state = state
        self._clock = clock
        self._key = f"{_KEY}:{bot}"
        self._session: Session | None = None
        self._written_at = float("-inf")

    async def load(self) -> Session | None:
        """The session of an earlier process; None: there is none that is worth a try."""
        try:
            value = json.loads(await self._state.get(self._key) or "null")
            left = self._clock.now() - datetime.fromisoformat(value["at"])
            session = Session(str(value["id"]), int(value["sequence"]), str(value["gateway"]))
        except (StorageError, ValueError, KeyError, TypeError):
            return None
        return session if left <= _LASTS else None

    async def taken(self, session: Session) -> None:
        """All events up to here are done with.

        Raises:
            StorageError: It was not written.
        """
        self._session = session
        if self._clock.monotonic() - self._written_at >= _SECONDS_BETWEEN_WRITES:
            await self.write()

    async def write(self) -> None:
        """Make it last.

        Raises:
            StorageError: It was not written.
        """
        session = self._session
        if session is None:
            return
        value = {
            "id": session.id,
            "sequence": session.sequence,
            "gateway": session.gateway,
            "at": self._clock.now().isoformat(),
        }
        await self._state.set(self._key, json.dumps(value))
        self._written_at = self._clock.monotonic()
