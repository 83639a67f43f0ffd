"""The people, chats and messages that the Bot API's double knows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.platforms.signals import PATIENCE, Signal
from tests.platforms.telegram_text import Entity, Formatted, found_entities


@dataclass(slots=True)
class StoredFile:
    """A file that was sent by somebody."""

    id: str
    name: str
    mime: str
    data: bytes
    size: int
    """As the platform says; a test may let it say something else."""


@dataclass(slots=True, eq=False)
class Message:
    """A message as it stands now."""

    id: int
    chat: Chat
    sender: dict[str, Any]
    content: Formatted
    thread: int | None = None
    reply_to: int | None = None
    keyboard: list[list[dict[str, Any]]] = field(default_factory=list)
    file: StoredFile | None = None
    kind: str = "text"
    """`text`, `document`, `photo`, `voice`, ..."""
    album: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
    """Further fields, as the Bot API writes them."""
    history: list[str] = field(default_factory=list)
    """Each text that it had, the first one first."""
    deleted: bool = False
    preview_off: bool = False
    date: int = field(default_factory=lambda: int(time.time()))

    def __repr__(self) -> str:
        return f"<{self.id} {self.sender.get('first_name')}: {self.text!r} {self.buttons or ''}>"

    @property
    def text(self) -> str:
        """Its text, or its caption."""
        return self.content.text

    @property
    def entities(self) -> list[Entity]:
        """Its entities."""
        return self.content.as_entities()

    @property
    def edits(self) -> int:
        """How often its text was changed."""
        return len(self.history) - 1

    @property
    def buttons(self) -> list[str]:
        """The labels of its buttons."""
        return [button["text"] for row in self.keyboard for button in row]

    @property
    def from_bot(self) -> bool:
        """Whether the bot sent it."""
        return bool(self.sender.get("is_bot"))

    def as_json(self, *, with_reply: bool = True) -> dict[str, Any]:
        """The message as the Bot API writes it."""
        value: dict[str, Any] = {
            "message_id": self.id,
            "date": self.date,
            "chat": self.chat.as_json(),
            "from": self.sender,
            **self.extra,
        }
        if self.thread is not None:
            value["message_thread_id"] = self.thread
            value["is_topic_message"] = True
        words = ("text", "entities") if self.kind == "text" else ("caption", "caption_entities")
        if self.text:
            value[words[0]] = self.text
            if self.entities:
                value[words[1]] = self.entities
        if self.file is not None:
            value[self.kind] = _file_json(self.kind, self.file)
        if self.album:
            value["media_group_id"] = self.album
        if self.keyboard:
            value["reply_markup"] = {"inline_keyboard": self.keyboard}
        if self.edits > 0:
            value["edit_date"] = int(time.time())
        answered = self.chat.message(self.reply_to) if self.reply_to is not None and with_reply else None
        if answered is not None:
            value["reply_to_message"] = answered.as_json(with_reply=False)
        return value


def _file_json(kind: str, file: StoredFile) -> Any:
    base = {"file_id": file.id, "file_unique_id": f"u{file.id}", "file_size": file.size}
    if kind == "photo":
        small = {"file_id": f"small-{file.id}", "file_unique_id": "s", "file_size": 90, "width": 90, "height": 60}
        return [small, {**base, "width": 1280, "height": 853}]
    if kind in {"voice", "audio"}:
        return {**base, "duration": 2, "mime_type": file.mime}
    if kind == "video":
        return {**base, "duration": 2, "width": 640, "height": 480, "mime_type": file.mime, "file_name": file.name}
    return {**base, "mime_type": file.mime, "file_name": file.name}


@dataclass(slots=True, eq=False)
class Chat:
    """A direct chat, a group or a forum, with everything said in it."""

    id: str
    kind: str
    """`private`, `group` or `supergroup`."""
    title: str
    signal: Signal
    forum: bool = False
    topics: dict[int, str] = field(default_factory=dict)
    members: set[str] = field(default_factory=set)
    messages: list[Message] = field(default_factory=list)
    """All of them, also those that are deleted."""
    actions: list[tuple[str, int | None, float]] = field(default_factory=list)
    """Chat actions: (action, thread, monotonic time)."""
    closed: str = ""
    """Why the bot may not write here, in the words of the refusal 403."""
    moved_to: str = ""

    def __repr__(self) -> str:
        return f"<chat {self.id} {self.messages}>"

    def as_json(self) -> dict[str, Any]:
        """The chat as the Bot API writes it."""
        value: dict[str, Any] = {"id": int(self.id), "type": self.kind}
        value["first_name" if self.kind == "private" else "title"] = self.title
        if self.forum:
            value["is_forum"] = True
        return value

    def message(self, ident: int) -> Message | None:
        """A message by its id, unless it is deleted."""
        return next((one for one in self.messages if one.id == ident and not one.deleted), None)

    @property
    def replies(self) -> list[Message]:
        """What of the bot's is visible, in order."""
        return [one for one in self.messages if one.from_bot and not one.deleted]

    @property
    def texts(self) -> list[str]:
        """The texts of `replies`."""
        return [one.text for one in self.replies]

    @property
    def prompt(self) -> Message | None:
        """The newest message of the bot that has buttons."""
        return next((one for one in reversed(self.replies) if one.keyboard), None)

    async def wait_for(self, condition: Callable[[Chat], Any], patience: float = PATIENCE) -> None:
        """Wait until something holds in this chat.

        Args:
            condition: Gets the chat.
            patience: Seconds.
        """
        await self.signal.until(lambda: condition(self), lambda: self.messages, patience)

    async def reply(self, text: str = "", patience: float = PATIENCE) -> Message:
        """Wait for a reply of the bot that contains a text, and return the newest one."""

        def fitting() -> list[Message]:
            return [one for one in self.replies if text in one.text]

        await self.wait_for(lambda _: fitting(), patience)
        return fitting()[-1]


def content_of(text: str) -> Formatted:
    """A text as a person's client sends it, with the mentions and commands that Telegram finds."""
    return Formatted(text, tuple(tuple(sorted(entity.items())) for entity in found_entities(text)))
