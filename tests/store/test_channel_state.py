"""The small values of a channel: kept, replaced, removed, and nobody else's."""

from pathlib import Path

from zerobot.store.channel_state import channel_state
from zerobot.store.database import open_database


async def test_a_value_is_kept_until_it_is_replaced_or_removed(tmp_path: Path) -> None:
    """Over a restart too; the same key of another channel is another value."""
    path = tmp_path / "zerobot.db"
    async with open_database(path) as database:
        state = channel_state(database, "one")
        await state.set("last", "1")
        await state.set("last", "2")
        await channel_state(database, "two").set("last", "9")
    async with open_database(path) as database:
        state = channel_state(database, "one")
        assert await state.get("last") == "2"
        await state.forget("last")
        await state.forget("last")
        assert await state.get("last") is None
        assert await channel_state(database, "two").get("last") == "9"
