"""Sending to the strict double: what a chat shows, and what each refusal becomes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from channels.telegram.units import MESSAGE_UNITS, REPEAT_MARK, mark_repeat
from tests.platforms.telegram_house import TelegramHouse, telegram_house
from tests.platforms.telegram_server import Person
from zerobot.core.approvals import ApprovalPrompt, PromptLine
from zerobot.core.channel import MessageBody, OutboundFile, OutboundMessage, SentMessage
from zerobot.core.errors import (
    DeliveryError,
    GoneError,
    MovedError,
    RefusedError,
    TryLaterError,
    UnclearError,
    UnreachableError,
)
from zerobot.core.ids import ApprovalId
from zerobot.core.places import Identity, Place
from zerobot.testing.intake import MemoryState

ANNS = Place("telegram", "1001")


@pytest.fixture
async def house() -> AsyncIterator[TelegramHouse]:
    async with telegram_house() as house:
        yield house


@pytest.fixture
def ann(house: TelegramHouse) -> Person:
    return house.server.user("1001", name="Ann", username="ann")


def prompt(*, is_open: bool = True, attachment: str | None = None) -> ApprovalPrompt:
    lines = (
        PromptLine(kind="title", text="Approval needed"),
        PromptLine(kind="argument", label="command", text="make clean"),
    )
    outcome = () if is_open else (PromptLine(kind="outcome", text="Approved by Ann at 10:00 UTC"),)
    return ApprovalPrompt(
        approval=ApprovalId("A" * 22), code="BCDF23", lines=(*lines, *outcome), attachment=attachment, open=is_open
    )


async def test_what_is_rendered_is_what_the_chat_shows(house: TelegramHouse, ann: Person) -> None:
    """Text with its entities, and no preview of any link."""
    await house.send("1001", "**hi** `there` you")
    (message,) = ann.chat.replies
    assert message.text == "hi there you"
    assert [one["type"] for one in message.entities] == ["bold", "code"]
    assert message.preview_off


async def test_an_edit_changes_the_message_and_the_same_again_is_no_error(house: TelegramHouse, ann: Person) -> None:
    """Telegram refuses an edit that changes nothing; for us it has succeeded."""
    sent = await house.send("1001", "one")
    body = house.channel.render("two")[0]
    await house.channel.edit(sent, body)
    await house.channel.edit(sent, body)
    assert ann.chat.texts == ["two"]
    assert ann.chat.replies[0].edits == 1
    assert ann.chat.replies[0].preview_off


async def test_a_deletion_and_a_second_one(house: TelegramHouse, ann: Person) -> None:
    """What is gone already is no error."""
    sent = await house.send("1001", "one")
    await house.channel.delete(sent)
    await house.channel.delete(sent)
    assert ann.chat.texts == []


async def test_the_topic_is_on_everything(house: TelegramHouse, ann: Person) -> None:
    """Messages, files, prompts and typing go to the topic of their turn."""
    forum = house.server.group("Forum", forum=True, topics=[11, 22])
    place = Place("telegram", forum.id, "22")
    await house.send(forum.id, "one", thread="22")
    await house.channel.ask(place, prompt(attachment="all"), "k")
    await house.channel.typing(place)
    assert [message.thread for message in forum.replies] == [22, 22, 22]
    assert [(action, thread) for action, thread, _ in forum.actions] == [("typing", 22)]
    assert ann.chat.replies == []


async def test_a_reply_to_something_that_is_gone_is_sent_nevertheless(house: TelegramHouse, ann: Person) -> None:
    """An answer shows what it answers, as long as that is there."""
    asked = ann.says("hello")
    await house.send("1001", "one", reply_to=str(asked.id))
    await house.send("1001", "two", reply_to="99999")
    assert [message.reply_to for message in ann.chat.replies] == [asked.id, None]


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (400, "Bad Request: can't parse entities: unsupported start tag", RefusedError),
        (413, "Request Entity Too Large", RefusedError),
        (403, "Forbidden: bot was kicked from the group chat", UnreachableError),
        (500, "Internal Server Error", TryLaterError),
        (502, "Bad Gateway", UnclearError),
        (401, "Unauthorized", TryLaterError),
    ],
)
async def test_refusals(house: TelegramHouse, ann: Person, status: int, words: str, kind: type[DeliveryError]) -> None:
    """Each refusal says what to do next."""
    house.server.fail_next("sendMessage", status, words)
    with pytest.raises(kind) as caught:
        await house.send("1001", "one")
    assert type(caught.value) is kind
    assert house.server.token not in str(caught.value)
    assert ann.chat.texts == []


async def test_nobody_to_write_to(house: TelegramHouse, ann: Person) -> None:
    """An unknown chat, one that blocked the bot and one that never started it are out of reach."""
    house.server.user("1002", started=False)
    ann.blocks_the_bot()
    for chat in ("77", "1001", "1002"):
        with pytest.raises(UnreachableError):
            await house.send(chat, "hello")


async def test_an_edit_of_what_is_gone(house: TelegramHouse, ann: Person) -> None:
    """There is nothing to change any more."""
    with pytest.raises(GoneError):
        await house.channel.edit(SentMessage(ANNS, "999"), MessageBody("x"))
    assert ann.chat.replies == []


async def test_too_long_is_refused_for_good(house: TelegramHouse, ann: Person) -> None:
    """A send and an edit over the limit are refused in two wordings that mean the same."""
    sent = await house.send("1001", "one")
    with pytest.raises(RefusedError):
        await house.channel.send(OutboundMessage(place=ANNS, body=MessageBody("🧪" * 2049), key="k"))
    with pytest.raises(RefusedError):
        await house.channel.edit(sent, MessageBody("a" * 4097))
    assert ann.chat.texts == ["one"]


async def test_a_moved_group_says_where_to(house: TelegramHouse, ann: Person) -> None:
    """A send to the old group names the new one."""
    group = house.server.group("Team")
    new = house.server.migrates(group, ann)
    with pytest.raises(MovedError) as caught:
        await house.send(group.id, "hello")
    assert caught.value.chat == new.id


async def test_a_limited_chat_gets_no_call_at_all(house: TelegramHouse, ann: Person) -> None:
    """In the window of a 429 nothing goes out to that chat, typing and prompts included; other chats go on."""
    ben = house.server.user("1002", name="Ben")
    house.server.fail_next("sendMessage", 429, retry_after=7)
    with pytest.raises(TryLaterError) as caught:
        await house.send("1001", "one")
    assert caught.value.retry_after == 7
    await house.channel.typing(ANNS)
    with pytest.raises(TryLaterError) as again:
        await house.channel.ask(ANNS, prompt(), "k")
    assert again.value.retry_after == pytest.approx(7, abs=3)
    await house.send("1002", "hello")
    assert house.server.violations == []
    assert len(house.server.of(chat=ann.chat)) == 1
    assert ben.chat.texts == ["hello"]


async def test_a_limited_chat_gets_calls_after_the_window(house: TelegramHouse, ann: Person) -> None:
    """When the window is over, the chat is as before."""
    house.server.fail_next("sendChatAction", 429, retry_after=7)
    await house.channel.typing(ANNS)
    with pytest.raises(TryLaterError):
        await house.send("1001", "one")
    house.clock.ahead += 8
    house.server.traffic.clock = house.clock.monotonic
    await house.send("1001", "two")
    assert ann.chat.texts == ["two"]


async def test_a_restart_does_not_forget_that_a_chat_is_limited(house: TelegramHouse, ann: Person) -> None:
    """A second process on the same state leaves the chat alone too, for what is left; a broken state is no pause."""
    house.server.fail_next("sendMessage", 429, retry_after=20)
    with pytest.raises(TryLaterError):
        await house.send("1001", "one")
    second = TelegramHouse(house.server, state=house.state)
    with pytest.raises(TryLaterError) as caught:
        await second.send("1001", "two")
    assert caught.value.retry_after == pytest.approx(20, abs=5)
    await second.close()
    assert house.server.violations == []
    assert len(house.server.of(chat=ann.chat)) == 1
    house.server.user("1002", name="Ben")
    for broken in ("{", "[]", '{"at": "yesterday", "left": {}}', '{"at": "2026-01-01T00:00:00+00:00", "left": [1]}'):
        third = TelegramHouse(house.server, state=MemoryState())
        third.state.values = dict.fromkeys(house.state.values, broken)
        await third.send("1002", "hello")
        await third.close()


async def test_a_connection_that_breaks_after_the_request_is_unclear(house: TelegramHouse, ann: Person) -> None:
    """The message may have been taken: only whoever decides about repeats knows what to do."""
    house.server.break_next("sendMessage", carried_out=True)
    with pytest.raises(UnclearError):
        await house.send("1001", "one")
    assert ann.chat.texts == ["one"]
    house.server.break_next("sendMessage", carried_out=False)
    with pytest.raises(UnclearError):
        await house.send("1001", "two")
    assert ann.chat.texts == ["one"]


async def test_a_server_that_is_not_there_took_nothing() -> None:
    """Without a connection nothing was sent, so that it can be sent later without a mark."""
    async with telegram_house() as house:
        house.server.user("1001")
        await house.server.__aexit__(None, None, None)
        with pytest.raises(TryLaterError):
            await house.send("1001", "one")


async def test_typing_never_fails(house: TelegramHouse, ann: Person) -> None:
    """What only decorates may fail as it likes."""
    for status in (400, 403, 500):
        house.server.fail_next("sendChatAction", status)
        await house.channel.typing(ANNS)
    house.server.break_next("sendChatAction")
    await house.channel.typing(ANNS)
    assert len(ann.chat.actions) == 1


async def test_a_file_goes_out_with_its_caption(house: TelegramHouse, ann: Person, tmp_path: Path) -> None:
    """A document keeps its name, whatever is in it, and carries the text with its entities."""
    path = tmp_path / "x"
    path.write_bytes(b"%PDF " + b"x" * 200_000)
    await house.send(
        "1001", "**the** report", file=OutboundFile(path=str(path), name='a;b".pdf', mime="application/pdf")
    )
    (message,) = ann.chat.replies
    assert (message.kind, message.text) == ("document", "the report")
    assert message.file is not None
    assert message.file.data == path.read_bytes()
    assert message.file.name == "a;b%22.pdf"
    assert [one["type"] for one in message.entities] == ["bold"]


async def test_a_picture_goes_out_as_a_photo_unless_telegram_finds_it_is_none(
    house: TelegramHouse, ann: Person, tmp_path: Path
) -> None:
    """What Telegram does not take as a photo arrives as a document."""
    path = tmp_path / "x.png"
    for data in (b"\x89PNG and so on", b"no picture"):
        path.write_bytes(data)
        await house.send("1001", "look", file=OutboundFile(path=str(path), name="x.png", mime="image/png"))
    assert [(one.kind, one.file.data if one.file else b"") for one in ann.chat.replies] == [
        ("photo", b"\x89PNG and so on"),
        ("document", b"no picture"),
    ]


async def test_a_caption_that_is_too_long_is_a_message_before_its_file(
    house: TelegramHouse, ann: Person, tmp_path: Path
) -> None:
    """Nothing of the text is lost."""
    path = tmp_path / "x.txt"
    path.write_bytes(b"data")
    await house.send("1001", "word " * 400, file=OutboundFile(path=str(path), name="x.txt"))
    assert [(one.kind, len(one.text)) for one in ann.chat.replies] == [("text", 1999), ("document", 0)]


async def test_a_file_that_is_not_there(house: TelegramHouse, ann: Person, tmp_path: Path) -> None:
    """It is refused without a call, and the error names no path."""
    with pytest.raises(RefusedError) as caught:
        await house.send("1001", "x", file=OutboundFile(path=str(tmp_path / "secret"), name="x"))
    assert "secret" not in str(caught.value)
    assert ann.chat.replies == []


async def test_a_prompt_and_its_settled_form(house: TelegramHouse, ann: Person) -> None:
    """The prompt has buttons; settled, the same message says what was decided and has none."""
    sent = await house.channel.ask(ANNS, prompt(), "k")
    assert ann.chat.prompt is not None
    assert ann.chat.prompt.buttons == ["Approve", "Deny", "Always in this chat"]
    await house.channel.settle(sent, prompt(is_open=False))
    (message,) = ann.chat.replies
    assert "Approved by Ann" in message.text
    assert message.buttons == []


async def test_a_long_request_is_a_file_before_its_prompt(house: TelegramHouse, ann: Person) -> None:
    """No button is shown before the whole request has arrived."""
    house.server.fail_next("sendDocument", 400, "Bad Request: file must be non-empty")
    with pytest.raises(RefusedError):
        await house.channel.ask(ANNS, prompt(attachment="all of it"), "k")
    assert ann.chat.replies == []
    await house.channel.ask(ANNS, prompt(attachment="all of it"), "k")
    document, asked = ann.chat.replies
    assert document.file is not None
    assert (document.file.name, document.file.data) == ("request-BCDF23.txt", b"all of it")
    assert asked.buttons


async def test_many_sends_at_once(house: TelegramHouse, ann: Person) -> None:
    """More sends than connections wait for a connection and all arrive."""
    await asyncio.gather(*(house.send("1001", f"n{number}") for number in range(40)))
    assert sorted(ann.chat.texts) == sorted(f"n{number}" for number in range(40))


async def test_a_marked_repeat_is_taken_as_it_is(house: TelegramHouse, ann: Person) -> None:
    """The mark moves the entities along, counted in UTF-16 units."""
    body = mark_repeat(house.channel.render("🧪 **bold** 🧪 `code`")[0])
    await house.channel.send(OutboundMessage(place=ANNS, body=body, key="k"))
    (message,) = ann.chat.replies
    assert message.text == REPEAT_MARK + "🧪 bold 🧪 code"
    units = message.text.encode("utf-16-le")
    shown = [
        units[one["offset"] * 2 : (one["offset"] + one["length"]) * 2].decode("utf-16-le") for one in message.entities
    ]
    assert shown == ["bold", "code"]


async def test_plain_is_the_same_text(house: TelegramHouse) -> None:
    """The last resort has nothing that could be refused."""
    body = house.channel.render("**bold** [link](https://example.com)")[0]
    assert house.channel.plain(body) == MessageBody(body.text)
    assert len(body.text) <= MESSAGE_UNITS


async def test_direct_places(house: TelegramHouse) -> None:
    """A person of this platform is reached in the chat with his own id; nobody else is."""
    assert house.channel.direct_place(Identity("telegram", "1001")) == ANNS
    assert house.channel.direct_place(Identity("console", "local")) is None
