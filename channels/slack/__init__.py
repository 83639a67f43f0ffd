"""Slack, by way of Socket Mode and the Web API: what the daemon must know before it loads the platform's library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from channels.slack.settings import SlackSettings
from zerobot.core.channel import Capabilities, Channel, ChannelKind, ChannelServices, Finding, Pace, Question

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["KIND", "SlackSettings"]


def _open(settings: BaseModel, services: ChannelServices) -> Channel:
    from channels.slack.adapter import open_channel  # noqa: PLC0415 -- loads the platform's library

    return open_channel(SlackSettings.model_validate(settings), services)


async def _check(settings: BaseModel, services: ChannelServices) -> AsyncIterator[Finding]:
    from channels.slack.check import check_channel  # noqa: PLC0415 -- loads the platform's library

    async for finding in check_channel(SlackSettings.model_validate(settings), services):
        yield finding


KIND = ChannelKind(
    name="slack",
    title="Slack",
    settings=SlackSettings,
    capabilities=Capabilities(
        edits=True,
        buttons=True,
        # A status is taken away after two minutes: https://docs.slack.dev/reference/methods/assistant.threads.setStatus
        typing_interval=60.0,
        groups=True,
        # https://docs.slack.dev/interactivity/implementing-slash-commands: one that is not an app's own is not sent.
        command_prefix="!",
    ),
    # https://docs.slack.dev/apis/web-api/rate-limits: about one message a second in a channel, short bursts allowed;
    # chat.update is of tier 3, at least 50 a minute in the whole workspace, here spread evenly over it.
    pace=Pace(draft_interval=1.2, chat_calls=(1, 1.0), bot_calls=(10, 12.0)),
    extra="slack",
    library="slack_sdk",
    questions=(
        Question(
            key="bot_token",
            prompt="Bot token (xoxb-…)",
            secret=True,
            help="On https://api.slack.com/apps make an app from deploy/slack-manifest.yaml, install it, and copy the "
            "Bot User OAuth Token of its page OAuth & Permissions.",
        ),
        Question(
            key="app_token",
            prompt="App-level token (xapp-…)",
            secret=True,
            help="On the app's page Basic Information, under App-Level Tokens, generate one with the scope "
            "connections:write.",
        ),
    ),
    open=_open,
    check=_check,
)
