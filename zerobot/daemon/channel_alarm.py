"""What channels have to tell the operators about themselves: once a day about one subject, over restarts too."""

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from zerobot.core.channel import ChannelState
from zerobot.core.clock import Clock
from zerobot.core.places import Place

TOLD = "alarm.told"
"""The key under which a channel's state keeps what was told, and when."""
AGAIN_AFTER = timedelta(days=1)
SUBJECTS = 200
"""Subjects that are remembered; of more, those told longest ago are forgotten."""


class ChannelAlarms:
    """See the module.

    Args:
        operators: Where each of them can be told, by now.
        say: Puts a text into the outbox.
        state: Gives that of a channel.
        clock: The time.
    """

    def __init__(
        self,
        operators: Callable[[], Sequence[Place]],
        say: Callable[[Place, str], Awaitable[object]],
        state: Callable[[str], ChannelState],
        clock: Clock,
    ) -> None:
        self._operators = operators
        self._say = say
        self._state = state
        self._clock = clock

    async def tell(self, channel: str, subject: str, text: str) -> None:
        """Tell them, unless they were told of the same by this channel within a day.

        Raises:
            StorageError: Not all of it is stored; who was not told by then is told another day.
        """
        state = self._state(channel)
        now = self._clock.now().timestamp()
        told: dict[str, float] = json.loads(await state.get(TOLD) or "{}")
        if now - told.get(subject, 0.0) < AGAIN_AFTER.total_seconds():
            return
        told[subject] = now
        latest = sorted(told.items(), key=lambda each: each[1])[-SUBJECTS:]
        await state.set(TOLD, json.dumps(dict(latest)))
        for place in self._operators():
            await self._say(place, text)
