"""Everything that goes out: messages, files, edits, prompts, typing."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from io import BytesIO
from typing import Any, BinaryIO, TypeVar

from discord.http import MultipartParameters, Route

from channels.discord.buttons import PromptView
from channels.discord.catchup import snowflake_at
from channels.discord.decode import referred_interaction
from channels.discord.faults import as_delivery_error, is_too_large
from channels.discord.interactions import Replies, original
from channels.discord.lookup import find_in
from channels.discord.markup import escape
from channels.discord.rest import LinkError, Payload, Rest, RestError
from channels.discord.rooms import Rooms
from zerobot.core.channel import MessageBody, OutboundFile, OutboundMessage, SentMessage
from zerobot.core.errors import DeliveryError, GoneError, RefusedError
from zerobot.core.places import Place

T = TypeVar("T")

# https://discord.com/developers/docs/resources/message#message-object-message-flags: what a model wrote loads nothing.
_NO_PREVIEWS = 1 << 2
_NO_PINGS: Mapping[str, object] = {"parse": [], "replied_user": False}
_NONCE_CHARACTERS = 25
_SEEN_MOST = 500
_PAGE, _PAGES = 100, 3
"""Messages of a chat that are looked at for one whose sending ended unclear."""
_CLOCKS_DIFFER = timedelta(minutes=10)


class Echoes:
    """The bot's own messages that the gateway has shown, by their nonce."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, str] = OrderedDict()

    def heard(self, nonce: str, message: str) -> None:
        """A message of the bot's stands in some chat."""
        self._ids[nonce] = message
        while len(self._ids) > _SEEN_MOST:
            self._ids.popitem(last=False)

    def find(self, nonce: str) -> str | None:
        """The message with this nonce."""
        return self._ids.get(nonce)


