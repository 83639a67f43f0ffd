"""Everything that goes out: messages, files, edits, prompts, the status while work goes on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from channels._wire.pauses import Pauses
from channels.slack.blocks import blocks_of, escape
from channels.slack.buttons import PromptView
from channels.slack.decode import commanded_by
from channels.slack.faults import as_delivery_error
from channels.slack.formatting import Json
from channels.slack.interactions import Replies
from channels.slack.rooms import Rooms
from channels.slack.streams import STILL_OPEN, Streams, is_stream_place
from channels.slack.web import LinkError, Payload, Web, WebError
from zerobot.core.channel import MessageBody, OutboundFile, OutboundMessage, SentMessage
from zerobot.core.clock import Clock
from zerobot.core.errors import CannotTellError, DeliveryError, GoneError, RefusedError, TryLaterError, UnclearError
from zerobot.core.places import Place

T = TypeVar("T")

EVENT_TYPE = "zerobot_message"
"""The kind of our messages' metadata, which hold the key by which one is found again."""
STATUS = "is working on it..."
_PRIVATE = "private-"
_FILE = "file-"
_LOOKED_BACK = timedelta(hours=24)
_PAGE = 100
_PAGES = 3


class Sender:
    """Makes the calls and tells their failures in the words of `zerobot.core.errors`.

    A chat that asked for a pause gets no call of any kind before it is over, whoever wants to make one.

    Args:
        web: Makes the calls.
        rooms: Knows the channels of direct chats.
        replies: Knows the slash commands that wait for an answer.
        pauses: Knows which chats are to be left alone.
        clock: How far back a history is read.
        me: Gives the bot's id.
    """

    def __init__(
        self, web: Web, rooms: Rooms, replies: Replies, pauses: Pauses, clock: Clock, me: Callable[[], str]
    ) -> None:
        self._web = web
        self._me = me
        self._streams = Streams(web, clock)
        self._rooms = rooms
        self._replies = replies
        self._pauses = pauses
        self._clock = clock

    async def send(self, message: OutboundMessage) -> SentMessage:
        """Send a message, or a file with the message as its words."""
        if message.file is not None:
            return await self._send_file(message, message.file)
        if self._streams.fits(message):
            begun = await self._call(
                message.place, "chat.startStream", lambda channel: self._streams.start(channel, message)
            )
            if begun is not None:
                return begun
        asker = commanded_by(message.answers)
        if asker is not None:
            return await self._tell_alone(message, asker)
        return await self._post(message.place, _content(message.body), message.key)

    async def find(self, message: OutboundMessage) -> SentMessage | None:
        """Look for a message whose sending ended unclear, by the key in its metadata.

        Raises:
            CannotTellError: It may have been told to one person in a chat of many, which no history shows.
        """
        asker = commanded_by(message.answers)
        if asker is None:
            return await self._find(message)
        found = await self._find(replace(message, place=_direct(message.place, asker), reply_to=""))
        if found is None:
            raise CannotTellError("response_url: what was told to one person cannot be looked up")
        return SentMessage(message.place, f"{_PRIVATE}{found.id}")

    async def _find(self, message: OutboundMessage) -> SentMessage | None:
        oldest = f"{(self._clock.now() - _LOOKED_BACK).timestamp():.6f}"
        cursor = ""
        for _ in range(_PAGES):
            page = await self._history(message.place, oldest, cursor)
            for each in page.get("messages", ()):
                if _is(each, message, self._me()):
                    return SentMessage(message.place, str(each["ts"]))
            cursor = str((page.get("response_metadata") or {}).get("next_cursor") or "")
            if not cursor:
                break
        return None

    async def show(self, place: Place, prompt: PromptView, name: str, key: str) -> SentMessage:
        """Show an approval prompt; when there is a document, the buttons come only after it has arrived.

        Args:
            place: Where.
            prompt: Its layout.
            name: The document's file name.
            key: The same for every try.
        """
        if prompt.document is not None:
            await self._upload(place, name, prompt.document.encode("utf-8", "replace"), [])
        return await self._post(place, _content(prompt.body) | {"blocks": prompt.blocks}, key)

    async def grow(self, sent: SentMessage, body: MessageBody) -> bool:
        """Bring a draft nearer to a body; see `GrowsMessages`."""
        whole = None
        if self._streams.is_open(sent):
            whole = await self._call(
                sent.place, "chat.appendStream", lambda channel: self._streams.grow(channel, sent, body)
            )
        if whole is None:
            await self.edit(sent, body)
        return whole is not False

    async def edit(self, sent: SentMessage, body: MessageBody, prompt: PromptView | None = None) -> None:
        """Change a message; the buttons that it had are gone unless the prompt has some."""
        if sent.id.startswith((_PRIVATE, _FILE)):
            raise GoneError("chat.update: it cannot be changed")
        content = _content(body)
        blocks = prompt.blocks if prompt else content.get("blocks", [])

        async def update(channel: str) -> Payload:
            return await self._web.call(
                "chat.update", channel=channel, ts=sent.id, text=content["text"], blocks=blocks, parse="none"
            )

        async def stop_and_update(channel: str) -> Payload:
            if self._streams.is_open(sent):
                await self._streams.stop(channel, sent)
            try:
                return await update(channel)
            except WebError as error:
                if error.code != STILL_OPEN:
                    raise
            # An earlier process has begun it.
            await self._streams.stop(channel, sent)
            return await update(channel)

        await self._call(sent.place, "chat.update", stop_and_update)

    def is_growing(self, sent: SentMessage) -> bool:
        """Whether a message has grown as a stream; see `GrowsMessages`."""
        return self._streams.is_open(sent)

    async def delete(self, sent: SentMessage) -> None:
        """Take a message back."""
        self._streams.forget(sent)
        if sent.id.startswith((_PRIVATE, _FILE)):
            return
        with contextlib.suppress(GoneError):
            await self._call(
                sent.place, "chat.delete", lambda channel: self._web.call("chat.delete", channel=channel, ts=sent.id)
            )

    async def typing(self, place: Place) -> None:
        """Show that work goes on, which Slack does in threads only; whether it worked does not matter."""
        if place.thread is None:
            return

        async def set_status(channel: str) -> Payload:
            return await self._web.call(
                "assistant.threads.setStatus", channel_id=channel, thread_ts=place.thread, status=STATUS
            )

        with contextlib.suppress(DeliveryError):
            await self._call(place, "assistant.threads.setStatus", set_status)

    async def probe(self) -> None:
        """Make a call that concerns no chat.

        Raises:
            DeliveryError: Slack does not answer.
        """
        try:
            await self._web.call("api.test")
        except (WebError, LinkError) as error:
            raise as_delivery_error(error, "api.test") from error

    async def _tell_alone(self, message: OutboundMessage, asker: str) -> SentMessage:
        """Answer a slash command: in its chat as long as that can be done privately, else in the direct chat."""
        address = self._replies.address(message.answers)
        if address is not None:
            # One that is used up is refused.
            with contextlib.suppress(RefusedError):
                return await self._answer(message, address)
        sent = await self._post(_direct(message.place, asker), _content(message.body), message.key)
        return SentMessage(message.place, f"{_PRIVATE}{sent.id}")

    async def _answer(self, message: OutboundMessage, address: str) -> SentMessage:
        """Answer a slash command, privately."""
        value = _content(message.body) | {"response_type": "ephemeral", "replace_original": False}
        await self._call(message.place, "response_url", lambda _: self._web.post(address, value))
        return SentMessage(message.place, f"{_PRIVATE}{message.key}")

    async def _post(self, place: Place, content: Json, key: str) -> SentMessage:
        metadata = {"event_type": EVENT_TYPE, "event_payload": {"key": key}}

        async def post(channel: str) -> Payload:
            return await self._web.call(
                "chat.postMessage",
                channel=channel,
                thread_ts=place.thread,
                metadata=metadata,
                unfurl_links=False,
                unfurl_media=False,
                parse="none",
                **content,
            )

        return SentMessage(place, str((await self._call(place, "chat.postMessage", post))["ts"]))

    async def _history(self, place: Place, oldest: str, cursor: str) -> Payload:
        method = "conversations.replies" if place.thread else "conversations.history"

        async def read(channel: str) -> Payload:
            return await self._web.call(
                method,
                channel=channel,
                ts=place.thread,
                oldest=oldest,
                limit=_PAGE,
                cursor=cursor or None,
                include_all_metadata=True,
            )

        return await self._call(place, method, read)

    async def _send_file(self, message: OutboundMessage, file: OutboundFile) -> SentMessage:
        try:
            data = await asyncio.to_thread(Path(file.path).read_bytes)
        except OSError as error:
            raise RefusedError(f"the file cannot be read: {error.strerror}") from error
        blocks = blocks_of(message.body) if message.body.text else []
        ident = await self._upload(message.place, file.name, data, blocks)
        return SentMessage(message.place, f"{_FILE}{ident}")

    async def _upload(self, place: Place, name: str, data: bytes, blocks: list[Json]) -> str:
        """Bring a file into a chat; returns its id. Only the last of the three calls shows it to anybody."""

        async def bring(_: str) -> str:
            ticket = await self._web.call("files.getUploadURLExternal", filename=name, length=len(data))
            await self._web.post(str(ticket["upload_url"]), data)
            return str(ticket["file_id"])

        try:
            ident = await self._call(place, "files.getUploadURLExternal", bring)
        except UnclearError as error:
            raise TryLaterError(str(error)) from error

        async def show(channel: str) -> Payload:
            return await self._web.call(
                "files.completeUploadExternal",
                files=[{"id": ident, "title": name}],
                channel_id=channel,
                thread_ts=place.thread,
                blocks=blocks or None,
            )

        await self._call(place, "files.completeUploadExternal", show)
        return ident

    async def _call(self, place: Place, name: str, make: Callable[[str], Awaitable[T]]) -> T:
        """Make a call about a chat, or refuse to while the chat is to be left alone.

        Raises:
            DeliveryError: Whichever fits; its cause is what our client raised.
        """
        wait = await self._pauses.left(place.chat)
        if wait > 0:
            raise TryLaterError(f"{name}: the chat is to be left alone for {wait:.1f} s", retry_after=wait)
        try:
            return await make(await self._rooms.channel(place.chat))
        except (WebError, LinkError) as error:
            failure = as_delivery_error(error, name)
            if isinstance(failure, TryLaterError) and failure.retry_after:
                await self._pauses.begin(place.chat, failure.retry_after)
            raise failure from error


def _direct(place: Place, user: str) -> Place:
    return Place(place.channel, user)


def _is(found: Payload, message: OutboundMessage, me: str) -> bool:
    """Whether a message of the history is this one: by its key, else by what stands behind the message that it answers.

    Files and streams take no metadata. A file is known by its name. A stream that was not edited is the beginning of
    this one: a conversation has one turn at a time.
    """
    metadata = found.get("metadata")
    if metadata:
        return bool((metadata.get("event_payload") or {}).get("key") == message.key)
    if not message.reply_to or found.get("user") != me or float(found["ts"]) <= float(message.reply_to):
        return False
    names = [file.get("name") for file in found.get("files") or ()]
    if message.file is not None:
        return message.file.name in names
    return is_stream_place(message.place) and not names and not found.get("edited")


def _content(body: MessageBody) -> Json:
    """A message's text, and its blocks if it has formatting; without, nothing in the text is read as a mark."""
    blocks = blocks_of(body)
    text = escape(body.text)
    return {"text": text, "blocks": blocks} if blocks else {"text": text, "mrkdwn": False}
