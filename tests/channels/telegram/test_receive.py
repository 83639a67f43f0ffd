"""Receiving from the strict double: what is confirmed when, and what survives a fault."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import httpx
import pytest

from channels._wire.backoff import Backoff
from channels.telegram.position import Position
from tests.platforms.telegram_house import TelegramHouse, telegram_house
from tests.platforms.telegram_server import Person
from zerobot.core.approvals import PressOutcome, PressReply
from zerobot.core.errors import ChannelFaultError, UnclearError
from zerobot.core.places import Place
from zerobot.testing.intake import MemoryState


@pytest.fixture
async def house() -> AsyncIterator[TelegramHouse]:
    async with telegram_house() as house:
        yield house


@pytest.fixture
def ann(house: TelegramHouse) -> Person:
    return house.server.user("1001", name="Ann", username="ann")


async def test_a_message_is_handed_over_and_then_confirmed(house: TelegramHouse, ann: Person) -> None:
    """What a person writes arrives as an envelope, and a later poll confirms it."""
    async with house.running() as intake:
        ann.says("hello")
        await intake.until(lambda: intake.texts == ["hello"])
        await house.server.wait_for(lambda: not house.server.unconfirmed)
    assert str(intake.accepted[0].sender) == "telegram:1001"


async def test_nothing_is_confirmed_before_it_is_stored(house: TelegramHouse, ann: Person) -> None:
    """While the inbox has not taken a message, Telegram keeps it, and no later poll is made."""
    async with house.running() as intake:
        intake.hold()
        ann.says("one")
        ann.says("two")
        await house.server.wait_for(lambda: len(house.server.unconfirmed) == 2)
        polls = len(house.server.of("getUpdates"))
        ann.says("three")
        assert len(house.server.unconfirmed) == 3
        intake.release()
        await intake.until(lambda: intake.texts == ["one", "two", "three"])
        await house.server.wait_for(lambda: not house.server.unconfirmed)
        assert len(house.server.of("getUpdates")) > polls
    assert intake.duplicates == []


async def test_a_crash_before_the_confirmation_brings_everything_again(house: TelegramHouse, ann: Person) -> None:
    """Stopped between storing and confirming, the next start gets the message once more, by the same event id."""
    async with house.running() as intake:
        intake.hold()
        ann.says("hello")
        await house.server.wait_for(lambda: house.server.unconfirmed)
    assert house.server.unconfirmed
    second = TelegramHouse(house.server, state=house.state)
    async with second.running() as intake:
        await intake.until(lambda: intake.texts == ["hello"])
    await second.close()


async def test_what_was_stored_is_not_handed_over_after_a_restart(house: TelegramHouse, ann: Person) -> None:
    """The position is durable: a restart before the confirming poll asks from there."""
    async with house.running() as intake:
        hold = house.server.hold_next("getUpdates")
        await hold.arrived.wait()
        hold.release()
        ann.says("one")
        await intake.until(lambda: intake.texts == ["one"])
        await intake.until(lambda: any(key.startswith("offset:") for key in house.state.values))
    second = TelegramHouse(house.server, state=house.state)
    async with second.running() as intake:
        ann.says("two")
        await intake.until(lambda: intake.texts)
        assert intake.texts == ["two"]
    await second.close()


async def test_a_full_disk_stops_the_batch_and_nothing_is_lost(house: TelegramHouse, ann: Person) -> None:
    """What could not be stored is asked for again, until it can be."""
    async with house.running() as intake:
        intake.fail(times=3)
        ann.says("one")
        ann.says("two")
        await intake.until(lambda: intake.texts == ["one", "two"])
        await house.server.wait_for(lambda: not house.server.unconfirmed)
    assert house.log.names.count("telegram.not_stored") == 3
    assert len(house.clock.waits) >= 3


async def test_a_refused_token_parks_the_channel(house: TelegramHouse) -> None:
    """A wrong token is no passing fault: the channel says which key to mend, and does not say the token."""
    wrong = TelegramHouse(house.server, token="4242:wrong-token")
    with pytest.raises(ChannelFaultError) as caught:
        await wrong.channel.run(wrong.intake)
    await wrong.close()
    assert "[channels.telegram] bot_token" in caught.value.advice
    assert "wrong-token" not in f"{caught.value} {caught.value.advice} {wrong.log.events}"


async def test_a_token_that_is_revoked_parks_the_channel(house: TelegramHouse) -> None:
    """So is one that worked until now."""
    house.server.fail_next("getUpdates", 401, "Unauthorized")
    with pytest.raises(ChannelFaultError):
        await house.channel.run(house.intake)


@pytest.mark.parametrize("status", [500, 502, 429])
async def test_a_fault_while_polling_is_passing(house: TelegramHouse, ann: Person, status: int) -> None:
    """The channel says that it is broken, waits, and goes on where it was."""
    async with house.running() as intake:
        house.server.fail_next("getUpdates", status, retry_after=7 if status == 429 else None)
        ann.says("one")
        await intake.until(lambda: intake.breaks)
        ann.says("two")
        await intake.until(lambda: intake.texts == ["one", "two"])
    assert house.clock.waits
    if status == 429:
        assert house.clock.waits[0] >= 7


async def test_a_broken_connection_is_passing(house: TelegramHouse, ann: Person) -> None:
    """A poll that breaks is polled again."""
    async with house.running() as intake:
        await house.server.wait_for(lambda: len(house.server.of("getUpdates")) == 2)
        house.server.drop_connections()
        await intake.until(lambda: intake.breaks)
        ann.says("hello")
        await intake.until(lambda: intake.texts == ["hello"])
    assert house.server.token not in str(intake.breaks) + str(house.log.events)


async def test_another_poller_with_the_same_token(house: TelegramHouse, ann: Person) -> None:
    """Telegram sends the older poller away; it says why and comes back, and everything still arrives."""
    async with house.running() as intake, httpx.AsyncClient() as other:
        await house.server.wait_for(lambda: len(house.server.of("getUpdates")) == 2)
        await other.get(f"{house.server.api_base}/bot{house.server.token}/getUpdates")
        await intake.until(lambda: intake.breaks)
        ann.says("hello")
        await intake.until(lambda: intake.texts == ["hello"])
    assert intake.breaks == ["another program receives with this bot's token"]


async def test_a_webhook_is_removed(house: TelegramHouse, ann: Person) -> None:
    """Nobody can poll while a webhook is set; it goes, and the updates that wait for it don't."""
    house.server.webhook = "https://example.com/hook"
    ann.says("hello")
    async with house.running() as intake:
        await intake.until(lambda: intake.texts == ["hello"])
    assert house.server.webhook == ""


