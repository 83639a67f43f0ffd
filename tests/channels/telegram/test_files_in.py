"""Attachments from the strict double."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.platforms.telegram_house import TelegramHouse, telegram_house
from tests.platforms.telegram_server import Person
from zerobot.core.envelope import Attachment
from zerobot.core.errors import GoneError, RefusedError, TryLaterError


@pytest.fixture
async def house() -> AsyncIterator[TelegramHouse]:
    async with telegram_house() as house:
        yield house


@pytest.fixture
def ann(house: TelegramHouse) -> Person:
    return house.server.user("1001", name="Ann")


async def received(house: TelegramHouse) -> Attachment:
    async with house.running() as intake:
        await intake.until(lambda: intake.accepted)
        return intake.accepted[0].attachments[0]


async def fetched(house: TelegramHouse, attachment: Attachment, limit: int = 10**7) -> bytes:
    return b"".join([piece async for piece in await house.channel.fetch(attachment, limit)])


@pytest.mark.parametrize("kind", ["document", "photo", "voice", "audio", "video"])
async def test_what_was_sent_is_what_is_fetched(house: TelegramHouse, ann: Person, kind: str) -> None:
    """Every kind of file can be fetched; of a photo it is the largest size."""
    data = bytes(range(256)) * 1000
    ann.sends_file("a.bin", data, kind=kind)
    assert await fetched(house, await received(house)) == data


async def test_a_file_over_our_limit_is_not_even_asked_for(house: TelegramHouse, ann: Person) -> None:
    """The size that Telegram says is looked at first; the words say name, size and limit."""
    ann.sends_file("big.iso", b"x", size=60_000_000)
    attachment = await received(house)
    with pytest.raises(RefusedError) as caught:
        await fetched(house, attachment, limit=20_000_000)
    assert caught.value.user_text == (
        "The file 'big.iso' (60.0 MB) is too large: more than the 20.0 MB that are allowed."
    )
    assert house.server.of("getFile") == []


async def test_a_file_over_telegrams_limit(house: TelegramHouse, ann: Person) -> None:
    """Bots may fetch 20 MB; the refusal says so in words."""
    ann.sends_file("big.iso", b"x", size=60_000_000)
    with pytest.raises(RefusedError, match="more than bots may fetch"):
        await fetched(house, await received(house), limit=10**9)


async def test_a_file_that_is_larger_than_it_says(house: TelegramHouse, ann: Person) -> None:
    """What counts is what arrives: not one byte over the limit is handed on."""
    ann.sends_file("a.bin", b"x" * 500_000, size=10)
    attachment = await received(house)
    pieces: list[bytes] = []

    async def read() -> None:
        async for piece in await house.channel.fetch(attachment, 100_000):
            pieces.append(piece)  # noqa: PERF401 -- what came before the refusal counts

    with pytest.raises(RefusedError):
        await read()
    assert sum(map(len, pieces)) <= 100_000


async def test_a_file_that_is_gone(house: TelegramHouse, ann: Person) -> None:
    """Neither an unknown id nor a path that leads nowhere is tried for ever."""
    with pytest.raises(GoneError):
        await fetched(house, Attachment(kind="file", name="a", ref="unknown"))
    ann.sends_file("a.bin", b"x")
    attachment = await received(house)
    stream = await house.channel.fetch(attachment, 100)
    house.server.files.clear()
    with pytest.raises(GoneError):
        [piece async for piece in stream]


async def test_a_passing_fault(house: TelegramHouse, ann: Person) -> None:
    """A fault of the server's is for later, and no text of it has the token."""
    ann.sends_file("a.bin", b"x")
    attachment = await received(house)
    house.server.fail_next("getFile", 500)
    with pytest.raises(TryLaterError) as caught:
        await fetched(house, attachment)
    assert house.server.token not in str(caught.value)
    assert await fetched(house, attachment) == b"x"


async def test_a_local_bot_api_server_shares_its_disk(house: TelegramHouse, ann: Person, tmp_path: Path) -> None:
    """A server of one's own, started with `--local`, names files by their path; they are read there, within limits."""
    house.server.local_files = tmp_path
    ann.sends_file("a.bin", b"x" * 200_000)
    attachment = await received(house)
    assert await fetched(house, attachment) == b"x" * 200_000
    with pytest.raises(RefusedError):
        await fetched(house, Attachment(kind="file", name="a.bin", ref=attachment.ref), limit=1000)
    stream = await house.channel.fetch(attachment, 10**6)
    (tmp_path / attachment.ref).unlink()
    with pytest.raises(GoneError):
        [piece async for piece in stream]
