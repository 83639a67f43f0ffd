"""What goes out: messages, edits, files, and what their failures mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from channels.slack.faults import as_delivery_error
from channels.slack.web import LinkError, WebError
from tests.platforms.slack_house import SlackHouse
from tests.platforms.slack_server import Person
from tests.platforms.slack_world import Channel
from zerobot.core.channel import MessageBody, OutboundFile, OutboundMessage, SentMessage
from zerobot.core.errors import (
    DeliveryError,
    GoneError,
    RefusedError,
    TryLaterError,
    UnclearError,
    UnreachableError,
)
from zerobot.core.places import Place


async def test_a_message_is_sent_into_its_thread(house: SlackHouse, ann: Person, team: Channel) -> None:
    """With blocks, with its text alone for who reads without, and without anything that unfolds by itself."""
    post = ann.says("@zero hello", chat=team)
    await house.send(team.id, "**so** <!channel> https://example.test/", thread=post.ts)
    (reply,) = team.replies
    assert (reply.thread_ts, reply.text) == (post.ts, "so <!channel> https://example.test/")
    (call,) = house.server.of("chat.postMessage")
    assert call.params["text"] == "so &lt;!channel&gt; https://example.test/"
    assert (call.params["unfurl_links"], call.params["unfurl_media"], call.params["parse"]) == (False, False, "none")
    assert reply.pings == []


async def test_a_direct_chat_is_opened_once(house: SlackHouse, ann: Person) -> None:
    """It is named by its person; Slack's own id of it is asked for when it is needed."""
    await house.send("U1001", "one")
    await house.send("U1001", "two", key="k2")
    assert ann.chat.texts == ["one", "two"]
    assert len(house.server.of("conversations.open")) == 1


async def test_the_plain_form_has_no_blocks(house: SlackHouse, ann: Person) -> None:
    """For when Slack refuses them; nothing in it is read as a mark."""
    (body,) = house.channel.render("**bold** *it*")
    sent = await house.channel.send(
        OutboundMessage(place=Place("slack", "U1001"), body=house.channel.plain(body), key="k1")
    )
    (call,) = house.server.of("chat.postMessage")
    assert (call.params.get("blocks"), call.params["mrkdwn"]) == (None, False)
    await house.channel.edit(sent, MessageBody("less"))
    assert ann.chat.texts == ["less"]


async def test_a_message_is_found_by_its_key(house: SlackHouse, ann: Person, team: Channel) -> None:
    """In chats and in threads; what is not there is not found."""
    post = ann.says("@zero hello", chat=team)
    for chat, thread in (("U1001", None), (team.id, post.ts)):
        house.server.break_next("chat.postMessage")
        message = OutboundMessage(
            place=Place("slack", chat, thread), body=house.channel.render("hi")[0], key=f"key {chat}"
        )
        assert await house.channel.find(message) is None
        with pytest.raises(UnclearError):
            await house.channel.send(message)
        found = await house.channel.find(message)
        assert found is not None
        assert found.id in {ann.chat.messages[-1].ts, team.messages[-1].ts}


async def test_a_call_whose_answer_is_lost_is_made_once(house: SlackHouse, ann: Person) -> None:
    """The library would make it again, and the message would stand there twice."""
    house.server.break_next("chat.postMessage")
    with pytest.raises(UnclearError):
        await house.send("U1001", "once")
    assert ann.chat.texts == ["once"]


async def test_a_chat_that_is_limited_gets_no_call(house: SlackHouse, ann: Person) -> None:
    """Of any kind, before the time is over, also after a restart."""
    sent = await house.send("U1001", "draft")
    house.server.fail_next("chat.update", "ratelimited", retry_after=30.0, channel=ann.chat)
    (body,) = house.channel.render("more")
    with pytest.raises(TryLaterError) as limited:
        await house.channel.edit(sent, body)
    assert limited.value.retry_after == 30.0
    await house.channel.typing(Place("slack", "U1001", "1.0"))
    again = SlackHouse(house.server, state=house.state)
    with pytest.raises(TryLaterError):
        await again.channel.edit(sent, body)
    assert len(house.server.of("chat.update", "assistant.threads.setStatus")) == 1
    await again.close()


async def test_what_is_gone_is_said_to_be_gone(house: SlackHouse, ann: Person) -> None:
    """An edit of it is an error, a deletion of it is none."""
    sent = await house.send("U1001", "hello")
    await house.channel.delete(sent)
    with pytest.raises(GoneError):
        await house.channel.edit(sent, house.channel.render("more")[0])
    await house.channel.delete(sent)
    assert ann.chat.texts == []


