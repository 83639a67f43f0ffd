"""What model calls cost: one row a call, the failed ones too, and sums of them."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum

from zerobot.core.budget import Payer
from zerobot.core.ids import TurnId
from zerobot.core.places import Identity
from zerobot.core.usage import NO_USAGE, Usage
from zerobot.store.columns import stamp
from zerobot.store.database import Database
from zerobot.store.turn_rows import AttemptUsage


class UsageBy(StrEnum):
    """What sums are grouped by."""

    DAY = "day"
    """In UTC."""
    MODEL = "model"
    CHANNEL = "channel"
    USER = "user"
    CONVERSATION = "conversation"
    """By its number."""
    TURN = "turn"
    """Empty for what belongs to no turn."""
    PURPOSE = "purpose"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTotal:
    """The sum of a group of model calls. The model is always part of the group: prices differ by it."""

    key: tuple[str, ...]
    """One value for each `UsageBy` that was asked for, in that order."""
    model: str
    calls: int
    failed: int
    unreported: int
    """Calls whose tokens nobody knows; they are not in `usage`."""
    usage: Usage
    held: Decimal
    """USD that count as spent for the unreported calls, as far as money was kept for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageFilter:
    """Which model calls are wanted. Empty: all."""

    since: datetime | None = None
    """UTC; that moment included."""
    until: datetime | None = None
    """UTC; that moment left out."""
    asker: Identity | None = None
    """Only what this person's turns cost."""
    turn: TurnId | None = None
    """Only what this turn cost."""


ALL = UsageFilter()

_MICRO = 1_000_000
_INSERT = """
    INSERT INTO model_calls (turn_id, conversation_id, channel, asker, model, purpose, failed, reported,
        input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, at, held)
    VALUES (:turn, :conversation, :channel, :asker, :model, :purpose, :failed, :reported,
        :input, :output, :cache_read, :cache_write, :at,
        CASE WHEN :reported THEN 0
             ELSE coalesce((SELECT amount FROM reservations WHERE id = :reservation), 0) END)
"""
_SET_FREE = "DELETE FROM reservations WHERE id = :reservation"
_RECORD_LEFT = """
    INSERT INTO model_calls (turn_id, conversation_id, channel, asker, model, purpose, failed, reported,
        input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, at, held)
    SELECT turn_id, conversation_id, channel, asker, model, purpose, 1, 0, 0, 0, 0, 0, at, amount FROM reservations
    ORDER BY at
"""
_GROUPS = {
    UsageBy.DAY: "substr(at, 1, 10)",
    UsageBy.MODEL: "model",
    UsageBy.CHANNEL: "channel",
    UsageBy.USER: "asker",
    UsageBy.CONVERSATION: "CAST(conversation_id AS TEXT)",
    UsageBy.TURN: "turn_id",
    UsageBy.PURPOSE: "purpose",
}
_TOTALS = """
    SELECT {keys} model, count(*) AS calls, sum(failed) AS failed, sum(reported = 0) AS unreported,
        sum(input_tokens) AS input, sum(output_tokens) AS output,
        sum(cache_read_tokens) AS cache_read, sum(cache_write_tokens) AS cache_write, sum(held) AS held
    FROM model_calls
    WHERE {chosen}
    GROUP BY {keys} model ORDER BY {keys} model
"""


def to_micro(amount: Decimal) -> int:
    """USD as they are stored: millionths, rounded up."""
    return int((amount * _MICRO).to_integral_value(ROUND_CEILING))


def from_micro(amount: int) -> Decimal:
    """USD as they are stored, in USD."""
    return Decimal(amount) / _MICRO


def record(db: sqlite3.Connection, payer: Payer, attempts: Sequence[AttemptUsage], at: datetime) -> None:
    """Store model calls, and set free what was reserved for them."""
    for attempt in attempts:
        counted = attempt.usage or NO_USAGE
        values = {
            "turn": payer.turn,
            "conversation": payer.conversation,
            "channel": payer.channel,
            "asker": str(payer.asker),
            "model": attempt.model,
            "purpose": attempt.purpose,
            "failed": attempt.failed,
            "reported": attempt.usage is not None,
            "input": counted.input_tokens,
            "output": counted.output_tokens,
            "cache_read": counted.cache_read_tokens,
            "cache_write": counted.cache_write_tokens,
            "at": stamp(at),
            "reservation": attempt.reservation,
        }
        db.execute(_INSERT, values)
        if attempt.reservation is not None:
            db.execute(_SET_FREE, {"reservation": attempt.reservation})


def record_left(db: sqlite3.Connection) -> None:
    """Record, at a start, the calls that were under way when a process died: what was kept for them counts as spent."""
    db.execute(_RECORD_LEFT)
    db.execute("DELETE FROM reservations")


def totals(db: sqlite3.Connection, by: Sequence[UsageBy], only: UsageFilter = ALL) -> list[UsageTotal]:
    """See `UsageLog.totals`."""
    values = {
        "at >= ?": None if only.since is None else stamp(only.since),
        "at < ?": None if only.until is None else stamp(only.until),
        "asker = ?": None if only.asker is None else str(only.asker),
        "turn_id = ?": only.turn,
    }
    chosen = {condition: value for condition, value in values.items() if value is not None}
    keys = "".join(f"{_GROUPS[each]}, " for each in by)
    sql = _TOTALS.format(keys=keys, chosen=" AND ".join(chosen) or "TRUE")
    return [_total(row, len(by)) for row in db.execute(sql, tuple(chosen.values()))]


class UsageLog:
    """Sums of model calls."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def totals(self, by: Sequence[UsageBy], only: UsageFilter = ALL) -> list[UsageTotal]:
        """Sum model calls, in the order of the groups' keys.

        Args:
            by: What to group by beside the model; may be empty.
            only: Which of them.
        """
        return await self._database.read(lambda db: totals(db, by, only))


def _total(row: sqlite3.Row, keys: int) -> UsageTotal:
    return UsageTotal(
        key=tuple(row[index] for index in range(keys)),
        model=row[keys],
        calls=row["calls"],
        failed=row["failed"],
        unreported=row["unreported"],
        held=from_micro(row["held"]),
        usage=Usage(
            input_tokens=row["input"],
            output_tokens=row["output"],
            cache_read_tokens=row["cache_read"],
            cache_write_tokens=row["cache_write"],
        ),
    )
