"""Tells the operators, once a day, that little is left of what a day may cost."""

from collections.abc import Awaitable, Callable, Sequence

from zerobot.core.channel import ChannelState
from zerobot.core.clock import Clock
from zerobot.core.errors import StorageError
from zerobot.core.log import EventLog
from zerobot.core.places import Place
from zerobot.daemon.budget import BudgetPurse, standing
from zerobot.store.reservations import Spending

TOLD = "budget.told"
"""The key under which the daemon keeps the day on which operators were told last."""
LITTLE_LEFT = (
    "{spent} of the {limit} that I may spend in a day are gone. When nothing is left I ask no model until 00:00 UTC; "
    "`[budget] max_cost_per_day` sets the limit."
)


class BudgetAlarm:
    """See the module.

    Args:
        purse: Knows when little is left.
        operators: Where each of them can be told, by now.
        say: Puts a text into the outbox.
        state: The daemon's, so that a restart is no reason to tell them again.
        clock: Says which day it is, in UTC.
        log: Gets `storage.failed`.
    """

    def __init__(
        self,
        purse: BudgetPurse,
        operators: Callable[[], Sequence[Place]],
        say: Callable[[Place, str], Awaitable[object]],
        state: ChannelState,
        clock: Clock,
        log: EventLog,
    ) -> None:
        self._purse = purse
        self._operators = operators
        self._say = say
        self._state = state
        self._clock = clock
        self._log = log

    async def run(self) -> None:
        """Watch until cancelled. What cannot be stored is not told; it is in the log."""
        while True:
            spending = await self._purse.low.get()
            try:
                await self.tell(spending)
            except StorageError as error:
                self._log("storage.failed", level="error", error=error)

    async def tell(self, spending: Spending) -> None:
        """Tell them, unless they were told today.

        Raises:
            StorageError: Not all of it is stored; who was not told by then is not told today.
        """
        today = f"{self._clock.now():%Y-%m-%d}"
        if await self._state.get(TOLD) == today:
            return
        await self._state.set(TOLD, today)
        stands = standing(spending)
        for place in self._operators():
            await self._say(place, LITTLE_LEFT.format(spent=stands["spent"], limit=stands["limit"]))
