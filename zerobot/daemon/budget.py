"""The purse of a daemon with spending limits: what a call may cost at most, who waits for money, who goes without."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from zerobot.core.budget import Payer, Scope
from zerobot.core.clock import Clock
from zerobot.core.ids import ReservationId, new_reservation_id
from zerobot.core.log import EventLog
from zerobot.core.model import ModelRequest
from zerobot.core.usage import Usage
from zerobot.daemon.costs import Costs, limits_of
from zerobot.providers.catalogue import Price, cost, cost_text
from zerobot.security.prompt import duration_text
from zerobot.store.database import Database
from zerobot.store.reservations import Knowledge, Reservations, Reserved, Spending, Wanted, free_again
from zerobot.turn import notices
from zerobot.turn.estimate import request_tokens
from zerobot.turn.purse import BudgetError, Reservation

INPUT_MARGIN = Decimal("1.5")
"""Times the estimate of a request: code and digits have fewer characters a token than the prose it is made for."""
MOST_OUTPUT = 32_000
"""Tokens of one answer while a limit is set. The engine takes no longer text; the rest is for what a model thinks."""
UNKNOWN_OUTPUT = 8_192
"""The same where nobody knows how much a model writes."""
LEAST_OUTPUT = 1_000
"""Tokens of an answer below which asking makes no sense."""
LOW = Decimal("0.8")
"""Of the limit of a day: when that much is spent, operators hear of it."""

_MILLION = 1_000_000
_WORDS = {
    Scope.TURN: notices.SPENT_FOR_TURN,
    Scope.USER: notices.SPENT_FOR_USER,
    Scope.DAY: notices.SPENT_FOR_DAY,
}


def reservations_of(costs: Costs, database: Database, clock: Clock) -> Reservations | None:
    """The limits over a store; None: none is set."""
    limits = limits_of(costs.settings.budget)
    return Reservations(database, clock, costs.catalogue.cost_of, limits) if limits else None


@dataclass(frozen=True, slots=True)
class Quote:
    """What one call may cost."""

    price: Price
    input_cost: Decimal
    """USD, with a margin."""
    output: int
    """Tokens that the answer may have."""

    @property
    def most(self) -> Decimal:
        """USD for the longest answer."""
        return self.input_cost + self._output_cost(self.output)

    @property
    def least(self) -> Decimal:
        """USD for the shortest answer that is worth asking for."""
        return self.input_cost + self._output_cost(min(self.output, LEAST_OUTPUT))

    def output_for(self, amount: Decimal) -> int:
        """Tokens of answer that an amount between the two pays for."""
        if amount >= self.most:
            return self.output
        return int((amount - self.input_cost) * _MILLION / self.price.output)

    def _output_cost(self, tokens: int) -> Decimal:
        return tokens * self.price.output / _MILLION


def quote(price: Price, request: ModelRequest) -> Quote:
    """What a request may cost, from above: all of its input at the dearest rate, and the longest answer."""
    rate = max(price.input, price.cache_read, price.cache_write)
    tokens = request_tokens(request) * INPUT_MARGIN
    output = min(request.max_output_tokens or UNKNOWN_OUTPUT, MOST_OUTPUT)
    return Quote(price, tokens * rate / _MILLION, output)


class BudgetPurse:
    """What model calls are paid from where limits are set. A `turn.purse.Purse`.

    Args:
        reservations: The store's, with the limits.
        price_of: The price of a model (PROVIDER/MODEL); None: nobody knows it.
        clock: Says when a day's limit is free again.
        log: Gets `budget.refused` and `budget.low`.
    """

    def __init__(
        self, reservations: Reservations, price_of: Callable[[str], Price | None], clock: Clock, log: EventLog
    ) -> None:
        self._reservations = reservations
        self._price_of = price_of
        self._clock = clock
        self._log = log
        self._live: set[ReservationId] = set()
        self._ended: dict[ReservationId, Decimal] = {}
        self._void: set[ReservationId] = set()
        self._change = asyncio.Event()
        """Set, and replaced, when a call has ended."""
        self._low_on = ""
        """The day on which it was logged that little is left."""
        self.low: asyncio.Queue[Spending] = asyncio.Queue()
        """How the day's limit stood when little was left of it; once a day."""

    async def reserve(self, payer: Payer, purpose: str, model: str, request: ModelRequest) -> Reservation:
        """See `Purse`. A model whose price is not known is not asked; one that is free always is."""
        price = self._price_of(model)
        if price is None:
            self._log("budget.refused", level="warning", scope="unpriced", model=model)
            raise BudgetError(f"{model} is unpriced", notices.UNPRICED.format(model=model))
        quoted = quote(price, request)
        if not quoted.most:
            return Reservation()
        wanted = Wanted(
            id=new_reservation_id(),
            payer=payer,
            model=model,
            purpose=purpose,
            most=quoted.most,
            least=quoted.least,
        )
        while True:
            change = self._change
            reserved = await self._try(wanted)
            if reserved.amount is not None:
                output = quoted.output_for(reserved.amount)
                return Reservation(id=wanted.id, max_output=output, short=output < quoted.output)
            gone = next((each for each in reserved.spendings if each.limit - each.spent < wanted.least), None)
            if gone is not None:
                raise self._refusal(gone, model)
            await change.wait()

    def ended(self, reservation: Reservation, model: str, usage: Usage | None) -> None:
        """See `Purse`. Where nobody knows what a call took, it counts as the most that it could have cost."""
        if reservation.id is None:
            return
        self._live.discard(reservation.id)
        price = self._price_of(model)
        if price is not None and usage is not None:
            self._ended[reservation.id] = cost(usage, price) or Decimal(0)
        self._changed()

    async def used_up(self, payer: Payer) -> BudgetError | None:
        """See `Purse`."""
        for spending in await self._reservations.spendings(payer, self._knowledge()):
            if spending.spent >= spending.limit:
                return self._refusal(spending)
        return None

    async def _try(self, wanted: Wanted) -> Reserved:
        self._live.add(wanted.id)
        known = self._knowledge()
        try:
            reserved = await self._reservations.reserve(wanted, known)
            self._learn(known, reserved)
        except BaseException:
            # It may be stored all the same, and nobody will make the call.
            self._live.discard(wanted.id)
            self._void.add(wanted.id)
            self._ended[wanted.id] = Decimal(0)
            self._changed()
            raise
        if reserved.amount is None:
            self._live.discard(wanted.id)
        return reserved

    def _learn(self, known: Knowledge, reserved: Reserved) -> None:
        """Forget what the store knows by now."""
        self._void.difference_update(known.void)
        for each in known.ended.keys() - reserved.known:
            self._ended.pop(each, None)
        self._look(reserved.spendings)

    def _knowledge(self) -> Knowledge:
        return Knowledge(live=frozenset(self._live), ended=dict(self._ended), void=frozenset(self._void))

    def _changed(self) -> None:
        self._change.set()
        self._change = asyncio.Event()

    def _look(self, spendings: Sequence[Spending]) -> None:
        """Log once a day, and let operators know, that little is left."""
        today = f"{self._clock.now():%Y-%m-%d}"
        for each in spendings:
            if each.scope is Scope.DAY and each.spent >= LOW * each.limit and self._low_on != today:
                self._low_on = today
                self._log("budget.low", level="warning", spent=cost_text(each.spent), limit=usd(each.limit))
                self.low.put_nowait(each)

    def _refusal(self, spending: Spending, model: str = "") -> BudgetError:
        now, limit = self._clock.now(), usd(spending.limit)
        self._log("budget.refused", level="warning", scope=spending.scope, model=model or None, limit=limit)
        words = _WORDS[spending.scope].format(limit=limit, wait=duration_text(free_again(now) - now))
        return BudgetError(f"{spending.scope}: {cost_text(spending.spent)} of {limit} are spent", words)


def usd(amount: Decimal) -> str:
    """Write an amount that somebody has chosen: `$5.00`, `$0.0050`."""
    return f"${amount:.2f}" if amount == round(amount, 2) else cost_text(amount)


def left_text(spending: Spending) -> str:
    """How a limit of a day stands, for a chat."""
    whose = "all that I may spend today" if spending.scope is Scope.DAY else "what you may spend today"
    stands = standing(spending)
    return f"Of {whose} ({stands['limit']}), {stands['left']} are left."


def standing(spending: Spending) -> Mapping[str, str]:
    """How a limit stands, for people and programs."""
    return {
        "scope": spending.scope,
        "limit": usd(spending.limit),
        "spent": cost_text(spending.spent + spending.under_way),
        "left": cost_text(max(spending.left, Decimal(0))),
    }
