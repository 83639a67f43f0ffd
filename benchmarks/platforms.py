"""The strict doubles of the platforms, as a crowd uses them. A new platform is one more class and its line below."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from channels.discord import KIND as DISCORD
from channels.slack import KIND as SLACK
from channels.telegram import KIND as TELEGRAM
from tests.platforms.discord_server import DiscordServer
from tests.platforms.slack_server import SlackServer
from tests.platforms.telegram_faults import Limits
from tests.platforms.telegram_server import TelegramServer
from zerobot.core.channel import ChannelKind

Person = Any
"""Somebody at a double: `chat` (with `id` and `texts`), `says(text)`."""
Call = Any
"""A call that a double has recorded: `outcome`, `at`, and what its platform names in its own way."""


class Platform(ABC):
    """A strict double, and what its records are called."""

    kind: ClassVar[ChannelKind]
    shows: ClassVar[frozenset[str]]
    """The calls by which people see text."""
    server: Any

    @property
    @abstractmethod
    def table(self) -> dict[str, object]:
        """The channel's table in the configuration."""

    def person(self, number: int) -> Person:
        """Add somebody who has a direct chat with the bot."""
        return self.server.user(str(number), name="Ann")

    @abstractmethod
    def keep_limits(self) -> None:
        """Refuse what is above the platform's rates."""

    def name_of(self, call: Call) -> str:
        """What was called."""
        return str(call.name)

    def chat_of(self, call: Call) -> str:
        """The chat that it was about."""
        return str(call.channel)

    def refuses_rate(self, call: Call) -> bool:
        """Whether it was one too many, or came inside a pause that the platform had asked for."""
        return bool(call.status == 429)


class Telegram(Platform):
    """Its Bot API; it bears bursts unless it is told to keep its limits."""

    kind = TELEGRAM
    shows = frozenset({"sendMessage", "editMessageText"})

    def __init__(self) -> None:
        self.server = TelegramServer()

    @property
    def table(self) -> dict[str, object]:
        """All may talk to it."""
        return {"bot_token": self.server.token, "api_base": self.server.api_base, "allowed_users": ["*"]}

    def keep_limits(self) -> None:
        """A call a second in a chat, 30 a second for the bot."""
        self.server.limit(Limits())

    def name_of(self, call: Call) -> str:
        """It names methods."""
        return str(call.method)

    def chat_of(self, call: Call) -> str:
        """It names chats."""
        return str(call.chat)


class Discord(Platform):
    """Its API and its gateway."""

    kind = DISCORD
    shows = frozenset({"create_message", "edit_message"})

    def __init__(self) -> None:
        self.server = DiscordServer()

    @property
    def table(self) -> dict[str, object]:
        """All may talk to it."""
        return {"bot_token": self.server.token, "api_base": self.server.api_base, "allowed_users": ["*"]}

    def keep_limits(self) -> None:
        """It always does."""


class Slack(Platform):
    """Its Web API and a socket."""

    kind = SLACK
    shows = frozenset({"chat.postMessage", "chat.update"})

    def __init__(self) -> None:
        self.server = SlackServer()

    @property
    def table(self) -> dict[str, object]:
        """All may talk to it."""
        return {
            "bot_token": self.server.bot_token,
            "app_token": self.server.app_token,
            "api_base": self.server.api_base,
            "allowed_users": ["*"],
        }

    def person(self, number: int) -> Person:
        """A person's id begins with a letter there."""
        return self.server.user(f"U{number}", name="Ann")

    def keep_limits(self) -> None:
        """It always does."""

    def refuses_rate(self, call: Call) -> bool:
        """It has words for refusals."""
        return bool(call.code == "ratelimited")


PLATFORMS: dict[str, type[Platform]] = {each.kind.name: each for each in (Telegram, Discord, Slack)}


def seconds_for(kind: ChannelKind, calls: int, share: float = 1.0) -> float:
    """How long so many calls, each in a chat of its own, take at most within a share of the bot's budget.

    What went out before has used up the first window.
    """
    count, seconds = kind.pace.bot_calls
    return math.ceil(calls / max(1, int(count * share))) * seconds
