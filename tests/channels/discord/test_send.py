"""Everything that goes out, against the strict double."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.platforms.discord_house import DiscordHouse, discord_house
from tests.platforms.discord_server import Person
from tests.platforms.discord_world import RefusalError
from zerobot.core.channel import MessageBody, OutboundFile, OutboundMessage, SentMessage
from zerobot.core.envelope import Attachment
from zerobot.core.errors import (
    CannotTellError,
    DeliveryError,
    GoneError,
    RefusedError,
    TryLaterError,
    UnclearError,
    UnreachableError,
)
from zerobot.core.places import Place


@pytest.fixture
async def house() -> AsyncIterator[DiscordHouse]:
    async with discord_house() as house:
        yield house


@pytest.fixture
def ann(house: DiscordHouse) -> Person:
    return house.server.user("1001", name="Ann", username="ann")


async def test_a_direct_chat_is_opened_once(house: DiscordHouse, ann: Person) -> None:
    """Somebody who never wrote can be written to; his chat is asked for only the first time."""
    await house.send("@1001", "one", key="k1")
    await house.send("@1001", "two", key="k2")
    assert ann.chat.texts == ["one", "two"]
    assert len(house.server.of("open_direct")) == 1


async def test_every_call_pings_nobody_and_loads_nothing(house: DiscordHouse, ann: Person) -> None:
    """B049: on all paths: a message, an answer, an edit, a file."""
    team = house.server.channel("team")
    asked = ann.says("hi", chat=team)
    sent = await house.send(team.id, "@everyone <@1001> https://a.test", reply_to=asked.id)
    await house.channel.edit(sent, MessageBody("@here"))
    for call in house.server.of("create_message", "edit_message"):
        assert call.params["body"]["allowed_mentions"] == {"parse": [], "replied_user": False}
        assert call.params["body"]["flags"] == 4
    assert team.replies[0].pings == []
    assert team.replies[0].reply_to is asked


async def test_what_is_answered_may_be_gone(house: DiscordHouse, ann: Person) -> None:
    """Then it is a message like any other."""
    asked = ann.says("hi")
    ann.deletes(asked)
    await house.send("@1001", "hello", reply_to=asked.id)
    assert ann.chat.replies[0].reply_to is None


@pytest.mark.parametrize("carried_out", [True, False])
async def test_a_repeat_after_a_lost_answer_is_no_second_message(
    house: DiscordHouse, ann: Person, *, carried_out: bool
) -> None:
    """The same key is the same nonce."""
    house.server.break_next("create_message", carried_out=carried_out)
    with pytest.raises(UnclearError):
        await house.send("@1001", "once")
    await house.send("@1001", "once")
    assert ann.chat.texts == ["once"]


async def test_a_repeat_in_other_words_changes_what_stands_there(house: DiscordHouse, ann: Person) -> None:
    """A draft whose answer was lost becomes the final text."""
    await house.send("@1001", "half of")
    sent = await house.send("@1001", "half of it and the rest")
    assert ann.chat.texts == ["half of it and the rest"]
    assert sent.id == ann.chat.replies[0].id


@pytest.mark.parametrize("has_nonces", [True, False])
async def test_a_message_is_found_in_the_history(house: DiscordHouse, ann: Person, *, has_nonces: bool) -> None:
    """By its nonce, or where the history has none, by what it says and answers; another one is not taken for it."""
    house.server.api.history_has_nonces = has_nonces
    first, second = ann.says("hi"), ann.says("hi again")
    sent = await house.send("@1001", "Hello.", key="a.1.0", reply_to=first.id)
    place, body = Place("discord", "@1001"), MessageBody("Hello.")
    message = OutboundMessage(place=place, body=body, key="a.1.0", reply_to=first.id)
    assert await house.channel.find(message) == sent
    other = OutboundMessage(place=place, body=body, key="b.2.0", reply_to=second.id)
    assert await house.channel.find(other) is None


@pytest.mark.parametrize("text", ["word " * 60, "Done."])
async def test_without_nonces_only_long_words_are_known_again(house: DiscordHouse, ann: Person, text: str) -> None:
    """Nobody says much twice by chance; of two that say “Done.” nobody can tell which is which."""
    house.server.api.history_has_nonces = False
    sent = await house.send("@1001", text, key="a.1.0")
    message = unclear(house, text)
    if len(text) > 200:
        assert await house.channel.find(message) == sent
    else:
        with pytest.raises(CannotTellError):
            await house.channel.find(message)


async def test_what_stands_there_since_before_is_no_other_message(house: DiscordHouse, ann: Person) -> None:
    """A “Done.” of an earlier day is not the one of which nobody knows; what people say is not either."""
    house.server.api.history_has_nonces = False
    await house.send("@1001", "Done.", key="a.1.0")
    ann.says("Done!")
    tomorrow = house.clock.now() + timedelta(days=1)
    assert await house.channel.find(replace(unclear(house, "Done!"), not_before=tomorrow)) is None
    assert await house.channel.find(unclear(house, "Done!")) is None


async def test_an_answer_to_what_was_deleted_may_be_the_one(house: DiscordHouse, ann: Person) -> None:
    """It stands there without what it answers; so may a draft of it that said something else."""
    house.server.api.history_has_nonces = False
    asked, other = ann.says("hi"), ann.says("hello")
    await house.send("@1001", "Hel", reply_to=other.id)
    ann.deletes(asked)
    await house.send("@1001", "Hello.", key="k2", reply_to=asked.id)
    for each in (asked, other):
        with pytest.raises(CannotTellError):
            await house.channel.find(replace(unclear(house, "Hello."), reply_to=each.id))


async def test_too_long_a_history_is_not_read_to_its_end(house: DiscordHouse, ann: Person) -> None:
    """Nobody can tell then; what stands in the beginning is found."""
    sent = await house.send("@1001", "First.", key="b")
    for number in range(310):
        ann.says(f"message {number}")
    message = replace(unclear(house, "First."), not_before=house.clock.now())
    assert await house.channel.find(message) == sent
    with pytest.raises(CannotTellError):
        await house.channel.find(replace(message, key="c"))


def unclear(house: DiscordHouse, text: str) -> OutboundMessage:
    """A message to Ann whose sending ended unclear."""
    return OutboundMessage(place=Place("discord", "@1001"), body=house.channel.render(text)[0], key="b")


async def test_what_the_gateway_showed_needs_no_look_into_the_history(house: DiscordHouse, ann: Person) -> None:
    """A lost answer, and yet the message came by."""
    async with house.running():
        house.server.break_next("create_message")
        with pytest.raises(UnclearError):
            await house.send("@1001", "Hello.", key="a.1.0")
        ann.says("go on")
        await house.intake.until(lambda: house.intake.texts)
    message = OutboundMessage(place=Place("discord", "@1001"), body=MessageBody("Hello."), key="a.1.0")
    assert await house.channel.find(message) == SentMessage(message.place, ann.chat.replies[0].id)
    assert house.server.of("history") == []


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (403, 50013, UnreachableError),
        (403, 50001, UnreachableError),
        (403, 50007, UnreachableError),
        (404, 10003, UnreachableError),
        (400, 160005, UnreachableError),
        (400, 50035, RefusedError),
        (400, 50006, RefusedError),
        (400, 200000, RefusedError),
        (404, 10008, GoneError),
        (401, 0, TryLaterError),
        (400, 20028, TryLaterError),
        (500, 0, UnclearError),
        (503, 0, UnclearError),
    ],
)
async def test_refusals_say_what_to_do_next(
    house: DiscordHouse, ann: Person, status: int, code: int, kind: type[DeliveryError]
) -> None:
    """Each in the words of delivery."""
    house.server.fail_next("create_message", status, code)
    with pytest.raises(kind):
        await house.send("@1001", "hello")


@pytest.mark.parametrize("everywhere", [False, True])
async def test_a_limit_is_told_at_once_with_its_time(house: DiscordHouse, ann: Person, *, everywhere: bool) -> None:
    """The call does not wait inside: who paces knows how long, and whether it holds for the whole bot."""
    house.server.fail_next("create_message", 429, retry_after=3.5, everywhere=everywhere)
    with pytest.raises(TryLaterError) as caught:
        await house.send("@1001", "hello")
    assert caught.value.retry_after == 3.5
    assert caught.value.whole_bot == everywhere
    assert len(house.server.of("create_message")) == 1


async def test_nothing_that_was_never_sent_is_unclear(house: DiscordHouse) -> None:
    """No connection, no message."""
    away = DiscordHouse(house.server, token="x")
    away.settings = away.settings.model_copy(update={"api_base": "http://127.0.0.1:9/api/v10"})
    channel = type(away.channel)(away.settings, away.services)  # type: ignore[arg-type]
    with pytest.raises(TryLaterError):
        await channel.send(OutboundMessage(place=Place("discord", "5"), body=MessageBody("x"), key="k"))
    with pytest.raises(TryLaterError):
        await channel.probe()
    await channel.close()
    await away.close()


async def test_an_edit_and_a_deletion_of_what_is_gone(house: DiscordHouse, ann: Person) -> None:
    """An edit says so, a deletion has nothing to do."""
    sent = await house.send("@1001", "hello")
    await house.channel.delete(sent)
    await house.channel.delete(sent)
    with pytest.raises(GoneError):
        await house.channel.edit(sent, MessageBody("again"))
    assert ann.chat.replies == []


async def test_typing_is_shown_and_never_an_error(house: DiscordHouse, ann: Person) -> None:
    """Whatever Discord says to it."""
    await house.channel.typing(Place("discord", "@1001"))
    house.server.fail_next("typing", 403, 50001)
    await house.channel.typing(Place("discord", "@1001"))
    assert len(ann.chat.typing) == 1


async def test_a_file_goes_out_with_its_words(house: DiscordHouse, ann: Person, tmp_path: Path) -> None:
    """One message, sent once however often it is tried."""
    path = tmp_path / "x"
    path.write_bytes(b"data")
    file = OutboundFile(path=str(path), name="result.txt")
    for _ in range(2):
        await house.send("@1001", "Here.", file=file)
    (message,) = ann.chat.replies
    assert (message.text, [(each.name, each.data) for each in message.files]) == ("Here.", [("result.txt", b"data")])


async def test_a_file_that_is_too_large_is_left_out_and_its_words_are_not(
    house: DiscordHouse, ann: Person, tmp_path: Path
) -> None:
    """B055: people learn its name and size."""
    path = tmp_path / "x"
    path.write_bytes(b"x" * 2_000_000)
    house.server.api.file_bytes = 1_000_000
    await house.send("@1001", "Here.", file=OutboundFile(path=str(path), name="result.bin"))
    (text,) = ann.chat.texts
    assert text == "Here.\n(The file result.bin, 2.0 MB, is larger than Discord takes here and was left out.)"


async def test_a_file_that_is_not_there_is_refused(house: DiscordHouse, ann: Person, tmp_path: Path) -> None:
    """Before anything is sent."""
    with pytest.raises(RefusedError):
        await house.send("@1001", "Here.", file=OutboundFile(path=str(tmp_path / "none"), name="x"))
    assert ann.chat.replies == []


async def fetched(house: DiscordHouse, attachment: Attachment, limit: int = 1000) -> bytes:
    return b"".join([piece async for piece in await house.channel.fetch(attachment, limit)])


async def test_attachments_are_fetched_within_their_bounds(house: DiscordHouse, ann: Person) -> None:
    """B057: what is too large, lies about its size, or is gone is an error at once, and the next one works."""
    async with house.running() as intake:
        ann.says("see", files=[("a.txt", b"hello"), ("b.bin", b"x" * 2000)])
        await intake.until(lambda: intake.accepted)
    small, large = intake.accepted[0].attachments
    assert (small.name, small.size, large.size) == ("a.txt", 5, 2000)
    assert await fetched(house, small) == b"hello"
    for attachment in (large, Attachment(kind="file", name="b", ref=large.ref)):
        with pytest.raises(RefusedError):
            await fetched(house, attachment)
    next(file for file in house.server.files.values() if file.name == "a.txt").status = 404
    with pytest.raises(GoneError):
        await fetched(house, small)
    with pytest.raises(TryLaterError):
        await fetched(house, Attachment(kind="file", name="c", ref="http://127.0.0.1:9/c"))


async def test_a_closed_channel_refuses_and_another_does_not(house: DiscordHouse, ann: Person) -> None:
    """No permission in one place says nothing of another."""
    team = house.server.channel("team")
    team.refuses = RefusalError(403, 50013, "Missing Permissions")
    with pytest.raises(UnreachableError):
        await house.send(team.id, "hello")
    await asyncio.gather(house.send("@1001", "hello"))
    assert ann.chat.texts == ["hello"]
