"""What a Telegram message says: its text without the bot's name, its files, and one line for whatever is neither."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from telegram import (
    Message,
    MessageEntity,
    MessageOrigin,
    MessageOriginChannel,
    MessageOriginChat,
    MessageOriginHiddenUser,
    MessageOriginUser,
)

from channels.telegram.units import slice_units
from zerobot.core.envelope import Attachment, Quote

QUOTE_CHARACTERS = 1500
"""As much of a quoted message as goes to the model; a whole message would be up to 4096."""


@dataclass(frozen=True, slots=True)
class Me:
    """Who the bot is."""

    id: int
    username: str
    """Without the `@`."""
    commands: AbstractSet[str] = frozenset()
    """The names of the chat's commands, without the slash."""


@dataclass(frozen=True, slots=True)
class Said:
    """The words of a message, and whether they name the bot."""

    text: str
    to_me: bool = False
    to_other: bool = False
    """A command that names another bot."""


def said(message: Message, me: Me) -> Said:
    """Read a message's text or caption; what only says whom it is for (`@bot`, the end of `/stop@bot`) is left out."""
    text = message.text or message.caption or ""
    to_me = False
    removed = text
    # From the last to the first, so that the offsets of those still to come stay true.
    for entity in sorted(message.entities or message.caption_entities, key=lambda one: one.offset, reverse=True):
        token = slice_units(text, entity.offset, entity.offset + entity.length)
        if entity.type == MessageEntity.BOT_COMMAND:
            name, _, bot = token[1:].partition("@")
            if bot and not _is_my_name(bot, me):
                if entity.offset == 0:
                    return Said(text, to_other=True)
                continue
            if bot:
                to_me = True
                cut = entity.offset + 1 + len(name)
                removed = slice_units(removed, 0, cut) + slice_units(removed, entity.offset + entity.length)
            elif entity.offset == 0 and name in me.commands:
                to_me = True
        elif _names_me(entity, token, me):
            to_me = True
            removed = _without(removed, entity.offset, entity.offset + entity.length)
    return Said(removed.strip() or text.strip(), to_me=to_me)


def _is_my_name(name: str, me: Me) -> bool:
    return name.casefold() == me.username.casefold()


def _names_me(entity: MessageEntity, token: str, me: Me) -> bool:
    if entity.type == MessageEntity.TEXT_MENTION:
        return entity.user is not None and entity.user.id == me.id
    return entity.type == MessageEntity.MENTION and _is_my_name(token.removeprefix("@"), me)


def _without(text: str, start: int, end: int) -> str:
    """Take a mention out of a sentence, with the blank or the comma that belonged to it; offsets in UTF-16 units."""
    before, after = slice_units(text, 0, start).rstrip(" "), slice_units(text, end)
    if not before or before.endswith("\n"):
        return before + after.lstrip(" ,:;")
    return before + after


def labels(message: Message) -> list[str]:
    """One line of text for each thing in a message that is neither text nor file, and for a forward's source."""
    return [*_forwarded(message), *_things(message)]


def _forwarded(message: Message) -> Iterator[str]:
    if message.forward_origin is not None:
        yield f"[Forwarded from {_origin_name(message.forward_origin)}]"


def _things(message: Message) -> Iterator[str]:
    if message.venue is not None:
        venue = message.venue
        spot = f"{venue.location.latitude:.6f}, {venue.location.longitude:.6f}"
        yield f"[Place: {_line(venue.title)}, {_line(venue.address)} ({spot})]"
    elif message.location is not None:
        yield f"[Location: {message.location.latitude:.6f}, {message.location.longitude:.6f}]"
    if message.contact is not None:
        name = _line(f"{message.contact.first_name} {message.contact.last_name or ''}")
        yield f"[Contact: {name}, {_line(message.contact.phone_number)}]"
    if message.sticker is not None:
        yield f"[Sticker: {message.sticker.emoji or _line(message.sticker.set_name or 'without an emoji')}]"
    if message.poll is not None:
        options = "; ".join(_line(option.text) for option in message.poll.options)
        yield f"[Poll: {_line(message.poll.question)} ({options})]"
    if message.dice is not None:
        yield f"[Dice: {message.dice.emoji} {message.dice.value}]"


