"""Slack's double, Olga, Uma, Vic and Xen, and the daemon beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from channels.slack import KIND
from tests.channels.slack.test_render import broken_rules, seen
from tests.channels.text.markdown_cases import Seen
from tests.channels.town import Told, Town
from tests.platforms.model_server import ModelServer
from tests.platforms.slack_server import Press, SlackServer
from zerobot.core.channel import MessageBody

CALLS = {"send": "chat.postMessage", "edit": "chat.update"}


class SlackTown(Town):
    """A workspace with one channel for the team."""

    native_commands = True

    def __init__(self, folder: Path, model: ModelServer, slack: SlackServer) -> None:
        table = {
            "bot_token": slack.bot_token,
            "app_token": slack.app_token,
            "api_base": slack.api_base,
            "allowed_users": ["U2001", f"{slack.team}/U2002"],
        }
        super().__init__(folder, model, KIND, table, "slack:U1001")
        self.slack = slack
        self.olga = slack.user("U1001", name="Olga")
        self.uma = slack.user("U2001", name="Uma")
        self.vic = slack.user("U2002", name="Vic")
        self.xen = slack.user("U9001", name="Xen")
        self.team = slack.channel("team")

    def to_bot(self, text: str) -> str:
        """`@zero` becomes a mention at the double."""
        return f"@zero {text}"

    def thread(self) -> Any:
        """A thread that people have begun in the team's channel."""
        return self.slack.new_message(self.team, self.vic.id, "a subject")

    def says_in(self, person: Any, thread: Any, text: str) -> Any:
        """In a thread."""
        return person.says(text, chat=self.team, reply_to=thread)

    def texts_in(self, thread: Any) -> list[str]:
        """Of a thread."""
        return [one.text for one in self.team.thread(thread.ts) if one.from_bot]

    async def told(self, press: Press) -> Told:
        """Whoever pressed is told alone."""
        await press.answered()
        return Told(press.text, private=not press.in_public)

    def press_of(self, person: Any, message: Any, label: str) -> Callable[[], Any]:
        """The button's ids are all that a press needs."""
        button = message.button(label)
        return lambda: person.sends_press(message, button["action_id"], button["value"])

    async def commands(self, person: Any, name: str, words: str, chat: Any) -> Told:
        """`/zerobot NAME`."""
        return await self.told(person.commands(f"{name} {words}".strip(), chat=chat))

    def tell_again(self, message: Any) -> None:
        """As after an acknowledgement that was lost."""
        self.slack.tell("message", message)

    def limit_next(self, what: str, seconds: float, chat: Any) -> None:
        """429 with `Retry-After`."""
        self.slack.fail_next(CALLS[what], "ratelimited", retry_after=seconds, channel=chat)

    def break_next(self, what: str, chat: Any) -> None:
        """The connection is gone before the answer."""
        self.slack.break_next(CALLS[what], channel=chat)

    @property
    def refused(self) -> int:
        """By the tiers, and inside a pause."""
        return len(self.slack.traffic.refused) + len(self.slack.violations)

    def sends_file(self, person: Any, name: str, data: bytes, caption: str) -> Any:
        """In the direct chat."""
        return person.says(caption, files=[(name, data)])

    def files_of(self, chat: Any) -> list[tuple[str, bytes]]:
        """Of the bot's messages."""
        return [(file.name, file.data) for message in chat.replies for file in message.files]

    def place_of(self, chat: Any) -> str:
        """A direct chat is named by its person."""
        return str(chat.person or chat.id)

    def notified(self, chat: Any) -> list[str]:
        """Of the bot's messages and their edits."""
        return [each for message in chat.replies for each in message.pings]

    def documents(self, message: Any) -> list[str]:
        """They stand right before the prompt."""
        return [file.data.decode() for one in message.channel.replies for file in one.files]

    def seen(self, body: MessageBody) -> Seen:
        """As the client shows it."""
        return seen(body)

    def broken_rules(self, body: MessageBody) -> Sequence[str]:
        """Lengths, blocks."""
        return broken_rules(body)
