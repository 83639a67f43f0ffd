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

    def __init__(self, state: ChannelState, clock: Clock, key: str, known: tuple[int, datetime] | None) -> None:
        """Begin with what is known; `load` is how one is made.

        Args:
            state: Where it is kept.
            clock: For its age.
            key: Its name there.
            known: The offset, and when it moved there.
        """
        self._state = state
        self._clock = clock
        self._key = key
        self._known = known

    @classmethod
    async def load(cls, state: ChannelState, clock: Clock, bot: int) -> Position:
        """Read what was stored; something unreadable counts as nothing, since the inbox knows what it has.

        Args:
            state: Where it is kept.
            clock: For its age.
            bot: The bot's id: another bot on the same channel counts its updates anew.
        """
        key = f"offset:{bot}"
        stored = await state.get(key)
        try:
            value = json.loads(stored or "null")
            known = int(value["offset"]), datetime.fromisoformat(value["at"])
        except (ValueError, KeyError, TypeError):
            return cls(state, clock, key, None)
        return cls(state, clock, key, known)

    @property
    def offset(self) -> int | None:
        """The first update that is wanted; None while nothing certain is known, then Telegram begins at its oldest."""
        if self._known is None:
            return None
        offset, moved_at = self._known
        return offset if self._clock.now() - moved_at <= _LASTS else None

    async def move(self, offset: int) -> None:
        """Store how far we are; only then does the offset move.

        Raises:
            StorageError: It did not move.
        """
        now = self._clock.now()
        await self._state.set(self._key, json.dumps({"offset": offset, "at": now.isoformat()}))
        self._known = offset, now
