"""The channels, people, messages and files that Slack's double knows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.platforms.signals import PATIENCE, Signal
from tests.platforms.slack_text import read_blocks, unescape

DIRECT, CHANNEL, GROUP_DIRECT = "im", "channel", "mpim"

Json = dict[str, Any]


class RefusalError(Exception):
    """A refusal of the Web API: most come with status 200."""

    def __init__(self, code: str, status: int = 200, *, retry_after: float | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.status = status
        self.retry_after = retry_after


class Stamps:
    """Each message's `ts` is its id, and grows."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def next(self, age: float = 0.0) -> str:
        """The next one, as of some seconds ago."""
        return f"{int(time.time() - age)}.{next(self._numbers):06d}"


@dataclass(slots=True, eq=False)
class StoredFile:
    """A file that was sent by somebody."""

    id: str
    name: str
    mime: str
    data: bytes
    url: str = ""
    size: int = 0
    """As Slack says; a test may let it say something else."""
    status: int = 200
    """What a download is answered with."""
    extra: Json = field(default_factory=dict)

    def as_json(self) -> Json:
        """The file as the API writes it."""
        value: Json = {
            "id": self.id,
            "name": self.name,
            "title": self.name,
            "mimetype": self.mime,
            "size": self.size,
            "mode": "hosted",
            "is_external": False,
            "url_private": self.url,
            "url_private_download": self.url,
        }
        return value | self.extra


@dataclass(slots=True, eq=False)
class Message:
    """A message as it stands now."""

    ts: str
    channel: Channel
    user: str
    raw: str
    """Its text as the API writes it."""
    from_bot: bool = False
    thread_ts: str | None = None
    blocks: list[Json] = field(default_factory=list)
    files: list[StoredFile] = field(default_factory=list)
    metadata: Json | None = None
    pings: list[str] = field(default_factory=list)
    """Whom it notified: ids of people and groups, `channel`, `here`, `everyone`."""
    history: list[str] = field(default_factory=list)
    """Each text that people saw in it, the first one first."""
    deleted: bool = False
    streaming: bool = False
    updated: bool = False
    """Whether it was edited; what a stream appends is no edit."""
    extra: Json = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<{self.ts} {self.user}: {self.text!r} {self.buttons or ''}>"

    @property
    def text(self) -> str:
        """What people see."""
        return read_blocks(self.blocks).text if self.blocks else unescape(self.raw)

    @property
    def edits(self) -> int:
        """How often it was changed."""
        return len(self.history) - 1

    @property
    def buttons(self) -> list[str]:
        """The labels of its buttons."""
        return [each["text"]["text"] for each in self._elements()]

    def button(self, label: str) -> Json:
        """A button."""
        found = [each for each in self._elements() if each["text"]["text"] == label]
        assert found, f"there is no button {label!r} in {self}"
        return found[0]

    def _elements(self) -> list[Json]:
        return [each for block in self.blocks if block["type"] == "actions" for each in block["elements"]]

    def as_json(self, *, with_metadata: bool = True) -> Json:
        """The message as the API writes it."""
        value: Json = {"type": "message", "ts": self.ts, "user": self.user, "text": self.raw, "team": self.channel.team}
        if self.from_bot:
            value |= {"bot_id": "B0BOT", "app_id": "A0APP"}
        if self.blocks:
            value["blocks"] = self.blocks
        if self.files:
            value |= {"files": [file.as_json() for file in self.files], "subtype": "file_share"}
        if self.updated:
            value["edited"] = {"user": self.user, "ts": self.ts}
        if self.metadata is not None and with_metadata:
            value["metadata"] = self.metadata
        if self.thread_ts is not None:
            root = self.channel.message(self.thread_ts)
            value |= {"thread_ts": self.thread_ts, "parent_user_id": root.user if root else ""}
        else:
            answers = [one for one in self.channel.messages if one.thread_ts == self.ts and not one.deleted]
            if answers:
                value |= {"reply_count": len(answers), "thread_ts": self.ts}
        return value | self.extra


@dataclass(frozen=True, slots=True)
class Private:
    """Something that only one person was told."""

    user: str
    text: str
    thread_ts: str | None


@dataclass(slots=True, eq=False)
class Channel:
    """A channel or a direct chat, with everything said in it."""

    id: str
    kind: str
    name: str
    team: str
    signal: Signal
    person: str = ""
    """Of a direct chat."""
    messages: list[Message] = field(default_factory=list)
    """All of them, also those that are deleted."""
    private: list[Private] = field(default_factory=list)
    statuses: list[tuple[str, str]] = field(default_factory=list)
    """(thread, status) that the bot has set."""
    refuses: str = ""
    """The word with which the bot's calls about it are refused."""

    def __repr__(self) -> str:
        return f"<channel {self.id} {self.messages} {self.private}>"

    def message(self, ts: str) -> Message | None:
        """A message by its id, unless it is deleted."""
        return next((one for one in self.messages if one.ts == ts and not one.deleted), None)

    def thread(self, ts: str) -> list[Message]:
        """The messages of a thread, its first one included."""
        return [one for one in self.messages if ts in {one.ts, one.thread_ts} and not one.deleted]

    @property
    def replies(self) -> list[Message]:
        """What of the bot's everybody here sees, in order."""
        return [one for one in self.messages if one.from_bot and not one.deleted]

    @property
    def texts(self) -> list[str]:
        """The texts of `replies` that have one."""
        return [one.text for one in self.replies if one.text]

    @property
    def prompt(self) -> Message | None:
        """The newest message of the bot that has buttons."""
        return next((one for one in reversed(self.replies) if one.buttons), None)

    async def wait_for(self, condition: Callable[[Channel], Any], patience: float = PATIENCE) -> None:
        """Wait until something holds in this channel.

        Args:
            condition: Gets the channel.
            patience: Seconds.
        """
        await self.signal.until(lambda: condition(self), lambda: (self.messages, self.private), patience)

    async def reply(self, text: str = "", patience: float = PATIENCE) -> Message:
        """Wait for a reply of the bot that contains a text, and return the newest one."""

        def fitting() -> list[Message]:
            return [one for one in self.replies if text in one.text]

        await self.wait_for(lambda _: fitting(), patience)
        return fitting()[-1]