def _line(text: str) -> str:
    """Bring a text that somebody else wrote onto one line."""
    return " ".join(text.split())


def _origin_name(origin: MessageOrigin) -> str:
    match origin:
        case MessageOriginUser():
            return _line(origin.sender_user.full_name)
        case MessageOriginHiddenUser():
            return _line(origin.sender_user_name)
        case MessageOriginChat():
            return _line(origin.sender_chat.effective_name or "a group")
        case MessageOriginChannel():
            return _line(origin.chat.effective_name or "a channel")
    return "somebody"


def attachments(message: Message) -> tuple[Attachment, ...]:
    """The files of a message; of a photo's sizes the largest."""
    return tuple(_files(message))


def _files(message: Message) -> Iterator[Attachment]:
    if message.photo:
        photo = max(message.photo, key=lambda size: size.width * size.height)
        yield _file("image", "photo.jpg", "image/jpeg", photo.file_id, photo.file_size)
    # A moving picture carries itself a second time as a document, for old clients.
    if message.animation is not None:
        moving = message.animation
        name = moving.file_name or "animation.mp4"
        yield _file("video", name, moving.mime_type or "video/mp4", moving.file_id, moving.file_size)
    elif message.document is not None:
        document = message.document
        mime = document.mime_type or "application/octet-stream"
        yield _file(_kind(mime), document.file_name or "document", mime, document.file_id, document.file_size)
    if message.voice is not None:
        voice = message.voice
        yield _file("audio", "voice.ogg", voice.mime_type or "audio/ogg", voice.file_id, voice.file_size)
    if message.audio is not None:
        audio = message.audio
        mime = audio.mime_type or "audio/mpeg"
        yield _file("audio", audio.file_name or "audio.mp3", mime, audio.file_id, audio.file_size)
    if message.video is not None:
        video = message.video
        mime = video.mime_type or "video/mp4"
        yield _file("video", video.file_name or "video.mp4", mime, video.file_id, video.file_size)
    if message.video_note is not None:
        note = message.video_note
        yield _file("video", "video-note.mp4", "video/mp4", note.file_id, note.file_size)


def _file(kind: str, name: str, mime: str, ref: str, size: int | None) -> Attachment:
    return Attachment(kind=kind, name=name, mime=mime, size=size, ref=ref)


def _kind(mime: str) -> str:
    kind = mime.partition("/")[0]
    return kind if kind in {"image", "audio", "video"} else "file"


def quote(message: Message) -> Quote | None:
    """What a message answers: the part that its author picked, else the beginning of the whole message."""
    answered = answered_message(message)
    picked = message.quote.text if message.quote is not None else ""
    if answered is not None:
        text = picked or "\n".join([*labels(answered), answered.text or answered.caption or "", *_file_lines(answered)])
        return _quote(_author(answered), text)
    if message.external_reply is not None:
        return _quote(_origin_name(message.external_reply.origin), picked)
    return None


def answered_message(message: Message) -> Message | None:
    """The message that this one answers; in a topic each message formally answers the one that opened the topic."""
    answered = message.reply_to_message
    return None if answered is None or answered.forum_topic_created is not None else answered


def _file_lines(message: Message) -> Sequence[str]:
    return [f"[{file.kind}: {_line(file.name)}]" for file in attachments(message)]


def _author(message: Message) -> str:
    if message.sender_chat is not None:
        return _line(message.sender_chat.effective_name or "a chat")
    return _line(message.from_user.full_name) if message.from_user is not None else "somebody"


def _quote(author: str, text: str) -> Quote | None:
    text = text.strip()
    if len(text) > QUOTE_CHARACTERS:
        text = text[:QUOTE_CHARACTERS].rstrip() + " …"
    return Quote(author=author, text=text) if text else None
