"""A town on Discord."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from channels.discord import KIND
from tests.channels.discord.test_render import broken_rules, seen
from tests.channels.text.markdown_cases import Seen
from tests.channels.town import Told, Town
from tests.platforms.discord_server import DiscordServer, Interaction
from tests.platforms.model_server import ModelServer
from zerobot.core.channel import MessageBody

CALLS = {"send": "create_message", "edit": "edit_message"}


class DiscordTown(Town):
    """A server with one channel for the team."""

    native_commands = True

    def __init__(self, folder: Path, model: ModelServer, discord: DiscordServer) -> None:
        table = {"bot_token": discord.token, "api_base": discord.api_base, "allowed_users": ["2001", "2002"]}
        super().__init__(folder, model, KIND, table, "discord:1001")
        self.discord = discord
        self.olga = discord.user("1001", name="Olga", username="olga")
        self.uma = discord.user("2001", name="Uma", username="uma")
        self.vic = discord.user("2002", name="Vic")
        self.xen = discord.user("9001", name="Xen")
        self.team = discord.channel("team")

    def to_bot(self, text: str) -> str:
        """`@zero` becomes a mention at the double."""
        return f"@zero {text}"

    def thread(self) -> Any:
        """A thread of the team's channel."""
        return self.discord.thread(self.team)

    async def told(self, press: Interaction) -> Told:
        """Everything said to a presser is private."""
        await press.answered()
        return Told(press.text, press.is_private)

    def press_of(self, person: Any, message: Any, label: str) -> Callable[[], Any]:
        """The button's id is all that a press needs."""
        data = message.button(label)
        return lambda: person.sends_press(message, data)

    async def commands(self, person: Any, name: str, words: str, chat: Any) -> Told:
        """A slash command, once it is registered."""
        await self.discord.wait_for(lambda: self.discord.commands)
        return await self.told(person.commands(name, words, chat=chat))

    def tell_again(self, message: Any) -> None:
        """As after a session was taken up again."""
        self.discord.tell("MESSAGE_CREATE", message)

    def limit_next(self, what: str, seconds: float, chat: Any) -> None:
        """429 with `retry_after`."""
        self.discord.fail_next(CALLS[what], 429, retry_after=seconds, channel=chat)

    def break_next(self, what: str, chat: Any) -> None:
        """The connection is gone before the answer."""
        self.discord.break_next(CALLS[what], channel=chat)

    @property
    def refused(self) -> int:
        """By the buckets, and inside a pause."""
        return len(self.discord.traffic.refused) + len(self.discord.violations)

    def sends_file(self, person: Any, name: str, data: bytes, caption: str) -> Any:
        """In the direct chat."""
        return person.says(caption, files=[(name, data)])

    def files_of(self, chat: Any) -> list[tuple[str, bytes]]:
        """Of the bot's messages."""
        return [(file.name, file.data) for message in chat.replies for file in message.files]

    def place_of(self, chat: Any) -> str:
        """A direct chat is named by its person."""
        return f"@{chat.person['id']}" if chat.person else str(chat.id)

    def notified(self, chat: Any) -> list[str]:
        """Of the bot's messages and their edits."""
        return [each for message in chat.replies for each in message.pings]

    def documents(self, message: Any) -> list[str]:
        """They are in the prompt's own message."""
        return [file.data.decode() for file in message.files]

    def seen(self, body: MessageBody) -> Seen:
        """As the client shows it."""
        return seen(body)

    def broken_rules(self, body: MessageBody) -> Sequence[str]:
        """Length, blanks, marks that were not meant."""
        return broken_rules(body)
