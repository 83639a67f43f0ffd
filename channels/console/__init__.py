"""The terminal as a platform: what the daemon must know before it loads the adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from channels.console.settings import ConsoleSettings
from zerobot.core.channel import Capabilities, Channel, ChannelKind, ChannelServices, Finding, Pace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pydantic import BaseModel

__all__ = ["KIND", "ConsoleSettings"]


def _open(settings: BaseModel, services: ChannelServices) -> Channel:
    from channels.console.adapter import ConsoleChannel  # noqa: PLC0415 -- loads the Markdown library

    ConsoleSettings.model_validate(settings)
    return ConsoleChannel(services)


async def _check(settings: BaseModel, services: ChannelServices) -> AsyncIterator[Finding]:
    ConsoleSettings.model_validate(settings)
    yield Finding("ok", services.name, "the terminal needs no credentials")


KIND = ChannelKind(
    name="console",
    title="Terminal",
    settings=ConsoleSettings,
    capabilities=Capabilities(edits=True, buttons=True, typing_interval=1.0),
    # Nobody limits us; a terminal that is drawn more often than some 20 times a second only flickers.
    pace=Pace(draft_interval=0.05, chat_calls=(200, 1.0), bot_calls=(1000, 1.0)),
    open=_open,
    check=_check,
)
