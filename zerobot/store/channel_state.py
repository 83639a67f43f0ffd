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
_FORGET = "DELETE FROM channel_state WHERE channel = :channel AND key = :key"


def read_channel_state(db: sqlite3.Connection, channel: str, key: str) -> str | None:
    """A value of a channel, or None."""
    row = db.execute(_GET, {"channel": channel, "key": key}).fetchone()
    return None if row is None else str(row[0])


class StoredChannelState:
    """The values of one channel. A `ChannelState`."""

    def __init__(self, database: Database, channel: str) -> None:
        self._database = database
        self._channel = channel

    async def get(self, key: str) -> str | None:
        """The value, or None."""
        return await self._database.read(lambda db: read_channel_state(db, self._channel, key))

    async def set(self, key: str, value: str) -> None:
        """Store a value; it is on disk when this returns.

        Raises:
            StorageError: It is not stored.
        """
        values = {"channel": self._channel, "key": key, "value": storable(value)}

        def transaction(db: sqlite3.Connection) -> None:
            db.execute(_SET, values)

        await self._database.write(transaction)

    async def forget(self, key: str) -> None:
        """Remove a value; it is gone from the disk when this returns.

        Raises:
            StorageError: It is still there.
        """
        values = {"channel": self._channel, "key": key}

        def transaction(db: sqlite3.Connection) -> None:
            db.execute(_FORGET, values)

        await self._database.write(transaction)


def channel_state(database: Database, channel: str) -> ChannelState:
    """The values of a channel, as adapters are handed them."""
    return StoredChannelState(database, channel)
