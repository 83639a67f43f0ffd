"""Everything that goes out: messages, files, edits, prompts, typing."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO, TypeVar

from telegram import (
    Bot,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    LinkPreviewOptions,
    Message,
    MessageEntity,
    ReplyParameters,
)
from telegram.constants import ChatAction
from telegram.error import TelegramError

from channels._text.measure import utf16_len
from channels._wire.pauses import Pauses
from channels.telegram.buttons import PromptView
from channels.telegram.faults import as_delivery_error, is_gone_already, is_same_already
from channels.telegram.units import CAPTION_UNITS, entities_of
from zerobot.core.channel import MessageBody, OutboundFile, OutboundMessage, SentMessage
from zerobot.core.errors import DeliveryError, RefusedError, TryLaterError
from zerobot.core.places import Place

T = TypeVar("T")

# Nothing that a model wrote may load by itself.
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)
# https://core.telegram.org/bots/api#sending-files: photos of 10 MB, other files of 50 MB.
_PHOTO_BYTES = 10_000_000
_PHOTO_MIMES = frozenset({"image/jpeg", "image/png", "image/webp"})


@dataclass(slots=True)
class _Opened:
    """A file on its way out."""

    handle: BinaryIO
    size: int


class Sender:
    """Makes the calls and tells their failures in the words of `zerobot.core.errors`.

    A chat that asked for a pause gets no call of any kind before it is over, whoever wants to make one.
    """

    def __init__(self, bot: Bot, pauses: Pauses) -> None:
        self._bot = bot
        self._pauses = pauses

    async def send(self, message: OutboundMessage) -> SentMessage:
        """Send a message, or a file with the message as its caption.

        A caption that is too long for one goes before its file as a message of its own.
        """
        if message.file is None:
            return await self._text(message.place, message.body, message.reply_to)
        caption = message.body
        if utf16_len(caption.text) > CAPTION_UNITS:
            await self._text(message.place, caption, message.reply_to)
            caption = MessageBody("")
        opened = await asyncio.to_thread(_open, message.file)
        try:
            return _sent(message.place, await self._file(message, message.file, opened, caption))
        finally:
            opened.handle.close()

    async def show(self, place: Place, prompt: PromptView, name: str) -> SentMessage:
        """Show an approval prompt; when there is a document, the buttons come only after it has arrived.

        Args:
            place: Where.
            prompt: Its layout.
            name: The document's file name.
        """
        if prompt.document is not None:
            document = InputFile(BytesIO(prompt.document.encode("utf-8", "replace")), filename=name)
            await self._call(
                place,
                "sendDocument",
                lambda: self._bot.send_document(_chat(place), document, message_thread_id=_thread(place)),
            )
        return await self._text(place, prompt.body, keyboard=_keyboard(prompt))

    async def edit(self, sent: SentMessage, body: MessageBody, prompt: PromptView | None = None) -> None:
        """Change a message; the buttons that it had are gone unless the prompt has some."""
        try:
            await self._call(
                sent.place,
                "editMessageText",
                lambda: self._bot.edit_message_text(
                    body.text,
                    _chat(sent.place),
                    int(sent.id),
                    entities=_entities(body),
                    link_preview_options=_NO_PREVIEW,
                    reply_markup=_keyboard(prompt) if prompt else None,
                ),
            )
        except DeliveryError as error:
            if not is_same_already(error.__cause__):
                raise

    async def delete(self, sent: SentMessage) -> None:
        """Take a message back."""
        try:
            await self._call(
                sent.place, "deleteMessage", lambda: self._bot.delete_message(_chat(sent.place), int(sent.id))
            )
        except DeliveryError as error:
            if not is_gone_already(error.__cause__):
                raise

    async def typing(self, place: Place) -> None:
        """Show that work goes on; whether it worked does not matter."""
        with contextlib.suppress(DeliveryError):
            await self._call(
                place,
                "sendChatAction",
                lambda: self._bot.send_chat_action(_chat(place), ChatAction.TYPING, message_thread_id=_thread(place)),
            )

    async def probe(self) -> None:
        """Make a call that concerns no chat.

        Raises:
            DeliveryError: Telegram does not answer.
        """
        try:
            await self._bot.get_me()
        except TelegramError as error:
            raise as_delivery_error(error, "getMe") from error

    async def _text(
        self, place: Place, body: MessageBody, reply_to: str = "", keyboard: InlineKeyboardMarkup | None = None
    ) -> SentMessage:
        sent = await self._call(
            place,
            "sendMessage",
            lambda: self._bot.send_message(
                _chat(place),
                body.text,
                entities=_entities(body),
                link_preview_options=_NO_PREVIEW,
                message_thread_id=_thread(place),
                reply_parameters=_reply(reply_to),
                reply_markup=keyboard,
            ),
        )
        return _sent(place, sent)

    async def _file(
        self, message: OutboundMessage, file: OutboundFile, opened: _Opened, caption: MessageBody
    ) -> Message:
        if file.mime in _PHOTO_MIMES and opened.size <= _PHOTO_BYTES:
            try:
                return await self._upload(message, file, opened, caption, as_photo=True)
            except RefusedError:
                opened.handle.seek(0)  # not every picture is a photo to Telegram: too long, too narrow, broken
        return await self._upload(message, file, opened, caption, as_photo=False)

    async def _upload(
        self, message: OutboundMessage, file: OutboundFile, opened: _Opened, caption: MessageBody, *, as_photo: bool
    ) -> Message:
        place = message.place
        upload = InputFile(opened.handle, filename=file.name, read_file_handle=False)
        send: Callable[..., Awaitable[Message]] = self._bot.send_photo if as_photo else self._bot.send_document
        return await self._call(
            place,
            "sendPhoto" if as_photo else "sendDocument",
            lambda: send(
                _chat(place),
                upload,
                caption=caption.text or None,
                caption_entities=_entities(caption),
                message_thread_id=_thread(place),
                reply_parameters=_reply(message.reply_to),
            ),
        )

    async def _call(self, place: Place, name: str, make: Callable[[], Awaitable[T]]) -> T:
        """Make a call about a chat, or refuse to while the chat is to be left alone.

        Raises:
            DeliveryError: Whichever fits; its cause is what the library raised.
        """
        wait = await self._pauses.left(place.chat)
        if wait > 0:
            raise TryLaterError(f"{name}: the chat is to be left alone for {wait:.1f} s", retry_after=wait)
        try:
            return await make()
        except TelegramError as error:
            failure = as_delivery_error(error, name)
            if isinstance(failure, TryLaterError) and failure.retry_after:
                await self._pauses.begin(place.chat, failure.retry_after)
            raise failure from error


def _sent(place: Place, message: Message) -> SentMessage:
    return SentMessage(place, str(message.message_id))


def _chat(place: Place) -> int | str:
    """The chat's id as a number; a public channel's `@name` stays as it is."""
    return int(place.chat) if place.chat.lstrip("-").isdecimal() else place.chat


def _thread(place: Place) -> int | None:
    return int(place.thread) if place.thread else None


def _reply(message_id: str) -> ReplyParameters | None:
    return ReplyParameters(int(message_id), allow_sending_without_reply=True) if message_id else None


def _entities(body: MessageBody) -> list[MessageEntity] | None:
    return [MessageEntity.de_json(dict(entity), None) for entity in entities_of(body.format)] or None


def _keyboard(prompt: PromptView) -> InlineKeyboardMarkup | None:
    rows = [[InlineKeyboardButton(face.label, callback_data=face.data) for face in row] for row in prompt.rows]
    return InlineKeyboardMarkup(rows) if rows else None


def _open(file: OutboundFile) -> _Opened:
    try:
        handle = open(file.path, "rb")  # noqa: PTH123, SIM115 -- closed by whoever sends it
    except OSError as error:
        raise RefusedError(f"the file cannot be read: {error.strerror}") from error
    return _Opened(handle, os.fstat(handle.fileno()).st_size)
