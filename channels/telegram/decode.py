"""A Telegram update in the common form; pure."""

from __future__ import annotations

from dataclasses import dataclass

from telegram import CallbackQuery, Message, Update, User
from telegram.constants import ChatType

from channels.telegram.buttons import read_press
from channels.telegram.content import Me, Said, answered_message, attachments, labels, quote, said
from zerobot.core.envelope import ButtonPress, EnvelopeEdit, InboundEnvelope
from zerobot.core.places import ConversationKey, Identity, Place

PLATFORM = "telegram"

# Accounts that stand for somebody who cannot be told, see `from` and `sender_chat` in
# https://core.telegram.org/bots/api#message: Telegram itself (posts that a channel forwards into its group), anonymous
# admins, whoever sends as a channel.
_NOBODY = frozenset({777000, 1087968824, 136817688})


@dataclass(frozen=True, slots=True)
class Press:
    """A pressed button, and the id under which Telegram waits for an answer."""

    query: str
    press: ButtonPress


@dataclass(frozen=True, slots=True)
class Moved:
    """A group became a supergroup and has a new id."""

    old: Place
    new_chat: str


Decoded = InboundEnvelope | EnvelopeEdit | Press | Moved


def decode(update: Update, me: Me, channel: str) -> Decoded | None:
    """Bring an update into the common form.

    Args:
        update: As the library read it.
        me: Who the bot is, to know when it is spoken to.
        channel: The name of the channel's table.

    Returns:
        None when nobody said anything to us in it: a join, a service message, a bot, an anonymous admin, a post in
        the name of a channel, a command that names another bot.
    """
    if update.callback_query is not None:
        return _press(update.callback_query, channel)
    if update.edited_message is not None:
        return _edit(update.edited_message, me, channel)
    if update.message is None:
        return None
    return _moved(update.message, channel) or _envelope(update.message, me, channel)


def _moved(message: Message, channel: str) -> Moved | None:
    """Both groups tell of a move, the old one where to and the new one from where; either suffices."""
    if message.migrate_to_chat_id is not None:
        return Moved(Place(channel, str(message.chat.id)), str(message.migrate_to_chat_id))
    if message.migrate_from_chat_id is not None:
        return Moved(Place(channel, str(message.migrate_from_chat_id)), str(message.chat.id))
    return None


def _envelope(message: Message, me: Me, channel: str) -> InboundEnvelope | None:
    sender = _somebody(message)
    words = said(message, me)
    text, files = _text(message, words), attachments(message)
    if sender is None or words.to_other or not (text or files):
        return None
    answered = answered_message(message)
    answers_me = answered is not None and answered.from_user is not None and answered.from_user.id == me.id
    direct = message.chat.type == ChatType.PRIVATE
    return InboundEnvelope(
        conversation=ConversationKey(_place(message, channel)),
        sender=Identity(PLATFORM, str(sender.id)),
        event_id=f"{message.chat.id}:{message.message_id}",
        message_id=str(message.message_id),
        text=text,
        attachments=files,
        sender_name=sender.full_name,
        sender_handles=(f"@{sender.username}",) if sender.username else (),
        direct=direct,
        addressed=direct or words.to_me or answers_me,
        quote=quote(message),
        album=message.media_group_id or "",
        sent_at=message.date,
    )


def _edit(message: Message, me: Me, channel: str) -> EnvelopeEdit | None:
    sender = _somebody(message)
    if sender is None:
        return None
    return EnvelopeEdit(
        place=_place(message, channel),
        sender=Identity(PLATFORM, str(sender.id)),
        message_id=str(message.message_id),
        text=_text(message, said(message, me)),
    )


def _press(query: CallbackQuery, channel: str) -> Press | None:
    if query.from_user.is_bot or query.from_user.id in _NOBODY:
        return None
    button, approval = read_press(query.data or "")
    place = None
    if isinstance(query.message, Message):
        place = _place(query.message, channel)
    elif query.message is not None:
        place = Place(channel, str(query.message.chat.id))
    return Press(
        query.id,
        ButtonPress(
            channel=channel,
            presser=Identity(PLATFORM, str(query.from_user.id)),
            approval=approval,
            button=button,
            presser_name=query.from_user.full_name,
            place=place,
            message_id=str(query.message.message_id) if query.message is not None else "",
        ),
    )


def _somebody(message: Message) -> User | None:
    """The person who wrote a message; None for bots, and for whoever writes in the name of a chat."""
    sender = message.from_user
    if sender is None or sender.is_bot or sender.id in _NOBODY or message.sender_chat is not None:
        return None
    return sender


def _place(message: Message, channel: str) -> Place:
    # A plain reply in a group carries a thread id as well; only in a forum does it name a topic.
    topic = str(message.message_thread_id) if message.is_topic_message else None
    return Place(channel, str(message.chat.id), topic)


def _text(message: Message, words: Said) -> str:
    return "\n".join(part for part in [*labels(message), words.text] if part)
