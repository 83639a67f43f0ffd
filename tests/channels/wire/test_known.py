"""Chats that are known over restarts."""

import pytest

from channels._wire.known import KnownChat, KnownChats
from zerobot.testing.intake import MemoryState


async def test_what_is_known_outlives_a_restart() -> None:
    """How far each chat was read, and whose it is."""
    state = MemoryState()
    known = await KnownChats.load(state)
    known.spoken_to("a", "10", "ann")
    known.spoken_to("b", "11")
    known.read("a", "12")
    await known.store()
    assert (await KnownChats.load(state)).chats == {"a": KnownChat("12", "ann"), "b": KnownChat("11")}


async def test_talk_where_nobody_speaks_to_the_bot_is_not_remembered() -> None:
    """A busy chat of others takes no room and no write."""
    state = MemoryState()
    known = await KnownChats.load(state)
    known.read("elsewhere", "1")
    await known.store()
    assert state.values == {}


async def test_only_so_many_are_remembered() -> None:
    """The ones that were silent longest go first."""
    known = await KnownChats.load(MemoryState())
    for number in range(120):
        known.spoken_to(str(number), "1")
    known.spoken_to("20", "2")
    known.spoken_to("new", "1")
    assert len(known.chats) == 100
    assert "20" in known.chats
    assert "21" not in known.chats


@pytest.mark.parametrize("value", ["nonsense", "[]", "[1]", '{"a": 1}', '{"a": []}', "null"])
async def test_what_cannot_be_read_counts_as_nothing(value: str) -> None:
    """The inbox knows what it has."""
    state = MemoryState()
    state.values["known"] = value
    assert (await KnownChats.load(state)).chats == {}


async def test_what_is_counted_apart_has_another_key() -> None:
    """Many threads push no chat out."""
    state = MemoryState()
    chats, threads = await KnownChats.load(state), await KnownChats.load(state, "threads")
    chats.spoken_to("1", "1")
    threads.spoken_to("1/2", "3")
    await chats.store()
    await threads.store()
    assert list((await KnownChats.load(state)).chats) == ["1"]
    assert list((await KnownChats.load(state, "threads")).chats) == ["1/2"]
