"""What model calls cost: one row a call, the failed ones too, and sums of them."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from zerobot.core.ids import ConversationId, TurnId
from zerobot.core.places import Identity
from zerobot.core.usage import Usage
from zerobot.store.columns import stamp
from zerobot.store.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallRow:
    """One model call."""

    turn: TurnId
    conversation: ConversationId
    channel: str
    asker: Identity
    model: str
    """PROVIDER/MODEL."""
    purpose: str
    """`step`, `closing` or `summary`."""
    failed: bool
    reported: bool
    """False: the provider said nothing, so the numbers are unknown, which is not the same as none."""
    usage: Usage
    at: datetime


class UsageBy(StrEnum):
    """What sums are grouped by."""

    DAY = "day"
    """In UTC."""
    MODEL = "model"
    CHANNEL = "channel"
    USER = "user"


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


_INSERT = """
    INSERT INTO model_calls (turn_id, conversation_id, channel, asker, model, purpose, failed, reported,
        input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, at)
    VALUES (:turn, :conversation, :channel, :asker, :model, :purpose, :failed, :reported,
        :input, :output, :cache_read, :cache_write, :at)
"""
_GROUPS = {
    UsageBy.DAY: "substr(at, 1, 10)",
    UsageBy.MODEL: "model",
    UsageBy.CHANNEL: "channel",
    UsageBy.USER: "asker",
}
_TOTALS = """
    SELECT {keys} model, count(*) AS calls, sum(failed) AS failed, sum(reported = 0) AS unreported,
        sum(input_tokens) AS input, sum(output_tokens) AS output,
        sum(cache_read_tokens) AS cache_read, sum(cache_write_tokens) AS cache_write
    FROM model_calls
    WHERE at >= :since AND at < :until AND (:asker IS NULL OR asker = :asker) {of_turn}
    GROUP BY {keys} model ORDER BY {keys} model
"""


def record(db: sqlite3.Connection, row: ModelCallRow) -> None:
    """Store one model call."""
    values = {
        "turn": row.turn,
        "conversation": row.conversation,
        "channel": row.channel,
        "asker": str(row.asker),
        "model": row.model,
        "purpose": row.purpose,
        "failed": row.failed,
        "reported": row.reported,
        "input": row.usage.input_tokens,
        "output": row.usage.output_tokens,
        "cache_read": row.usage.cache_read_tokens,
        "cache_write": row.usage.cache_write_tokens,
        "at": stamp(row.at),
    }
    db.execute(_INSERT, values)


class UsageLog:
    """Sums of model calls."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def totals(
        self,
        by: Sequence[UsageBy],
        *,
        since: datetime,
        until: datetime,
        asker: Identity | None = None,
        turn: TurnId | None = None,
    ) -> list[UsageTotal]:
        """Sum the model calls in `since <= at < until`, in the order of the groups' keys.

        Args:
            by: What to group by beside the model; may be empty.
            since: UTC.
            until: UTC.
            asker: Only what this person's turns cost.
            turn: Only what this turn cost.
        """
        # Written out only when it is asked for, so that the index of turns is used: every turn asks at its end.
        of_turn = "" if turn is None else "AND turn_id = :turn"
        sql = _TOTALS.format(keys="".join(f"{_GROUPS[each]}, " for each in by), of_turn=of_turn)
        values = {
            "since": stamp(since),
            "until": stamp(until),
            "asker": None if asker is None else str(asker),
            "turn": turn,
        }
        return await self._database.read(lambda db: [_total(row, len(by)) for row in db.execute(sql, values)])


def _total(row: sqlite3.Row, keys: int) -> UsageTotal:
    return UsageTotal(
        key=tuple(row[index] for index in range(keys)),
        model=row[keys],
        calls=row["calls"],
        failed=row["failed"],
        unreported=row["unreported"],
        usage=Usage(
            input_tokens=row["input"],
            output_tokens=row["output"],
            cache_read_tokens=row["cache_read"],
            cache_write_tokens=row["cache_write"],
        ),
    )
