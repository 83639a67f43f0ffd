"""The double refuses what Slack refuses, in Slack's words, to Slack's own client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.platforms.slack_server import SlackServer


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    """A workspace."""
    async with SlackServer() as slack:
        yield slack


async def refused(slack: SlackServer, method: str, *, token: str = "", **arguments: Any) -> tuple[str, int]:
    """Slack's word and status for a call that it refuses."""
    client = AsyncWebClient(token=token or slack.bot_token, base_url=slack.api_base)
    with pytest.raises(SlackApiError) as raised:
        await client.api_call(method, json=arguments)
    return raised.value.response["error"], raised.value.response.status_code


async def test_messages(slack: SlackServer) -> None:
    """Of nothing, too long, elsewhere, in blocks that are none."""
    general = slack.channel().id
    part = {"type": "rich_text_section", "elements": [{"type": "text", "text": "x" * 14_000}]}
    large = [{"type": "rich_text", "elements": [part]}]
    for arguments, word in (
        ({"channel": general, "text": " "}, "no_text"),
        ({"channel": general, "text": "x" * 40_001}, "msg_too_long"),
        ({"channel": "C9", "text": "x"}, "channel_not_found"),
        ({"channel": general, "text": "x", "blocks": [{"type": "table"}]}, "invalid_blocks"),
        ({"channel": general, "text": "x", "blocks": [{"type": "divider"}] * 51}, "invalid_blocks"),
        ({"channel": general, "text": "x", "blocks": large}, "msg_blocks_too_long"),
        ({"channel": general, "text": "x", "thread": "1.0"}, "invalid_arguments"),
    ):
        assert await refused(slack, "chat.postMessage", **arguments) == (word, 200)


def cell(text: str) -> dict[str, Any]:
    """A cell of a table."""
    return {"type": "rich_text", "elements": [section(text)]}


def section(text: str) -> dict[str, Any]:
    """A line of rich text."""
    return {"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}


def a_list(**changes: Any) -> dict[str, Any]:
    """A list of one item, but for the changes."""
    return {"type": "rich_text_list", "style": "bullet", "elements": [section("x")]} | changes


@pytest.mark.parametrize(
    ("blocks", "word"),
    [
        ([{"type": "table", "rows": []}], "invalid_blocks"),
        ([{"type": "table", "rows": [[cell("x")]] * 101}], "invalid_blocks"),
        ([{"type": "table", "rows": [[cell("x")] * 21]}], "invalid_blocks"),
        ([{"type": "table", "rows": [[cell("")]]}], "invalid_blocks"),
        ([{"type": "table", "rows": [[{"type": "raw_text", "text": ""}]]}], "invalid_blocks"),
        ([{"type": "table", "rows": [[section("x")]]}], "invalid_blocks"),
        ([{"type": "table", "rows": [[cell("x" * 5001)] * 2]}], "invalid_blocks"),
        ([{"type": "table", "rows": [[cell("x")]], "column_settings": [{"align": "middle"}]}], "invalid_blocks"),
        ([{"type": "table", "rows": [[cell("x")]], "caption": "x"}], "invalid_blocks"),
        ([{"type": "table", "rows": [[cell("x")]]}] * 2, "invalid_attachments"),
        ([{"type": "rich_text", "elements": [a_list(style="roman")]}], "invalid_blocks"),
        ([{"type": "rich_text", "elements": [a_list(indent=9)]}], "invalid_blocks"),
        ([{"type": "rich_text", "elements": [a_list(offset=-1)]}], "invalid_blocks"),
        ([{"type": "rich_text", "elements": [a_list(border=2)]}], "invalid_blocks"),
        ([{"type": "rich_text", "elements": [a_list(elements=[])]}], "invalid_blocks"),
        ([{"type": "rich_text", "elements": [a_list(elements=[a_list()])]}], "invalid_blocks"),
    ],
)
async def test_tables_and_lists(slack: SlackServer, blocks: list[Any], word: str) -> None:
    """Of a shape or a size that Slack does not take."""
    general = slack.channel().id
    assert await refused(slack, "chat.postMessage", channel=general, text="x", blocks=blocks) == (word, 200)


async def test_a_large_table_is_taken(slack: SlackServer) -> None:
    """Its cells take far more room than their words, which alone count."""
    client = AsyncWebClient(token=slack.bot_token, base_url=slack.api_base)
    table = {"type": "table", "rows": [[cell("x" * 5)] * 20] * 100, "column_settings": [{"align": "right"}]}
    sent = await client.chat_postMessage(channel=slack.channel().id, text="x", blocks=[table])
    assert sent["ok"]


async def test_changes(slack: SlackServer) -> None:
    """Of what is not there, of what others wrote, too long, of a stream that was not stopped."""
    ann = slack.user("U1001")
    foreign = ann.says("hello", tell="")
    client = AsyncWebClient(token=slack.bot_token, base_url=slack.api_base)
    own = await client.chat_postMessage(channel=ann.chat.id, text="hi")
    stream = await client.api_call(
        "chat.startStream", json={"channel": ann.chat.id, "thread_ts": foreign.ts, "markdown_text": "a"}
    )
    for ts, text, word in (
        ("1.0", "x", "message_not_found"),
        (foreign.ts, "x", "cant_update_message"),
        (own["ts"], "x" * 4001, "msg_too_long"),
        (stream["ts"], "x", "streaming_state_conflict"),
    ):
        assert await refused(slack, "chat.update", channel=ann.chat.id, ts=ts, text=text) == (word, 200)


async def test_tokens(slack: SlackServer) -> None:
    """Each is for its own calls."""
    assert await refused(slack, "auth.test", token="xoxb-wrong") == ("invalid_auth", 200)
    assert await refused(slack, "apps.connections.open") == ("not_allowed_token_type", 200)
    assert await refused(slack, "chat.guess") == ("unknown_method", 200)


async def test_rates(slack: SlackServer) -> None:
    """By method in the workspace, by channel for new messages; a pause that was asked for is kept, or noticed."""
    ann = slack.user("U1001")
    slack.traffic.methods["users.info"] = (2, 60.0)
    client = AsyncWebClient(token=slack.bot_token, base_url=slack.api_base)
    for _ in range(2):
        await client.users_info(user="U1001")
    assert await refused(slack, "users.info", user="U1001") == ("ratelimited", 429)
    for _ in range(10):
        await client.chat_postMessage(channel=ann.chat.id, text="hi")
    assert await refused(slack, "chat.postMessage", channel=ann.chat.id, text="hi") == ("ratelimited", 429)
    slack.fail_next("chat.postMessage", "ratelimited", retry_after=30.0, channel=ann.chat)
    slack.traffic.posts = (100, 1.0)
    for _ in range(2):
        await refused(slack, "chat.postMessage", channel=ann.chat.id, text="hi")
    assert len(slack.violations) == 1


async def test_a_thread_that_is_none_is_noticed(slack: SlackServer) -> None:
    """Slack itself says nothing, and shows the message at top level."""
    general = slack.channel()
    client = AsyncWebClient(token=slack.bot_token, base_url=slack.api_base)
    await client.chat_postMessage(channel=general.id, text="hi", thread_ts="1.0")
    assert general.replies[0].thread_ts is None
    assert slack.violations == [f"{general.id} 1.0"]
