"""Reservations: before a model call, what it may cost is kept from the limits, so that no two calls spend the same."""

import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from zerobot.core.budget import Payer, Scope
from zerobot.core.clock import Clock
from zerobot.core.ids import ReservationId
from zerobot.core.usage import Usage
from zerobot.store.columns import stamp
from zerobot.store.database import Database
from zerobot.store.usage import UsageFilter, from_micro, to_micro, totals

PriceOf = Callable[[str, Usage], Decimal | None]
"""What tokens of a model (PROVIDER/MODEL) cost in USD; None when its price is not known."""

_INSERT = """
    INSERT INTO reservations (id, turn_id, conversation_id, channel, asker, model, purpose, amount, at)
    VALUES (:id, :turn, :conversation, :channel, :asker, :model, :purpose, :amount, :at)
"""
_DELETE = "DELETE FROM reservations WHERE id = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be kept for one model call, in USD."""

    id: ReservationId
    payer: Payer
    model: str
    """PROVIDER/MODEL."""
    purpose: str
    most: Decimal
    """What it may cost."""
    least: Decimal
    """What it costs with the shortest answer that makes sense."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What a process knows of its reservations that is not in the store yet."""

    live: Collection[ReservationId] = ()
    """Calls that are under way. They end by themselves, and then set free what they did not take."""
    ended: Mapping[ReservationId, Decimal] = field(default_factory=dict)
    """What calls took, in USD, that have ended and are not recorded yet."""
    void: Collection[ReservationId] = ()
    """Reservations of calls that were never made."""


NOTHING_KNOWN = Knowledge()
"""Of whoever makes no calls: what others have reserved counts as spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """How one limit stands, in USD."""

    scope: Scope
    limit: Decimal
    spent: Decimal
    """What is gone for good. Calls of models without a price are not in it."""
    under_way: Decimal
    """What is kept for calls that are being made."""

    @property
    def left(self) -> Decimal:
        """What nobody has taken yet; negative once more was taken than there was."""
        return self.limit - self.spent - self.under_way


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """What became of a wish."""

    amount: Decimal | None
    """What is kept for the call; None: nothing, it has to wait or must not be made."""
    spendings: Sequence[Spending]
    """How the limits stood before it."""
    known: Collection[ReservationId]
    """All reservations that are in the store now."""


def share(spendings: Sequence[Spending], wanted: Wanted) -> Decimal | None:
    """What a call gets of what is left: all that it may cost, or the rest where nobody will give anything back."""
    left = min((each.left for each in spendings), default=wanted.most)
    if left >= wanted.most:
        return wanted.most
    comes_back = any(each.under_way and each.left < wanted.most for each in spendings)
    return left if left >= wanted.least and not comes_back else None


class Reservations:
    """What is kept for model calls, a transaction a method.

    Args:
        database: The store's.
        clock: Says which day it is, in UTC.
        price: Prices what was spent.
        limits: USD by what they sum up; at least one.
    """

    def __init__(self, database: Database, clock: Clock, price: PriceOf, limits: Mapping[Scope, Decimal]) -> None:
        self._database = database
        self._clock = clock
        self._price = price
        self._limits = limits

    async def reserve(self, wanted: Wanted, knowledge: Knowledge) -> Reserved:
        """Keep what a call may cost, if there is enough; `record` of `store.usage` sets it free."""
        now = self._clock.now()

        def transaction(db: sqlite3.Connection) -> Reserved:
            db.executemany(_DELETE, [(each,) for each in knowledge.void])
            spendings = self._spendings(db, wanted.payer, now, knowledge)
            amount = share(spendings, wanted)
            if amount is not None:
                db.execute(_INSERT, _row(wanted, amount, now))
            known = {ReservationId(row[0]) for row in db.execute("SELECT id FROM reservations")}
            return Reserved(amount=amount, spendings=spendings, known=known)

        return await self._database.write(transaction)

    async def spendings(self, payer: Payer, knowledge: Knowledge = NOTHING_KNOWN) -> list[Spending]:
        """How the limits stand that hold for a payer; a call without a turn has no limit of its own."""
        now = self._clock.now()
        return await self._database.read(lambda db: self._spendings(db, payer, now, knowledge))

    def _spendings(self, db: sqlite3.Connection, payer: Payer, now: datetime, knowledge: Knowledge) -> list[Spending]:
        return [
            self._spending(db, scope, payer, now, knowledge)
            for scope in self._limits
            if payer.turn or scope is not Scope.TURN
        ]

    def _spending(
        self, db: sqlite3.Connection, scope: Scope, payer: Payer, now: datetime, knowledge: Knowledge
    ) -> Spending:
        spent = under_way = Decimal(0)
        only = UsageFilter(
            since=None if scope is Scope.TURN else day_of(now),
            asker=payer.asker if scope is Scope.USER else None,
            turn=payer.turn if scope is Scope.TURN else None,
        )
        for total in totals(db, (), only):
            spent += (self._price(total.model, total.usage) or 0) + total.held
        for row in db.execute("SELECT id, turn_id, asker, amount FROM reservations"):
            if (scope is Scope.TURN and row["turn_id"] != payer.turn) or (
                scope is Scope.USER and row["asker"] != str(payer.asker)
            ):
                continue
            if row["id"] in knowledge.live:
                under_way += from_micro(row["amount"])
            else:
                spent += knowledge.ended.get(ReservationId(row["id"]), from_micro(row["amount"]))
        return Spending(scope=scope, limit=self._limits[scope], spent=spent, under_way=under_way)


def day_of(moment: datetime) -> datetime:
    """When the day of a moment began, in UTC; `moment` is in UTC."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def free_again(moment: datetime) -> datetime:
    """When the limits of a day begin anew."""
    return day_of(moment) + timedelta(days=1)


def _row(wanted: Wanted, amount: Decimal, now: datetime) -> dict[str, object]:
    return {
        "id": wanted.id,
        "turn": wanted.payer.turn,
        "conversation": wanted.payer.conversation,
        "channel": wanted.payer.channel,
        "asker": str(wanted.payer.asker),
        "model": wanted.model,
        "purpose": wanted.purpose,
        "amount": to_micro(amount),
        "at": stamp(now),
    }
