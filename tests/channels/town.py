"""A town: a platform's double with people and places, and the daemon beside it. What every adapter is tried on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.channels.text.markdown_cases import Seen
from tests.e2e.daemon_stage import DaemonStage
from tests.platforms.adapter_parts import COMMANDS, HastyClock, Lines
from tests.platforms.model_script import calls
from tests.platforms.model_server import ModelServer
from zerobot.core.channel import Channel, ChannelKind, ChannelServices, MessageBody
from zerobot.testing.intake import MemoryState

PATIENCE = 30.0

Message = Any
"""A message at the double: `text`, `edits`, `buttons`, `from_bot`."""
Chat = Any
"""A chat at the double: `texts`, `replies`, `prompt`, `reply(text)`, `wait_for(condition)`."""
Person = Any
"""Somebody at the double: `chat`, `says(text, chat=, reply_to=)`, `edits(message, text)`."""


@dataclass(frozen=True, slots=True)
class Told:
    """What somebody was told who pressed or commanded."""

    text: str
    private: bool
    """Whether nobody else saw it."""


class Town(DaemonStage, ABC):
    """Olga is the operator, Uma and Vic may talk to the bot, Xen is a stranger; the team has a chat.

    Args:
        folder: The test's own.
        model: Answers from its script.
        kind: The adapter's kind.
        table: The channel's table.
        operator: Olga, as the configuration names her.
    """

    deletes = True
    """Whether the platform tells of deletions."""
    native_commands = False
    """Whether commands are something of the platform's own, beside being texts."""
    corrects = True
    """Whether people can change what they wrote."""
    splits = True
    """Whether a long text becomes several messages."""
    tells_of_unclear = True
    """Whether the platform tells if it has taken a message whose sending broke off."""
    tells_strangers = True
    """Whether somebody who may not talk to the bot hears so when he presses a button."""

    olga: Person
    uma: Person
    vic: Person
    xen: Person
    team: Chat

    def __init__(
        self, folder: Path, model: ModelServer, kind: ChannelKind, table: dict[str, Any], operator: str
    ) -> None:
        super().__init__(folder, model)
        self.kind = kind
        self.operator = operator
        self.table = f"channels.{kind.name}"
        self.tables |= {self.table: table, "operators": {"users": [operator]}}

    # What differs from platform to platform.

    @abstractmethod
    def to_bot(self, text: str) -> str:
        """A text that mentions the bot."""

    @abstractmethod
    def thread(self) -> Chat:
        """A thread or topic beside others; people write in it with `says_in`."""

    def says_in(self, person: Person, thread: Chat, text: str) -> Message:
        """Somebody writes in a thread."""
        return person.says(text, chat=thread)

    def texts_in(self, thread: Chat) -> list[str]:
        """What the bot wrote in a thread."""
        return list(thread.texts)

    @abstractmethod
    async def told(self, press: Any) -> Told:
        """Wait for the answer to a press."""

    @abstractmethod
    def press_of(self, person: Person, message: Message, label: str) -> Callable[[], Any]:
        """A press of a button as it is now, to be made later: an old client still shows it."""

    async def commands(self, person: Person, name: str, words: str, chat: Chat) -> Told:
        """Use a command of the platform's own, and wait for its answer.

        Raises:
            NotImplementedError: There is none.
        """
        raise NotImplementedError

    @abstractmethod
    def tell_again(self, message: Message) -> None:
        """The platform delivers a message once more."""

    @abstractmethod
    def limit_next(self, what: str, seconds: float, chat: Chat) -> None:
        """Refuse the next `send` or `edit` in a chat for some seconds."""

    @abstractmethod
    def break_next(self, what: str, chat: Chat) -> None:
        """Carry the next `send` or `edit` in a chat out, and lose the answer."""

    @property
    @abstractmethod
    def refused(self) -> int:
        """Calls that were one too many for a rate of the platform, or came inside a pause that it had asked for."""

    @abstractmethod
    def sends_file(self, person: Person, name: str, data: bytes, caption: str) -> Message:
        """Somebody sends a file to the bot."""

    @abstractmethod
    def files_of(self, chat: Chat) -> list[tuple[str, bytes]]:
        """The files that the bot sent into a chat: name, bytes."""

    @abstractmethod
    def place_of(self, chat: Chat) -> str:
        """The chat in a `Place`."""

    @abstractmethod
    def notified(self, chat: Chat) -> list[str]:
        """Whom the bot's messages in a chat have notified."""

    @abstractmethod
    def documents(self, message: Message) -> list[str]:
        """The texts of the files that came with a prompt."""

    @abstractmethod
    def seen(self, body: MessageBody) -> Seen:
        """A message as its reader gets it."""

    @abstractmethod
    def broken_rules(self, body: MessageBody) -> Sequence[str]:
        """What the platform would refuse or change of a message."""

    # What all have in common.

    def channel(self, **settings: Any) -> tuple[Channel, ChannelServices]:
        """The adapter alone, in this process; whoever asked closes it."""
        services = ChannelServices(
            name=self.kind.name,
            http=httpx.AsyncClient,
            escape=str,
            safe_name=str,
            clock=HastyClock(),
            log=Lines(),
            commands=COMMANDS,
            state=MemoryState(),
        )
        table = self.kind.settings.model_validate(self.tables[self.table] | settings)
        return self.kind.open(table, services), services

    async def prompt(self, chat: Chat) -> Message:
        """Wait for an approval prompt that is open in a chat."""
        await chat.wait_for(lambda chat: chat.prompt)
        return chat.prompt

    async def asks(self, person: Person, command: str = "touch made") -> Message:
        """Let somebody ask in the team's chat for a command that needs an approval; returns the prompt."""
        self.model.answers(calls("shell", id="c1", command=command))
        person.says(self.to_bot("do it"), chat=self.team)
        return await self.prompt(self.team)
