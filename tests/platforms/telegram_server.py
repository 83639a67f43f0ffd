"""A strict loopback double of Telegram's Bot API, with people who write, press and leave.

A test runs it in its own process, and the daemon is another one:

    async with TelegramServer() as telegram:       # telegram.api_base and telegram.token go into the configuration
        ann = telegram.user("1001", name="Ann", username="ann")
        ann.says("hello")
        reply = await ann.chat.reply("hello")      # the newest reply that contains it, as soon as there is one
        await ann.chat.wait_for(lambda chat: chat.prompt)
        ann.presses(ann.chat.prompt, "Approve")

It refuses what the real one refuses, keeps what each chat shows, and records every call.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.platforms.signals import PATIENCE, Hold, Signal
from tests.platforms.telegram_api import BotApi
from tests.platforms.telegram_faults import Call, Fault, Limits, Traffic
from tests.platforms.telegram_text import ApiError, Formatted
from tests.platforms.telegram_wire import Answer, HttpServer, Request
from tests.platforms.telegram_world import Chat, Message, StoredFile, content_of

TOKEN = "4242:TEST-ONLY-token-of-the-double"


@dataclass(slots=True, eq=False)
class Press:
    """A pressed button and what the presser was told."""

    id: str
    signal: Signal
    text: str = ""
    alert: bool = False
    is_answered: bool = False

    async def answered(self, patience: float = PATIENCE) -> Press:
        """Wait until the bot has answered it."""
        await self.signal.until(lambda: self.is_answered, lambda: "no answer to the press", patience)
        return self


class Person:
    """Somebody who uses Telegram. What he does returns at once; the bot learns of it by its next poll."""

    def __init__(self, server: TelegramServer, ident: str, name: str, username: str) -> None:
        self._server = server
        self.id = ident
        self.account: dict[str, Any] = {"id": int(ident), "is_bot": False, "first_name": name}
        if username:
            self.account["username"] = username
        self.chat = server.add_chat(Chat(ident, "private", name, server.signal))

    def says(
        self,
        text: str,
        *,
        chat: Chat | None = None,
        topic: int | None = None,
        reply_to: Message | None = None,
        **extra: Any,
    ) -> Message:
        """Write something, in the direct chat with the bot or elsewhere.

        Args:
            text: Mentions and commands in it become entities.
            chat: Where.
            topic: In which topic of a forum.
            reply_to: What it answers.
            extra: Further fields of the message, as the Bot API writes them.
        """
        return self._sends(chat, content_of(text), topic, reply_to, extra=extra)

    def sends_file(
        self,
        name: str,
        data: bytes,
        *,
        kind: str = "document",
        mime: str = "application/octet-stream",
        caption: str = "",
        size: int | None = None,
        album: str = "",
        chat: Chat | None = None,
        topic: int | None = None,
    ) -> Message:
        """Send a file.

        Args:
            name: As the person's client names it.
            data: Its bytes.
            kind: `document`, `photo`, `voice`, `audio` or `video`.
            mime: As the person's client says.
            caption: Its text.
            size: What Telegram says instead of its true size, in bytes.
            album: The id that the parts of an album share.
            chat: Where, if not in the direct chat.
            topic: In which topic of a forum.
        """
        file = self._server.new_file(name, mime, data, size)
        return self._sends(chat, content_of(caption), topic, None, file=file, kind=kind, album=album)

    def sends_album(
        self, files: Sequence[tuple[str, bytes]], *, caption: str = "", chat: Chat | None = None
    ) -> list[Message]:
        """Send several photos as one message, which Telegram delivers as several; the caption is the first one's."""
        album = f"album{self._server.next_id()}"
        return [
            self.sends_file(name, data, kind="photo", album=album, chat=chat, caption="" if number else caption)
            for number, (name, data) in enumerate(files)
        ]

    def edits(self, message: Message, text: str) -> None:
        """Change what was written."""
        message.content = content_of(text)
        message.history.append(text)
        self._server.push("edited_message", message.as_json())

    def presses(self, message: Message, label: str) -> Press:
        """Press the button with this label."""
        data = [button["callback_data"] for row in message.keyboard for button in row if button["text"] == label]
        assert data, f"there is no button {label!r} in {message}"
        return self.sends_press(message, data[0])

    def sends_press(self, message: Message, data: str) -> Press:
        """Send a press with any data, as a changed client can."""
        press = Press(f"q{self._server.next_id()}", self._server.signal)
        self._server.queries[press.id] = press
        self._server.push(
            "callback_query",
            {
                "id": press.id,
                "from": self.account,
                "message": message.as_json(),
                "chat_instance": "1",
                "data": data,
            },
        )
        return press

    def blocks_the_bot(self) -> None:
        """From now on the bot can't write here."""
        self.chat.closed = "bot was blocked by the user"

    def unblocks_the_bot(self) -> None:
        """The bot may write again."""
        self.chat.closed = ""

    def _sends(
        self, chat: Chat | None, content: Formatted, topic: int | None, reply_to: Message | None, **more: Any
    ) -> Message:
        where = chat or self.chat
        message = self._server.new_message(
            where, self.account, content, thread=topic, reply_to=reply_to.id if reply_to else None, **more
        )
        self._server.push("message", message.as_json())
        return message


