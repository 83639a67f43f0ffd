"""Drafts as Slack's streamed messages, in the threads of direct chats."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.slack.render import render
from channels.slack.streams import STARTS, written
from tests.channels.slack.town import SlackTown
from tests.channels.text.strategies import markdown
from tests.platforms.model_script import holds, says
from tests.platforms.model_server import ModelServer
from tests.platforms.slack_api import streamed
from tests.platforms.slack_house import SlackHouse, slack_house
from tests.platforms.slack_server import Person, SlackServer
from tests.platforms.slack_text import read_blocks, unescape
from tests.platforms.slack_world import Message
from zerobot.core.channel import OutboundMessage, SentMessage
from zerobot.core.errors import UnclearError
from zerobot.core.places import Place

TEXT = "The first words, then a **bold** one, <!channel> & more, and so on to the end."
PLAIN = "The first words, then a bold one, <!channel> & more, and so on to the end."


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[SlackTown]:
    """Slack, people and a model."""
    async with ModelServer(models=("m-1",)) as model, SlackServer() as slack:
        yield SlackTown(tmp_path, model, slack)
        assert slack.violations == []
        assert slack.traffic.refused == []


def draft(house: SlackHouse, root: Message, text: str, *, key: str = "k1") -> OutboundMessage:
    """The beginning of a reply in a thread of a direct chat."""
    (body,) = house.channel.render(text)
    place = Place("slack", "U1001", root.ts)
    return OutboundMessage(place=place, body=body, key=key, reply_to=root.ts, growing=True)


async def grow(house: SlackHouse, sent: SentMessage, text: str) -> bool:
    """Go on with it."""
    return await house.channel.grow(sent, house.channel.render(text)[0])


async def finish(house: SlackHouse, sent: SentMessage, text: str) -> None:
    """Give it its final."""
    await house.channel.edit(sent, house.channel.render(text)[0])


async def test_a_draft_in_an_assistants_thread_is_a_stream(town: SlackTown) -> None:
    """It grows by what is appended; in the end it is the final text with its formatting, and no stream."""
    town.model.answers(holds(says(TEXT), after=9))
    root = town.slack.new_message(town.uma.chat, town.uma.id, "new chat")
    async with town.daemon() as daemon:
        town.uma.says("tell me", reply_to=root)
        await town.uma.chat.reply("The first words, ")
        town.model.release()
        await daemon.until("delivery.sent")
    (message,) = town.uma.chat.replies
    assert (message.text, message.streaming, message.pings) == (PLAIN, False, [])
    assert ("bold", "bold", "") in read_blocks(message.blocks).spans
    assert [len(town.slack.of(name)) for name in ("chat.startStream", "chat.stopStream", "chat.postMessage")] == [
        1,
        1,
        0,
    ]


async def test_a_stream_that_a_crash_left_open_is_finished(town: SlackTown) -> None:
    """Nothing is sent a second time."""
    town.model.answers(holds(says(TEXT), after=9), says("The answer."))
    root = town.slack.new_message(town.uma.chat, town.uma.id, "new chat")
    async with town.daemon() as daemon:
        town.uma.says("tell me", reply_to=root)
        await town.uma.chat.reply("The first words, ")
        await daemon.kill()
    async with town.daemon() as daemon:
        await daemon.until("delivery.sent")
    (message,) = town.uma.chat.replies
    assert (message.text, message.streaming) == ("The answer.", False)


@pytest.fixture
async def house() -> AsyncIterator[SlackHouse]:
    """An adapter that knows who it is."""
    async with slack_house() as house, house.running():
        yield house


@pytest.fixture
def root(house: SlackHouse) -> Message:
    """What a draft answers."""
    return house.server.user("U1001").says("tell me", tell="")


def ann(house: SlackHouse) -> Person:
    """Whose direct chat it is."""
    return house.server.people["U1001"]


async def test_only_what_two_texts_agree_on_is_appended(house: SlackHouse, root: Message) -> None:
    """Whole words; a text that only looked settled is not shown."""
    sent = await house.channel.send(draft(house, root, "The first wo"))
    seen = [ann(house).chat.replies[0].text]
    for text in ("The first words and `co", "The first words and `code` then"):
        await grow(house, sent, text)
        seen.append(ann(house).chat.replies[0].text)
    assert seen == ["The first ", "The first ", "The first words and "]
    assert house.channel.is_growing(sent)
    await finish(house, sent, "The first words and `code` then.")
    assert not house.channel.is_growing(sent)
    assert ann(house).chat.texts == ["The first words and code then."]


async def test_the_last_words_are_shown_although_nothing_follows(house: SlackHouse, root: Message) -> None:
    """A text that comes again as it was is settled."""
    sent = await house.channel.send(draft(house, root, "The first words"))
    assert ann(house).chat.texts == ["The first "]
    assert await grow(house, sent, "The first words")
    assert ann(house).chat.texts == ["The first words"]


async def test_behind_a_piece_that_ended_unclear_nothing_is_appended(house: SlackHouse, root: Message) -> None:
    """It may stand there: the draft goes on by edits, and no word comes twice."""
    sent = await house.channel.send(draft(house, root, "one two "))
    house.server.break_next("chat.appendStream")
    await grow(house, sent, "one two three four ")
    with pytest.raises(UnclearError):
        await grow(house, sent, "one two three four five ")
    await grow(house, sent, "one two three four five six ")
    assert ann(house).chat.texts == ["one two three four five six"]


async def test_a_text_that_changes_goes_on_by_edits(house: SlackHouse, root: Message) -> None:
    """A reset takes back what stands there: the stream is stopped, once."""
    sent = await house.channel.send(draft(house, root, "I will look it "))
    await grow(house, sent, "Something else ")
    await grow(house, sent, "Something else again")
    assert ann(house).chat.texts == ["Something else again"]
    assert len(house.server.of("chat.stopStream")) == 1


async def test_a_stream_that_slack_has_ended_goes_on_by_edits(house: SlackHouse, root: Message) -> None:
    """It does so after some minutes, and says so only when something is appended."""
    sent = await house.channel.send(draft(house, root, "one two "))
    ann(house).chat.replies[0].streaming = False
    await grow(house, sent, "one two three four ")
    await grow(house, sent, "one two three four five ")
    await finish(house, sent, "one two three four five six")
    assert ann(house).chat.texts == ["one two three four five six"]


async def test_without_streams_drafts_are_edits(house: SlackHouse, root: Message) -> None:
    """It is asked once; in channels and in the direct chat itself never."""
    house.server.api.has_streams = False
    for number in range(2):
        sent = await house.channel.send(draft(house, root, "one ", key=f"k{number}"))
        await grow(house, sent, "one two")
    assert ann(house).chat.texts == ["one two", "one two"]
    assert len(house.server.of("chat.startStream")) == 1


@pytest.mark.parametrize("has_streams", [True, False])
async def test_lists_and_tables_end_the_same_however_they_grew(
    house: SlackHouse,
    root: Message,
    has_streams: bool,  # noqa: FBT001 -- a parameter of the test
) -> None:
    """While it grows, a draft may be plain; its final is Slack's own list and table."""
    house.server.api.has_streams = has_streams
    whole = "Steps:\n\n1. one\n   - **inner**\n2. two\n\n| a | bb |\n|---|---|\n| 1 | 2 |\n| long cell | 4 |\n\nend"
    sent = await house.channel.send(draft(house, root, whole[:10]))
    for end in range(12, len(whole), 8):
        await grow(house, sent, whole[:end])
    await finish(house, sent, whole)
    (message,) = ann(house).chat.replies
    assert message.text == "Steps:\n1. one\n  ◦ inner\n2. two\na bb\n1 2\nlong cell 4\nend"
    assert [block["type"] for block in message.blocks] == ["rich_text", "table", "rich_text"]