async def test_the_status_is_shown_in_threads(house: SlackHouse, ann: Person, team: Channel) -> None:
    """Slack has none elsewhere; whatever goes wrong is no error."""
    post = ann.says("@zero hello", chat=team)
    await house.channel.typing(Place("slack", team.id, post.ts))
    await house.channel.typing(Place("slack", team.id, "1.0"))
    await house.channel.typing(Place("slack", "U1001"))
    assert [thread for thread, _ in team.statuses] == [post.ts]


async def test_a_file_is_one_message_with_its_words(house: SlackHouse, ann: Person, tmp_path: Path) -> None:
    """By the upload of three calls; only the last one shows it."""
    path = tmp_path / "out.txt"
    path.write_bytes(b"text")
    file = OutboundFile(path=str(path), name="result & co.txt", mime="text/plain")
    sent = await house.send("U1001", "**here** it is", file=file)
    (message,) = ann.chat.replies
    assert ([one.data for one in message.files], message.text) == ([b"text"], "here it is")
    with pytest.raises(GoneError):
        await house.channel.edit(sent, house.channel.render("else")[0])
    await house.channel.delete(sent)


async def test_a_file_whose_sending_broke(house: SlackHouse, ann: Person, tmp_path: Path) -> None:
    """Before it was shown to anybody it is surely not there; after that it is found by its name."""
    path = tmp_path / "out.txt"
    path.write_bytes(b"text")
    question = ann.says("a file, please", tell="")
    message = OutboundMessage(
        place=Place("slack", "U1001"),
        body=house.channel.render("here")[0],
        key="k1",
        reply_to=question.ts,
        file=OutboundFile(path=str(path), name="out.txt"),
    )
    async with house.running():
        house.server.break_next("files.getUploadURLExternal")
        with pytest.raises(TryLaterError):
            await house.channel.send(message)
        assert await house.channel.find(message) is None
        house.server.break_next("files.completeUploadExternal")
        with pytest.raises(UnclearError):
            await house.channel.send(message)
        assert await house.channel.find(message) is not None
    assert len(ann.chat.replies) == 1


async def test_a_file_that_cannot_be_sent_leaves_nothing_behind(house: SlackHouse, ann: Person, tmp_path: Path) -> None:
    """Too large, empty, or not there."""
    path = tmp_path / "out.bin"
    path.write_bytes(b"0123456789")
    house.server.api.file_bytes = 5
    with pytest.raises(RefusedError):
        await house.send("U1001", "here", file=OutboundFile(path=str(path), name="a"))
    with pytest.raises(RefusedError):
        await house.send("U1001", "here", file=OutboundFile(path=str(tmp_path / "none"), name="a"))
    assert ann.chat.replies == []


@pytest.mark.parametrize(
    ("error", "call", "expected"),
    [
        (WebError("message_not_found", 200), "chat.update", GoneError),
        (WebError("channel_not_found", 200), "chat.postMessage", UnreachableError),
        (WebError("is_archived", 200), "chat.postMessage", UnreachableError),
        (WebError("invalid_blocks", 200), "chat.postMessage", RefusedError),
        (WebError("msg_too_long", 200), "chat.update", RefusedError),
        (WebError("token_revoked", 200), "chat.postMessage", TryLaterError),
        (WebError("internal_error", 200), "chat.postMessage", UnclearError),
        (WebError("status_502", 502), "chat.postMessage", UnclearError),
        (WebError("service_unavailable", 503), "chat.postMessage", TryLaterError),
        (LinkError(OSError(), never_sent=True), "chat.postMessage", TryLaterError),
        (LinkError(OSError(), never_sent=False), "chat.postMessage", UnclearError),
    ],
    ids=str,
)
def test_what_a_refusal_means(error: Any, call: str, expected: type[DeliveryError]) -> None:
    """For whoever sends."""
    assert type(as_delivery_error(error, call)) is expected


def test_whom_a_limit_concerns() -> None:
    """One of new messages the channel, every other the whole workspace."""
    error = WebError("ratelimited", 429, retry_after=7.0)
    post, update = as_delivery_error(error, "chat.postMessage"), as_delivery_error(error, "chat.update")
    assert isinstance(post, TryLaterError)
    assert isinstance(update, TryLaterError)
    assert (post.retry_after, post.whole_bot, update.whole_bot) == (7.0, False, True)


async def test_a_probe_asks_for_nothing(house: SlackHouse) -> None:
    """It says whether Slack answers."""
    await house.channel.probe()
    house.server.fail_next("api.test", "", 503)
    with pytest.raises(DeliveryError):
        await house.channel.probe()


async def test_an_edit_keeps_the_key(house: SlackHouse, ann: Person) -> None:
    """A draft that was edited is still found."""
    sent = await house.send("U1001", "draft")
    await house.channel.edit(sent, house.channel.render("more")[0])
    message = OutboundMessage(place=sent.place, body=house.channel.render("more")[0], key="k1")
    assert await house.channel.find(message) == SentMessage(sent.place, sent.id)
