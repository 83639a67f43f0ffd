"""How far the updates have been taken over, over restarts."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from zerobot.core.channel import ChannelState
from zerobot.core.clock import Clock

# "If there are no new updates for at least a week, then identifier of the next update will be chosen randomly":
# https://core.telegram.org/bots/api#update. An older position could stand behind updates still to come and lose them.
_LASTS = timedelta(days=6)


class Position:
    """The offset for getUpdates. What it confirms is stored before it is used."""

    def __init__(self, state: ChannelState, clock: Clock, bot: int) -> None:
        """Know nothing yet.

        Args:
            state: Where it is kept.
            clock: For its age.
            bot: The bot's id: another bot on the same channel counts its updates anew.
        """
        self._state = state
        self._clock = clock
        self._key = f"offset:{bot}"
        self._offset: int | None = None
        self._moved_at: datetime | None = None

    @property
    def offset(self) -> int | None:
        """The first update that is wanted; None while nothing certain is known, then Telegram begins at its oldest."""
        if self._moved_at is None or self._clock.now() - self._moved_at > _LASTS:
            return None
        return self._offset

    async def load(self) -> None:
        """Read what was stored; something unreadable counts as nothing, since the inbox knows what it has."""
        stored = await self._state.get(self._key)
        try:
            value = json.loads(stored or "null")
            self._offset, self._moved_at = int(value["offset"]), datetime.fromisoformat(value["at"])
        except (ValueError, KeyError, TypeError):
            self._offset = self._moved_at = None

    async def move(self, offset: int) -> None:
        """Store how far we are; only then does the offset move.

        Raises:
            StorageError: It did not move.
        """
        now = self._clock.now()
        await self._state.set(self._key, json.dumps({"offset": offset, "at": now.isoformat()}))
        self._offset, self._moved_at = offset, now
