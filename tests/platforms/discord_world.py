"""The servers, channels, people and messages that Discord's double knows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

from tests.platforms.signals import PATIENCE, Signal

# https://discord.com/developers/docs/resources/channel#channel-object-channel-types
TEXT, DIRECT, THREAD, FORUM = 0, 1, 11, 15
_EPOCH_MS = 1_420_070_400_000
_EPHEMERAL = 1 << 6
_LOADING = 1 << 7

Json = dict[str, Any]


class RefusalError(Exception):
    """A refusal of the API: https://discord.com/developers/docs/topics/opcodes-and-status-codes#json."""

    def __init__(self, status: int, code: int, message: str, **more: Any) -> None:
        super().__init__(f"{status} {code} {message}")
        self.status = status
        self.body: Json = {"message": message, "code": code, **more}
        self.headers: dict[str, str] = {}


def bad_form(what: str) -> RefusalError:
    """A refusal of what is in a request."""
    return RefusalError(400, 50035, "Invalid Form Body", errors={"what": what})


class Snowflakes:
    """Ids that grow with time: https://discord.com/developers/docs/reference#snowflakes."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def next(self, age: float = 0.0) -> str:
        """The next id, as of some seconds ago."""
        milliseconds = int((time.time() - age) * 1000) - _EPOCH_MS
        return str((milliseconds << 22) | (next(self._numbers) & 0x3FFFFF))


@dataclass(slots=True)
class StoredFile:
    """A file that was sent by somebody."""

    id: str
    name: str
    mime: str
    data: bytes
    size: int
    """As Discord says; a test may let it say something else."""
    url: str = ""
    status: int = 200
    """What a download is answered with."""

    def as_json(self) -> Json:
        """The attachment as the API writes it."""
        return {
            "id": self.id,
            "filename": self.name,
            "size": self.size,
            "url": self.url,
            "proxy_url": self.url,
            "content_type": self.mime,
        }


@dataclass(slots=True, eq=False)
class Message:
    """A message as it stands now."""

    id: str
    channel: Channel
    author: Json
    text: str
    kind: int = 0
    reply_to: Message | None = None
    components: list[Json] = field(default_factory=list)
    files: list[StoredFile] = field(default_factory=list)
    mentions: list[Json] = field(default_factory=list)
    mention_roles: list[str] = field(default_factory=list)
    nonce: str | None = None
    flags: int = 0
    pings: list[str] = field(default_factory=list)
    """Whom it notified: ids of people and roles, `everyone`."""
    history: list[str] = field(default_factory=list)
    """Each text that it had, the first one first."""
    deleted: bool = False
    answers: str = ""
    """The interaction that it answers."""
    sent_at: float = field(default_factory=time.time)
    extra: Json = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<{self.id} {self.author.get('username')}: {self.text!r} {self.buttons or ''}>"

    @property
    def from_bot(self) -> bool:
        """Whether the bot sent it."""
        return bool(self.author.get("bot"))

    @property
    def is_ephemeral(self) -> bool:
        """Whether only one person sees it."""
        return bool(self.flags & _EPHEMERAL)

    @property
    def is_loading(self) -> bool:
        """Whether it only says that an answer comes."""
        return bool(self.flags & _LOADING)

    @property
    def edits(self) -> int:
        """How often its text was changed."""
        return len(self.history) - 1

    @property
    def buttons(self) -> list[str]:
        """The labels of its buttons."""
        return [button["label"] for row in self.components for button in row["components"]]

    def button(self, label: str) -> str:
        """The custom id of a button."""
        found = [each for row in self.components for each in row["components"] if each["label"] == label]
        assert found, f"there is no button {label!r} in {self}"
        return str(found[0]["custom_id"])

    def as_json(self, *, with_reply: bool = True) -> Json:
        """The message as the API writes it, also in a history: without the server and the member."""
        value: Json = {
            "id": self.id,
            "type": self.kind,
            "channel_id": self.channel.id,
            "author": self.author,
            "content": self.text,
            "timestamp": datetime.fromtimestamp(self.sent_at, UTC).isoformat(),
            "edited_timestamp": datetime.now(UTC).isoformat() if self.edits > 0 else None,
            "tts": False,
            "mention_everyone": False,
            "mentions": self.mentions,
            "mention_roles": self.mention_roles,
            "attachments": [file.as_json() for file in self.files],
            "embeds": [],
            "components": self.components,
            "pinned": False,
            "flags": self.flags,
            **self.extra,
        }
        if self.reply_to is not None:
            value["message_reference"] = {"type": 0, "message_id": self.reply_to.id, "channel_id": self.channel.id}
            if with_reply:
                gone = self.reply_to.deleted
                value["referenced_message"] = None if gone else self.reply_to.as_json(with_reply=False)
        return value


@dataclass(slots=True, eq=False)
class Guild:
    """A server."""

    id: str
    name: str
    bot_roles: list[str] = field(default_factory=list)
    commands: list[Json] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Channel:
    """A text channel, a thread, a forum's post or a direct chat, with everything said in it."""

    id: str
    kind: int
    name: str
    signal: Signal
    guild: Guild | None = None
    parent: Channel | None = None
    person: Json | None = None
    """Of a direct chat."""
    messages: list[Message] = field(default_factory=list)
    """All of them, also those that are deleted; private answers too."""
    typing: list[float] = field(default_factory=list)
    """When the bot showed that it works: monotonic times."""
    refuses: RefusalError | None = None
    """What the bot is told that writes here."""

    def __repr__(self) -> str:
        return f"<channel {self.id} {self.messages}>"

    def as_json(self) -> Json:
        """The channel as the API writes it."""
        value: Json = {"id": self.id, "type": self.kind, "name": self.name}
        if self.guild is not None:
            value["guild_id"] = self.guild.id
        if self.parent is not None:
            value["parent_id"] = self.parent.id
        if self.person is not None:
            value["recipients"] = [self.person]
        return value

    def message(self, ident: str) -> Message | None:
        """A message by its id, unless it is deleted or private."""
        return next(
            (one for one in self.messages if one.id == ident and not one.deleted and not one.is_ephemeral), None
        )

    @property
    def replies(self) -> list[Message]:
        """What of the bot's everybody here sees, in order; not what only says that an answer comes."""
        return [
            one for one in self.messages if one.from_bot and not (one.deleted or one.is_ephemeral or one.is_loading)
        ]

    @property
    def texts(self) -> list[str]:
        """The texts of `replies`."""
        return [one.text for one in self.replies]

    @property
    def prompt(self) -> Message | None:
        """The newest message of the bot that has buttons."""
        return next((one for one in reversed(self.replies) if one.components), None)

    async def wait_for(self, condition: Callable[[Channel], Any], patience: float = PATIENCE) -> None:
        """Wait until something holds in this channel.

        Args:
            condition: Gets the channel.
            patience: Seconds.
        """
        await self.signal.until(lambda: condition(self), lambda: self.messages, patience)

    async def reply(self, text: str = "", patience: float = PATIENCE) -> Message:
        """Wait for a reply of the bot that contains a text, and return the newest one."""

        def fitting() -> list[Message]:
            return [one for one in self.replies if text in one.text]

        await self.wait_for(lambda _: fitting(), patience)
        return fitting()[-1]
