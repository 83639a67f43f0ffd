"""Small values that must survive a restart: a channel's offset, the freeze switch."""

import sqlite3

from zerobot.core.channel import ChannelState
from zerobot.store.columns import storable
from zerobot.store.database import Database

DAEMON = ""
"""The channel name under which the daemon keeps values of its own; no table can be called so."""

_GET = "SELECT value FROM channel_state WHERE channel = :channel AND key = :key"
_SET = """
    INSERT INTO channel_state (channel, key, value) VALUES (:channel, :key, :value)
    ON CONFLICT DO UPDATE SET value = :value
"""


class StoredChannelState:
    """The values of one channel. A `ChannelState`."""

    def __init__(self, database: Database, channel: str) -> None:
        self._database = database
        self._channel = channel

    async def get(self, key: str) -> str | None:
        """The value, or None."""
        values = {"channel": self._channel, "key": key}
        row = await self._database.read(lambda db: db.execute(_GET, values).fetchone())
        return None if row is None else str(row["value"])

    async def set(self, key: str, value: str) -> None:
        """Store a value; it is on disk when this returns.

        Raises:
            StorageError: It is not stored.
        """
        values = {"channel": self._channel, "key": key, "value": storable(value)}

        def transaction(db: sqlite3.Connection) -> None:
            db.execute(_SET, values)

        await self._database.write(transaction)


def channel_state(database: Database, channel: str) -> ChannelState:
    """The values of a channel, as adapters are handed them."""
    return StoredChannelState(database, channel)