class TelegramServer:
    """The Bot API of one bot."""

    def __init__(self, *, token: str = TOKEN, username: str = "zero_bot") -> None:
        self.token = token
        self.me: dict[str, Any] = {
            "id": int(token.partition(":")[0]),
            "is_bot": True,
            "first_name": "Zero",
            "username": username,
            "can_join_groups": True,
            "can_read_all_group_messages": False,
            "supports_inline_queries": False,
        }
        self.signal = Signal()
        self.calls: list[Call] = []
        self.chats: dict[str, Chat] = {}
        self.files: dict[str, StoredFile] = {}
        self.queries: dict[str, Any] = {}
        self.commands: list[dict[str, str]] = []
        self.webhook = ""
        self.local_files: Path | None = None
        """A folder: files are named by their path on the disk, as a Bot API server started with `--local` does."""
        self.traffic = Traffic()
        self.api = BotApi(self)
        self.api_base = ""
        self._faults: list[Fault] = []
        self._ids = count(1)
        self._updates = count(7_000_001)
        self._http = HttpServer(self._handle)

    async def __aenter__(self) -> Self:
        self.api_base = f"http://127.0.0.1:{await self._http.start()}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.stop()

    # What is there, and what a test adds to it.

    def user(self, ident: str, *, name: str = "Ann", username: str = "", started: bool = True) -> Person:
        """Add a person; a bot may write first only to one who has started it."""
        person = Person(self, ident, name, username)
        if not started:
            person.chat.closed = "bot can't initiate conversation with a user"
        return person

    def group(self, title: str = "Team", *, forum: bool = False, topics: Sequence[int] = ()) -> Chat:
        """Add a group, or a forum with topics by number."""
        kind = "supergroup" if forum else "group"
        ident = self._group_id(is_super=forum)
        return self.add_chat(
            Chat(ident, kind, title, self.signal, forum=forum, topics={number: f"topic {number}" for number in topics})
        )

    def migrates(self, group: Chat, by: Person) -> Chat:
        """Make a supergroup of a group: it gets a new id, and both tell of it."""
        new = self.add_chat(Chat(self._group_id(is_super=True), "supergroup", group.title, self.signal))
        for chat, key, other in ((group, "migrate_to_chat_id", new), (new, "migrate_from_chat_id", group)):
            message = self.new_message(chat, by.account, Formatted(""), extra={key: int(other.id)})
            self.push("message", message.as_json())
        group.moved_to = new.id
        return new

    def _group_id(self, *, is_super: bool) -> str:
        return str(-(10**12) - self.next_id() if is_super else -(10**6) - self.next_id())

    def add_chat(self, chat: Chat) -> Chat:
        """Make a chat known."""
        self.chats[chat.id] = chat
        return chat

    def new_message(self, chat: Chat, sender: dict[str, Any], content: Formatted, **more: Any) -> Message:
        """Put a message into a chat; nobody is told."""
        message = Message(self.next_id(), chat, sender, content, **more)
        message.history.append(content.text)
        chat.messages.append(message)
        return message

    def new_file(self, name: str, mime: str, data: bytes, size: int | None = None) -> StoredFile:
        """Store a file."""
        file = StoredFile(f"file{self.next_id()}", name, mime, data, len(data) if size is None else size)
        self.files[file.id] = file
        return file

    def path_of(self, file: StoredFile) -> str:
        """Where a file is fetched: below the server's address, or, as with `--local`, on the disk."""
        if self.local_files is None:
            return f"documents/{file.id}"
        path = self.local_files / file.id
        path.write_bytes(file.data)
        return str(path)

    def next_id(self) -> int:
        """A number that nothing else has."""
        return next(self._ids)

    def push(self, kind: str, value: Any) -> int:
        """Queue an update, if the bot wants that kind, and return its id."""
        ident = next(self._updates)
        if kind in self.api.allowed:
            self.api.pending.append({"update_id": ident, kind: value})
        self.signal.fire()
        return ident

    # What goes wrong, on demand.

    def fail_next(
        self,
        method: str,
        status: int,
        description: str = "",
        *,
        retry_after: int | None = None,
        times: int = 1,
        chat: Chat | None = None,
    ) -> None:
        """Refuse the next calls of a method (`*`: of any).

        Args:
            method: As the Bot API names it.
            status: HTTP status.
            description: Telegram's words.
            retry_after: For 429, seconds; calls about that chat before their end are violations.
            times: How many calls.
            chat: Only calls about this chat.
        """
        parameters = {"retry_after": retry_after} if retry_after is not None else None
        error = ApiError(status, description or f"status {status}", parameters)
        self._faults.append(Fault(method, chat.id if chat else None, times, error=error))

    def break_next(self, method: str, *, carried_out: bool = True, times: int = 1, chat: Chat | None = None) -> None:
        """Break the connection after the next request of a method, before any answer.

        Args:
            method: As the Bot API names it.
            carried_out: Whether the request is carried out before.
            times: How many calls.
            chat: Only calls about this chat.
        """
        self._faults.append(Fault(method, chat.id if chat else None, times, breaks=True, carried_out=carried_out))

    def hold_next(self, method: str, *, carried_out: bool = False, chat: Chat | None = None) -> Hold:
        """Keep the next call of a method waiting until it is released, before or after it is carried out."""
        hold = Hold()
        self._faults.append(Fault(method, chat.id if chat else None, 1, carried_out=carried_out, hold=hold))
        return hold

    def limit(self, limits: Limits | None = None) -> None:
        """Hold callers to Telegram's rates from now on; a call inside a window of 429 is in `violations`."""
        self.traffic.limits = limits or Limits()

    def drop_connections(self) -> None:
        """Break every open connection."""
        self._http.drop_connections()

    # What has happened.

    @property
    def violations(self) -> list[Call]:
        """Calls about a chat that was to be left alone."""
        return self.traffic.violations

    @property
    def unconfirmed(self) -> list[int]:
        """The ids of the updates that the bot has not confirmed."""
        return [update["update_id"] for update in self.api.pending]

    def of(self, *methods: str, chat: Chat | None = None) -> list[Call]:
        """The calls of some methods (all, when none is named), about one chat or any."""
        return [
            call
            for call in self.calls
            if (not methods or call.method in methods) and (chat is None or call.chat == chat.id)
        ]

    async def wait_for(self, condition: Callable[[], Any], patience: float = PATIENCE) -> None:
        """Wait until something holds; looked at after each call and each thing that a person does."""
        await self.signal.until(
            condition,
            lambda: [(call.method, call.chat, call.outcome, call.status) for call in self.calls[-20:]],
            patience,
        )

    # The way of a request.

    async def _handle(self, request: Request) -> Answer | None:
        _, head, *rest = request.path.split("/", 3)
        if head == "file" and len(rest) == 2:
            return self._download(*rest)
        if head != f"bot{self.token}" or len(rest) != 1:
            known_form = head.startswith("bot") and ":" in head
            return _refusal(ApiError(401, "Unauthorized") if known_form else ApiError(404, "Not Found"))
        call = Call(rest[0], dict(request.params), time.monotonic(), str(request.params.get("chat_id", "")))
        self.calls.append(call)
        self.signal.fire()
        try:
            return await self._answer(call, request)
        except ApiError as error:
            call.outcome, call.status, call.description = "refused", error.code, error.description
            return _refusal(error)
        finally:
            self.signal.fire()

    async def _answer(self, call: Call, request: Request) -> Answer | None:
        self.traffic.check(call)
        fault = next((fault for fault in self._faults if fault.fits(call)), None)
        if fault is not None:
            fault.times -= 1
        if fault is not None and not fault.carried_out:
            await self._go_wrong(call, fault)
            if fault.breaks:
                return None
        method = self.api.methods.get(call.method)
        if method is None:
            raise ApiError(404, "Not Found: method not found")
        result = await method(call, request.files)
        call.result = result
        self.signal.fire()
        if fault is not None and fault.carried_out:
            await self._go_wrong(call, fault)
            if fault.breaks:
                return None
        call.outcome, call.status = "ok", 200
        return Answer(200, json.dumps({"ok": True, "result": result}).encode())

    async def _go_wrong(self, call: Call, fault: Fault) -> None:
        if fault.hold is not None:
            await fault.hold.keep()
        if fault.breaks:
            call.outcome = "broken"
        if fault.error is not None:
            wait = (fault.error.parameters or {}).get("retry_after")
            if wait and call.chat:
                self.traffic.punish(call.chat, wait)
            raise fault.error

    def _download(self, bot: str, path: str) -> Answer:
        file = self.files.get(path.partition("/")[2])
        if bot != f"bot{self.token}" or file is None:
            return _refusal(ApiError(404, "Not Found"))
        return Answer(200, file.data, file.mime)


def _refusal(error: ApiError) -> Answer:
    value: dict[str, Any] = {"ok": False, "error_code": error.code, "description": error.description}
    if error.parameters:
        value["parameters"] = error.parameters
    return Answer(error.code, json.dumps(value).encode())