class Sender:
    """Makes the calls and tells their failures in the words of `zerobot.core.errors`.

    Args:
        rest: Makes the calls.
        rooms: Knows the channels of direct chats.
        replies: Knows the slash commands that wait for an answer.
        echoes: Knows what the gateway has shown of our messages.
        application: Gives the bot's own id and the application's.
    """

    def __init__(
        self, rest: Rest, rooms: Rooms, replies: Replies, echoes: Echoes, application: Callable[[], str]
    ) -> None:
        self._rest = rest
        self._rooms = rooms
        self._replies = replies
        self._echoes = echoes
        self._application = application

    async def send(self, message: OutboundMessage) -> SentMessage:
        """Send a message, or a file with the message as its caption.

        The same key is the same nonce: Discord takes it once, and answers a repeat with the message that it has.
        """
        interaction = referred_interaction(message.reply_to)
        token = None
        if interaction is not None and message.file is None:
            token = await self._replies.token(interaction, message.key)
        payload = _payload(message.body)
        if token is not None:
            taken = await self._answer(message, payload, token)
        else:
            payload |= _once(message.key)
            if message.reply_to and not interaction:
                payload["message_reference"] = {"message_id": message.reply_to, "fail_if_not_exists": False}
            taken = await self._new(message, payload)
        sent = SentMessage(message.place, str(taken["id"]))
        if message.file is None and str(taken.get("content", "")) != message.body.text:
            # It was taken before, as another draft of the same message.
            await self.edit(sent, message.body)
        return sent

    async def find(self, message: OutboundMessage) -> SentMessage | None:
        """Look for a message whose sending ended unclear: among what the gateway showed, then in the chat's history.

        That it is not found does not mean much for the first minutes; then it is sent again with the same nonce.

        Raises:
            CannotTellError: Something stands there that may be it, or too much has been written since.
        """
        nonce = _nonce(message.key)
        seen = self._echoes.find(nonce)
        if seen is None:
            history, is_all = await self._history(message.place, message.not_before)
            seen = find_in(history, message, nonce, is_all=is_all)
        return SentMessage(message.place, seen) if seen is not None else None

    async def show(self, place: Place, prompt: PromptView, name: str, key: str) -> SentMessage:
        """Show an approval prompt, its document with it.

        Args:
            place: Where.
            prompt: Its layout.
            name: The document's file name.
            key: The same for every try.
        """
        payload = _payload(prompt.body) | _once(key) | {"components": prompt.components}
        document = BytesIO(prompt.document.encode("utf-8", "replace")) if prompt.document is not None else None
        sent = await self._post(place, payload, document, name)
        return SentMessage(place, str(sent["id"]))

    async def edit(self, sent: SentMessage, body: MessageBody, prompt: PromptView | None = None) -> None:
        """Change a message; the buttons that it had are gone unless the prompt has some."""
        payload = _payload(body) | {"components": prompt.components if prompt else []}
        params = MultipartParameters(payload=payload, multipart=None, files=None)
        await self._call(sent.place, "edit", lambda channel: self._rest.edit_message(channel, sent.id, params=params))

    async def delete(self, sent: SentMessage) -> None:
        """Take a message back."""
        with contextlib.suppress(GoneError):
            await self._call(sent.place, "delete", lambda channel: self._rest.delete_message(channel, sent.id))

    async def typing(self, place: Place) -> None:
        """Show that work goes on; whether it worked does not matter."""
        with contextlib.suppress(DeliveryError):
            await self._call(place, "typing", self._rest.send_typing)

    async def probe(self) -> None:
        """Make a call that concerns no chat.

        Raises:
            DeliveryError: Discord does not answer.
        """
        await _told("gateway", lambda: self._rest.request(Route("GET", "/gateway")))

    async def _answer(self, message: OutboundMessage, payload: dict[str, Any], token: str) -> Payload:
        """Become the answer to a slash command; doing it again changes nothing."""
        route = original(self._application(), token)
        try:
            return await _told("answer", lambda: self._rest.request(route, json=payload))
        except GoneError:
            return await self._new(message, payload | _once(message.key))

    async def _new(self, message: OutboundMessage, payload: dict[str, Any]) -> Payload:
        if message.file is None:
            return await self._post(message.place, payload, None, "")
        opened = await asyncio.to_thread(_open, message.file)
        size = os.fstat(opened.fileno()).st_size
        try:
            return await self._post(message.place, payload, opened, message.file.name)
        except RefusedError as error:
            if not is_too_large(error.__cause__):
                raise
            payload["content"] = _with_note(message.body.text, message.file, size)
            return await self._post(message.place, payload, None, "")
        finally:
            opened.close()

    async def _post(self, place: Place, payload: Mapping[str, Any], file: BinaryIO | None, name: str) -> Payload:
        params = MultipartParameters(payload=dict(payload), multipart=None, files=None)
        if file is None:
            return await self._call(place, "send", lambda channel: self._rest.send_message(channel, params=params))
        form: list[dict[str, Any]] = [
            {"name": "payload_json", "value": json.dumps(payload), "content_type": "application/json"},
            {"name": "files[0]", "value": file, "filename": name, "content_type": "application/octet-stream"},
        ]

        async def upload(channel: str) -> Payload:
            found: Payload = await self._rest.request(
                Route("POST", "/channels/{channel_id}/messages", channel_id=channel), form=form
            )
            return found

        return await self._call(place, "send a file", upload)

    async def _history(self, place: Place, since: datetime | None) -> tuple[list[Any], bool]:
        """What was written in a chat since a moment (None: lately), and whether that is all."""
        after = snowflake_at(since - _CLOCKS_DIFFER) if since is not None else None
        found: list[Any] = []
        for _ in range(_PAGES):
            page = await self._page(place, after)
            found += page
            if len(page) < _PAGE:
                return found, True
            if after is None:
                break
            after = max(int(each["id"]) for each in page)
        return found, False

    async def _page(self, place: Place, after: int | None) -> Sequence[Any]:
        return await self._call(
            place, "read the history", lambda channel: self._rest.logs_from(channel, _PAGE, after=after)
        )

    async def _call(self, place: Place, name: str, make: Callable[[str], Awaitable[T]]) -> T:
        """Make a call about a chat.

        Raises:
            DeliveryError: Whichever fits; its cause is what our REST client raised.
        """

        async def call() -> T:
            return await make(await self._rooms.channel(place.chat))

        return await _told(name, call)


async def _told(name: str, make: Callable[[], Awaitable[T]]) -> T:
    try:
        return await make()
    except (RestError, LinkError) as error:
        raise as_delivery_error(error, name) from error


def _payload(body: MessageBody) -> dict[str, Any]:
    return {"content": body.text, "flags": _NO_PREVIEWS, "allowed_mentions": _NO_PINGS}


def _once(key: str) -> dict[str, Any]:
    """What makes Discord take a message with this key once: https://discord.com/developers/docs/resources/message."""
    return {"nonce": _nonce(key), "enforce_nonce": True}


def _nonce(key: str) -> str:
    """A key as Discord takes it: at most 25 characters."""
    return key if len(key) <= _NONCE_CHARACTERS else hashlib.sha256(key.encode()).hexdigest()[:_NONCE_CHARACTERS]


def _with_note(text: str, file: OutboundFile, size: int) -> str:
    note = f"(The file {escape(file.name)}, {size / 1e6:.1f} MB, is larger than Discord takes here and was left out.)"
    return f"{text}\n{note}".strip()


def _open(file: OutboundFile) -> BinaryIO:
    try:
        return open(file.path, "rb")  # noqa: PTH123 -- closed by whoever sends it
    except OSError as error:
        raise RefusedError(f"the file cannot be read: {error.strerror}") from error