async def test_a_press_is_answered_with_what_became_of_it(house: TelegramHouse, ann: Person) -> None:
    """The presser is told in words; a decision in passing, a refusal so that it has to be clicked away."""
    sent = await house.send("1001", "a prompt")
    message = ann.chat.message(int(sent.id))
    assert message is not None
    async with house.running() as intake:
        press = await ann.sends_press(message, "a:xyz").answered()
        assert (press.text, press.alert) == ("Approved.", False)
        intake.reply = PressReply(PressOutcome.NOT_OPERATOR, "Only operators decide. " * 20)
        press = await ann.sends_press(message, "a:xyz").answered()
        assert press.alert
        assert press.text.startswith("Only operators decide.")
        assert len(press.text) == 200
    assert [press.approval for press in intake.presses] == ["xyz", "xyz"]


async def test_a_press_counts_once_while_the_disk_is_full(house: TelegramHouse, ann: Person) -> None:
    """A decision in a batch that has to come again is not handed over again."""
    sent = await house.send("1001", "a prompt")
    message = ann.chat.message(int(sent.id))
    assert message is not None
    ann.says("first")
    ann.sends_press(message, "a:xyz")
    async with house.running() as intake:
        await intake.until(lambda: intake.texts == ["first"])
        ann.says("later")
        await intake.until(lambda: intake.texts == ["first", "later"])
    assert len(intake.presses) == 1


async def test_a_press_does_not_wait_for_anything_slow(house: TelegramHouse, ann: Person) -> None:
    """A slow answer to one press keeps neither the next message nor the next press back."""
    sent = await house.send("1001", "a prompt")
    message = ann.chat.message(int(sent.id))
    assert message is not None
    async with house.running() as intake:
        hold = house.server.hold_next("answerCallbackQuery")
        slow = ann.sends_press(message, "a:xyz")
        await hold.arrived.wait()
        ann.says("hello")
        await ann.sends_press(message, "d:xyz").answered()
        await intake.until(lambda: intake.texts == ["hello"])
        assert not slow.is_answered
        hold.release()
        await slow.answered()


async def test_a_press_that_telegram_has_forgotten(house: TelegramHouse, ann: Person) -> None:
    """A press that can't be answered any more still counts."""
    sent = await house.send("1001", "a prompt")
    message = ann.chat.message(int(sent.id))
    assert message is not None
    async with house.running() as intake:
        ann.sends_press(message, "a:xyz")
        house.server.queries.clear()
        await intake.until(lambda: intake.presses)
        await house.server.wait_for(lambda: house.server.of("answerCallbackQuery"))
        ann.says("hello")
        await intake.until(lambda: intake.texts == ["hello"])


