"""Telegram does what every adapter does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from channels.telegram import KIND
from tests.channels.conformance import Conformance
from tests.channels.telegram.test_render import broken_rules, seen
from tests.channels.text.markdown_cases import Seen
from tests.channels.town import Told, Town
from tests.platforms.model_server import ModelServer
from tests.platforms.telegram_server import Press, TelegramServer
from zerobot.core.channel import MessageBody

CALLS = {"send": "sendMessage", "edit": "editMessageText"}


class TelegramTown(Town):
    """A group for the team, and a forum."""

    deletes = False  # the Bot API tells of none
    tells_of_unclear = False

    def __init__(self, folder: Path, model: ModelServer, telegram: TelegramServer) -> None:
        table = {"bot_token": telegram.token, "api_base": telegram.api_base, "allowed_users": ["2001", "2002"]}
        super().__init__(folder, model, KIND, table, "telegram:1001")
        self.telegram = telegram
        self.olga = telegram.user("1001", name="Olga", username="olga")
        self.uma = telegram.user("2001", name="Uma", username="uma")
        self.vic = telegram.user("2002", name="Vic")
        self.xen = telegram.user("9001", name="Xen")
        self.team = telegram.group("Team")
        self.forum = telegram.group("Forum", forum=True, topics=[11, 22])
        self._topics = [11, 22]

    def to_bot(self, text: str) -> str:
        """By the bot's name."""
        return f"@zero_bot {text}"

    def thread(self) -> Any:
        """A topic of the forum."""
        return self._topics.pop(0)

    def says_in(self, person: Any, thread: Any, text: str) -> Any:
        """In a topic."""
        return person.says(text, chat=self.forum, topic=thread)

    def texts_in(self, thread: Any) -> list[str]:
        """Of a topic."""
        return [one.text for one in self.forum.replies if one.thread == thread]

    async def told(self, press: Press) -> Told:
        """The answer to a press is the presser's alone."""
        await press.answered()
        return Told(press.text, private=True)

    def press_of(self, person: Any, message: Any, label: str) -> Callable[[], Any]:
        """The button's data is all that a press needs."""
        data = next(each["callback_data"] for row in message.keyboard for each in row if each["text"] == label)
        return lambda: person.sends_press(message, data)

    def tell_again(self, message: Any) -> None:
        """Under another update's id."""
        self.telegram.push("message", message.as_json())

    def limit_next(self, what: str, seconds: float, chat: Any) -> None:
        """429 with `retry_after`."""
        self.telegram.fail_next(CALLS[what], 429, retry_after=int(seconds), chat=chat)

    def break_next(self, what: str, chat: Any) -> None:
        """The connection is gone before the answer."""
        self.telegram.break_next(CALLS[what], chat=chat)

    @property
    def refused(self) -> int:
        """Inside a pause that was asked for."""
        return len(self.telegram.violations)

    def sends_file(self, person: Any, name: str, data: bytes, caption: str) -> Any:
        """In the direct chat."""
        return person.sends_file(name, data, caption=caption)

    def files_of(self, chat: Any) -> list[tuple[str, bytes]]:
        """Of the bot's messages."""
        return [(one.file.name, one.file.data) for one in chat.replies if one.file is not None]

    def place_of(self, chat: Any) -> str:
        """Its id."""
        return str(chat.id)

    def notified(self, chat: Any) -> list[str]:
        """Mentions that the bot's messages carry."""
        kinds = {"mention", "text_mention"}
        return [str(entity) for one in chat.replies for entity in one.entities if entity["type"] in kinds]

    def documents(self, message: Any) -> list[str]:
        """They stand right before the prompt."""
        return [one.file.data.decode() for one in message.chat.replies if one.file is not None]

    def seen(self, body: MessageBody) -> Seen:
        """Text and entities."""
        return seen(body)

    def broken_rules(self, body: MessageBody) -> Sequence[str]:
        """Telegram's rules of texts and entities."""
        return broken_rules(body)


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[TelegramTown]:
    """Telegram, people and a model."""
    async with ModelServer(models=("m-1",)) as model, TelegramServer() as telegram:
        yield TelegramTown(tmp_path, model, telegram)
        assert telegram.violations == []


class TestTelegram(Conformance):
    """The suite."""
