"""A Discord event in the common form; pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from channels.discord.buttons import read_press
from channels.discord.content import REPLY, Me, Payload, attachments, display_name, labels, quote, said
from zerobot.core.envelope import ButtonPress, EnvelopeEdit, InboundEnvelope
from zerobot.core.places import ConversationKey, Identity, Place

PLATFORM = "discord"
ASK = "ask"
"""The slash command that says something instead of commanding."""

# Text that somebody wrote: https://discord.com/developers/docs/resources/message#message-object-message-types.
_DEFAULT = 0
_WRITTEN = frozenset({_DEFAULT, REPLY})
_COMMAND, _COMPONENT, _FORM = 2, 3, 5
_DIRECT = "@"


@dataclass(frozen=True, slots=True)
class Asked:
    """Something that was done by an interaction, which waits three seconds for its first answer."""

    id: str
    token: str
    what: InboundEnvelope | ButtonPress
    wants_form: bool = False
    """The button opens a form for the reason; the press follows when that is sent."""


def direct_chat(user: str) -> str:
    """The chat of a person and the bot alone, by the person's id: its own id is not known before it is opened."""
    return f"{_DIRECT}{user}"


def direct_user(chat: str) -> str | None:
    """Whose direct chat this is; None: it is no direct chat."""
    return chat.removeprefix(_DIRECT) if chat.startswith(_DIRECT) else None


def chat_of(message: Payload) -> str:
    """The chat of an event of the gateway: a channel or a thread (which is a channel of its own), or a direct chat."""
    return str(message["channel_id"]) if message.get("guild_id") else direct_chat(str(message["author"]["id"]))


def event_id(message: str) -> str:
    """A message's event, also when it is found in the history: Discord numbers everything in one row."""
    return message


def is_heard(message: Payload, me: Me) -> bool:
    """Whether it counts: a person wrote it, or another bot where those are heard.

    Not the bot itself, and no webhook: whoever knows its address speaks by it. No notice of Discord's own either.
    """
    author = message.get("author") or {}
    return not (
        (author.get("bot") and not me.hears_bots)
        or str(author.get("id")) == me.id
        or author.get("system")
        or message.get("webhook_id")
        or message.get("type", _DEFAULT) not in _WRITTEN
    )


def decode_message(message: Payload, me: Me, place: Place, title: str = "") -> InboundEnvelope | None:
    """Bring a message into the common form.

    Args:
        message: As the gateway or the history writes it.
        me: Who the bot is there.
        place: Where it was written.
        title: Of the post that it opens in a forum.

    Returns:
        None when nobody who is heard said anything in it.
    """
    if not is_heard(message, me):
        return None
    words = said(message, me)
    text = "\n".join(part for part in [title, *labels(message), words.text] if part)
    files = attachments(message)
    if not (text or files):
        return None
    author = message["author"]
    answered = message.get("referenced_message") or {}
    answers_me = message.get("type") == REPLY and str((answered.get("author") or {}).get("id")) == me.id
    mentioned = any(str(user["id"]) == me.id for user in message.get("mentions", ()))
    direct, from_bot = direct_user(place.chat) is not None, bool(author.get("bot"))
    return InboundEnvelope(
        conversation=ConversationKey(place),
        sender=Identity(PLATFORM, str(author["id"])),
        event_id=event_id(str(message["id"])),
        message_id=str(message["id"]),
        text=text,
        attachments=files,
        sender_name=display_name(author, message.get("member")),
        sender_handles=_handles(author),
        direct=direct,
        # A bot that answers whatever was said has to name us on purpose.
        addressed=direct or words.to_me or (not from_bot and (answers_me or mentioned)),
        from_bot=from_bot,
        quote=quote(message),
        sent_at=datetime.fromisoformat(message["timestamp"]),
    )


def _handles(user: Payload) -> tuple[str, ...]:
    """Names are unique since they have no number behind them: https://discord.com/developers/docs/change-log."""
    is_unique = user.get("discriminator", "0") in {"0", None} and user.get("username")
    return (f"@{user['username']}",) if is_unique else ()


def decode_edit(message: Payload, me: Me, channel: str) -> EnvelopeEdit | None:
    """Bring a changed message into the common form; None: only what Discord adds to it (a preview) has changed."""
    if message.get("content") is None or not message.get("author") or not is_heard(message, me):
        return None
    return EnvelopeEdit(
        place=Place(channel, chat_of(message)),
        sender=Identity(PLATFORM, str(message["author"]["id"])),
        message_id=str(message["id"]),
        text="\n".join(part for part in [*labels(message), said(message, me).text] if part),
    )


def decode_interaction(interaction: Payload, channel: str) -> Asked | None:
    """Bring an interaction into the common form; None: it is of a kind that we offer nowhere."""
    user = (interaction.get("member") or {}).get("user") or interaction.get("user")
    if user is None or user.get("bot"):
        return None
    chat = str(interaction.get("channel_id", "")) if interaction.get("guild_id") else direct_chat(str(user["id"]))
    ident, token = str(interaction["id"]), str(interaction["token"])
    place, kind, data = Place(channel, chat), interaction.get("type"), interaction.get("data") or {}
    if kind == _COMMAND:
        return Asked(ident, token, _slash(interaction, user, place))
    if kind not in {_COMPONENT, _FORM}:
        return None
    verb = read_press(str(data.get("custom_id", "")))
    press = ButtonPress(
        channel=channel,
        presser=Identity(PLATFORM, str(user["id"])),
        approval=verb.approval,
        button=verb.button,
        reason=_reason(data) if kind == _FORM else "",
        presser_name=display_name(user, interaction.get("member")),
        place=place,
        message_id=str((interaction.get("message") or {}).get("id", "")),
    )
    return Asked(ident, token, press, wants_form=verb.opens_form and kind == _COMPONENT)


def _slash(interaction: Payload, user: Payload, place: Place) -> InboundEnvelope:
    data = interaction["data"]
    words = " ".join(str(option.get("value", "")) for option in data.get("options", ())).strip()
    ident = str(interaction["id"])
    return InboundEnvelope(
        conversation=ConversationKey(place),
        sender=Identity(PLATFORM, str(user["id"])),
        event_id=event_id(ident),
        message_id=interaction_ref(ident),
        text=words if data["name"] == ASK else f"/{data['name']} {words}".rstrip(),
        sender_name=display_name(user, interaction.get("member")),
        sender_handles=_handles(user),
        direct=direct_user(place.chat) is not None,
    )


_REF = "interaction-"


def interaction_ref(interaction: str) -> str:
    """What stands for an interaction where a message's id is wanted: it is what its answer answers."""
    return f"{_REF}{interaction}"


def referred_interaction(message_id: str) -> str | None:
    """The interaction that such an id stands for; None: it is a message's."""
    return message_id.removeprefix(_REF) if message_id.startswith(_REF) else None


def _reason(data: Payload) -> str:
    """What was written into a form; each field stands in a row of its own, or under a label."""
    fields = [
        field
        for row in data.get("components", ())
        for field in [*row.get("components", ()), row.get("component") or {}]
    ]
    return " ".join(str(field["value"]) for field in fields if field.get("value")).strip()