async def test_finals_do_not_wait_for_streams(house: SlackHouse, root: Message) -> None:
    """More than a share of what Slack lets us begin in a minute are drafts by edits."""
    house.server.traffic.posts = (100, 10.0)
    for number in range(STARTS + 2):
        await house.channel.send(draft(house, root, f"answer {number} ", key=f"k{number}"))
    assert len(house.server.of("chat.startStream")) == STARTS
    assert len(house.server.of("chat.postMessage")) == 2


async def test_a_stream_whose_begin_ended_unclear_is_found(house: SlackHouse, root: Message) -> None:
    """It takes no key; but an older answer, or one that stands finished, is never taken for it."""
    first = await house.channel.send(draft(house, root, "an answer "))
    await finish(house, first, "an answer")
    question = ann(house).says("and?", reply_to=root, tell="")
    message = draft(house, question, "another answer ")
    assert await house.channel.find(message) is None
    house.server.break_next("chat.startStream")
    with pytest.raises(UnclearError):
        await house.channel.send(message)
    found = await house.channel.find(message)
    assert found is not None
    await finish(house, found, "another answer")
    assert ann(house).chat.texts == ["an answer", "another answer"]


@given(markdown, st.integers(min_value=1, max_value=40))
def test_no_text_means_anything_in_a_stream(text: str, step: int) -> None:
    """What is appended is read as it stands, whatever it holds."""
    for body in render(text)[:1]:
        for end in range(0, len(body.text), step):
            raw, pings = streamed({"markdown_text": written(body.text[:end])})
            assert (unescape(raw), pings) == (body.text[:end], [])
