"""What stands for the messages that have left a conversation's window: the head, and a summary of what followed it."""

import json
import sqlite3
from collections.abc import Sequence
from datetime import timedelta

from zerobot.core.budget import Payer
from zerobot.core.clock import Clock
from zerobot.core.ids import ConversationId
from zerobot.core.messages import Earlier, History
from zerobot.store import usage
from zerobot.store.columns import stamp, storable
from zerobot.store.database import Database
from zerobot.store.history import load_history
from zerobot.store.turn_rows import AttemptUsage

STATE = """
    SELECT c.epoch, c.window_seq, coalesce(s.epoch = c.epoch, 0) AS current, coalesce(s.tried_at, '') AS tried_at
    FROM conversations c LEFT JOIN summaries s ON s.conversation_id = c.id
    WHERE c.id = :conversation
"""
RENEW = "INSERT OR REPLACE INTO summaries (conversation_id, epoch) VALUES (:conversation, :epoch)"
TRY = "UPDATE summaries SET tried_at = :now WHERE conversation_id = :conversation"
SAVE = """
    UPDATE summaries SET head = :head, kept = :kept, covers = :covers, after_seq = :after, text = :text,
        model = CASE :model WHEN '' THEN model ELSE :model END,
        made_at = CASE :model WHEN '' THEN made_at ELSE :now END
    WHERE conversation_id = :conversation
"""
MOVE_WINDOW = "UPDATE conversations SET window_seq = :start WHERE id = :conversation"


class Summaries:
    """Windows and summaries of conversations, a transaction a method."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def history(self, conversation: ConversationId) -> History:
        """A conversation as its next turn will see it."""
        return await self._database.read(lambda db: load_history(db, conversation))

    async def begin(self, conversation: ConversationId, epoch: int, cooldown: timedelta) -> bool:
        """Take note that a summary is asked for now; False when one was within the cooldown, or the epoch is over."""
        now = self._clock.now()

        def transaction(db: sqlite3.Connection) -> bool:
            state = _state(db, conversation, epoch)
            if state is None:
                return False
            if state["current"] and state["tried_at"] > stamp(now - cooldown):
                return False
            db.execute(TRY, {"conversation": conversation, "now": stamp(now)})
            return True

        return await self._database.write(transaction)

    async def save(self, conversation: ConversationId, was: Earlier, becomes: Earlier, model: str = "") -> bool:
        """Move the window, and store what stands for the messages before it.

        Args:
            conversation: Whose.
            was: What it was made from. If a reset or another pass has changed that meanwhile, nothing is stored.
            becomes: What it is from now on.
            model: PROVIDER/MODEL that wrote the summary; empty when the window moved without a new one.

        Returns:
            Whether it was stored.
        """
        fields = {
            "conversation": conversation,
            "start": becomes.start,
            "head": json.dumps(becomes.head),
            "kept": json.dumps(becomes.kept),
            "covers": becomes.covers,
            "after": becomes.after,
            "text": storable(becomes.text),
            "model": model,
            "now": stamp(self._clock.now()),
        }

        def transaction(db: sqlite3.Connection) -> bool:
            state = _state(db, conversation, was.epoch)
            if state is None or state["window_seq"] != was.start:
                return False
            db.execute(SAVE, fields)
            db.execute(MOVE_WINDOW, fields)
            return True

        return await self._database.write(transaction)

    async def meter(self, payer: Payer, attempts: Sequence[AttemptUsage]) -> None:
        """Count model calls that belong to no turn."""
        now = self._clock.now()
        await self._database.write(lambda db: usage.record(db, payer, attempts, now))


def _state(db: sqlite3.Connection, conversation: ConversationId, epoch: int) -> sqlite3.Row | None:
    """How things stand, with a row of this epoch to write to; None when the epoch is over."""
    row: sqlite3.Row | None = db.execute(STATE, {"conversation": conversation}).fetchone()
    if row is None or row["epoch"] != epoch:
        return None
    if not row["current"]:
        db.execute(RENEW, {"conversation": conversation, "epoch": epoch})
    return row
