"""The one alarm that cannot go through the store: that the store itself takes nothing."""

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from zerobot.core.channel import OutboundMessage
from zerobot.core.clock import Clock
from zerobot.core.errors import DeliveryError, StorageError
from zerobot.core.log import EventLog
from zerobot.core.places import Identity, Place
from zerobot.daemon.routing import direct_places
from zerobot.delivery.delivery import Delivery
from zerobot.delivery.line import Line
from zerobot.delivery.pacing import Priority
from zerobot.delivery.waiting import event_or_timeout
from zerobot.store.database import Database, Transaction

T = TypeVar("T")

FULL = (
    "I cannot store anything at the moment (is the disk full?), so I take in no messages and decide nothing. "
    "Nothing is lost: all of it goes on by itself when there is room again."
)
QUIET = 60.0
"""Seconds without a refusal after which the store counts as well."""
WELL = "I can store again, and go on with what had to wait."


class ObservedDatabase(Database):
    """A database that notices when it refuses writes.

    Args:
        inner: The open database.
    """

    def __init__(self, inner: Database) -> None:
        self._inner = inner
        self.refuses = False
        """Whether the last write was refused."""
        self.refused = asyncio.Event()
        """Set by each refusal; whoever has taken note of it clears it."""

    async def write(self, function: Transaction[T]) -> T:
        """See `Database`."""
        try:
            result = await self._inner.write(function)
        except StorageError:
            self.refuses = True
            self.refused.set()
            raise
        self.refuses = False
        return result

    async def read(self, function: Transaction[T]) -> T:
        """See `Database`."""
        return await self._inner.read(function)


class StorageAlarm:
    """Tells the operators, each in a direct chat, once when the store begins to refuse and once when it is well again.

    It goes past the outbox, which is in that store: a message that does not arrive is in the log, and not repeated.

    Args:
        database: What is watched.
        delivery: Knows the open channels.
        operators: Who is told.
        clock: Times how long it has to be well.
        log: Gets `storage.alarm` and what could not be told.
    """

    def __init__(
        self,
        database: ObservedDatabase,
        delivery: Delivery,
        operators: Sequence[Identity],
        clock: Clock,
        log: EventLog,
    ) -> None:
        self._database = database
        self._delivery = delivery
        self._operators = operators
        self._clock = clock
        self._log = log

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            await self._database.refused.wait()
            self._log("storage.alarm", level="error", refuses=True)
            await self._tell(FULL)
            await self._well()
            self._log("storage.alarm", refuses=False)
            await self._tell(WELL)

    async def _well(self) -> None:
        """Wait until nothing was refused for a while: a nearly full disk takes one write and refuses the next."""
        database = self._database
        while True:
            database.refused.clear()
            refused = await event_or_timeout(database.refused, self._clock, QUIET)
            if not refused and not database.refuses:
                return

    async def _tell(self, text: str) -> None:
        for place in direct_places(self._delivery, self._operators):
            line = self._delivery.line(place.channel)
            assert line is not None, "a place of an open channel"
            await self._say(line, place, text)

    async def _say(self, line: Line, place: Place, text: str) -> None:
        try:
            async with line.gate.turn_to_call(place, Priority.APPROVAL):
                for body in line.channel.render(text):
                    await line.channel.send(OutboundMessage(place=place, body=body, key="alarm"))
        except DeliveryError as error:
            self._log("storage.alarm_failed", level="warning", error=error, channel=place.channel)