async def test_an_album_arrives_as_parts_with_one_id(house: TelegramHouse, ann: Person) -> None:
    """Telegram splits an album; the parts say that they belong together, the caption is the first one's."""
    async with house.running() as intake:
        ann.sends_album([("a.jpg", b"1"), ("b.jpg", b"2"), ("c.jpg", b"3")], caption="look")
        await intake.until(lambda: len(intake.accepted) == 3)
    assert len({envelope.album for envelope in intake.accepted} - {""}) == 1
    assert intake.texts == ["look", "", ""]
    assert all(len(envelope.attachments) == 1 for envelope in intake.accepted)


async def test_edits_topics_and_moves(house: TelegramHouse, ann: Person) -> None:
    """An edit names its message, a topic is a place of its own, and a move is told."""
    forum = house.server.group("Forum", forum=True, topics=[11, 22])
    group = house.server.group("Team")
    async with house.running() as intake:
        first = ann.says("@zero_bot one", chat=forum, topic=11)
        ann.says("@zero_bot two", chat=forum, topic=22)
        ann.edits(first, "@zero_bot three")
        new = house.server.migrates(group, ann)
        await intake.until(lambda: len(intake.moves) == 2)
    assert [envelope.place.thread for envelope in intake.accepted] == ["11", "22"]
    assert [(edit.message_id, edit.text, edit.place.thread) for edit in intake.edits] == [
        (str(first.id), "three", "11")
    ]
    assert set(intake.moves) == {(Place("telegram", group.id), new.id)}


async def test_one_unreadable_update_does_not_make_the_channel_deaf(house: TelegramHouse, ann: Person) -> None:
    """An update that the library cannot read is passed over; those around it arrive."""
    ann.says("one")
    house.server.push("message", {"message_id": "?", "chat": 5})
    ann.says("two")
    async with house.running() as intake:
        await intake.until(lambda: intake.texts == ["one", "two"])
        await house.server.wait_for(lambda: not house.server.unconfirmed)
    assert "telegram.unreadable" in house.log.names


async def test_the_menu_is_told_once(house: TelegramHouse) -> None:
    """The commands that everybody has are Telegram's menu; it is told when it changes and not at each start."""
    async with house.running():
        await house.server.wait_for(lambda: house.server.commands)
    assert [command["command"] for command in house.server.commands] == ["help", "stop"]
    second = TelegramHouse(house.server, state=house.state)
    async with second.running():
        await house.server.wait_for(lambda: len(house.server.of("getUpdates")) >= 4)
    await second.close()
    assert len(house.server.of("setMyCommands")) == 1


async def test_a_position_that_is_too_old_is_not_used(house: TelegramHouse) -> None:
    """After a week without updates Telegram counts anew: an old offset could stand behind what is to come."""
    state = MemoryState()
    position = await Position.load(state, house.clock, bot=4242)
    await position.move(500)
    assert position.offset == 500
    state.values["offset:4242"] = '{"offset": 500, "at": "2026-01-01T00:00:00+00:00"}'
    old = await Position.load(state, house.clock, bot=4242)
    assert old.offset is None


@pytest.mark.parametrize("stored", ["", "nonsense", "[]", '{"offset": "x", "at": "y"}'])
async def test_a_position_that_cannot_be_read_counts_as_none(house: TelegramHouse, stored: str) -> None:
    """Then Telegram begins at its oldest, and the inbox knows what it has."""
    state = MemoryState()
    state.values["offset:4242"] = stored
    position = await Position.load(state, house.clock, bot=4242)
    assert position.offset is None


async def test_no_line_of_a_log_has_the_token(
    house: TelegramHouse, ann: Person, caplog: pytest.LogCaptureFixture
) -> None:
    """Telegram's token is in each address; neither the libraries' lines nor ours have it, at any level."""
    caplog.set_level(logging.DEBUG)
    async with house.running() as intake:
        house.server.break_next("getUpdates")
        ann.says("hello")
        await intake.until(lambda: intake.texts)
        await house.send("1001", "one")
        house.server.break_next("sendMessage")
        with pytest.raises(UnclearError) as caught:
            await house.send("1001", "two")
    secret = house.server.token
    assert secret not in caplog.text + str(house.log.events) + str(caught.value) + str(intake.breaks)
    assert "hello" not in caplog.text


async def test_waits_grow_and_a_quiet_minute_makes_them_short_again(house: TelegramHouse) -> None:
    """Full jitter from one second up to a minute; what the other side asks for is the least."""
    clock = house.clock
    backoff = Backoff(clock, throw=lambda: 1.0)
    for _ in range(9):
        await backoff.wait()
    assert clock.waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    clock.ahead += 61
    await backoff.wait()
    await backoff.wait(at_least=90)
    assert clock.waits[-2:] == [1, 90]
    await Backoff(clock, throw=lambda: 0.0).wait()
    assert clock.waits[-1] > 0
