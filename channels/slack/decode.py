"""A Slack event in the common form; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from channels.slack.buttons import FORM, FormOrigin, read_form, read_press
from channels.slack.content import Me, Payload, attachments, labels, said
from zerobot.core.envelope import Button, ButtonPress, EnvelopeEdit, InboundEnvelope
from zerobot.core.places import ConversationKey, Identity, Place

PLATFORM = "slack"

# What people write: https://docs.slack.dev/reference/events/message#subtypes. All others are notices of Slack's own.
_WRITTEN = frozenset({None, "file_share", "thread_broadcast", "me_message"})
_SLACKBOT = "USLACKBOT"
_USER = re.compile(r"[UW][A-Z0-9]+")


@dataclass(frozen=True, slots=True)
class Press:
    """A pressed button or a sent form, and what its answer needs."""

    press: ButtonPress
    origin: FormOrigin
    trigger: str = ""
    """Good for three seconds: it opens a form."""
    respond_to: str = ""
    """An address that takes a private answer; a form has none."""
    opens_form: bool = False


def identity(user: str, team: str) -> Identity:
    """A person: ids are unique within a workspace."""
    return Identity(PLATFORM, f"{team}/{user}")


def user_of(person: Identity, team: str) -> str | None:
    """The user's id of a person of a workspace; None: he is not of it.

    Args:
        person: Without a workspace he is of any.
        team: The workspace; empty: any, while it is not known.
    """
    scope, _, user = person.id.rpartition("/")
    return user if person.platform == PLATFORM and (not scope or not team or scope == team) else None


def team_of(message: Payload) -> str:
    """The workspace of a message's author, which is another one in shared channels; empty: it does not say."""
    return str(message.get("user_team") or message.get("team") or "")


def is_direct(chat: str) -> bool:
    """Whether a chat of ours is a direct one: those are named by their person, all others by their channel."""
    return bool(_USER.fullmatch(chat))


def is_from_person(message: Payload) -> bool:
    """Whether a person wrote it: no bot, no notice of Slack's own."""
    return bool(
        message.get("user")
        and message["user"] != _SLACKBOT
        and not message.get("bot_id")
        and message.get("subtype") in _WRITTEN
        and not message.get("hidden")
    )


def place_of(message: Payload, channel: str, chat: str) -> Place:
    """Where a message belongs: in a channel each post opens a thread, a direct chat is one conversation.

    Args:
        message: As Slack writes it.
        channel: The name of the channel's table.
        chat: The chat.
    """
    thread = message.get("thread_ts") or (None if is_direct(chat) else message.get("ts"))
    return Place(channel, chat, str(thread) if thread else None)


def decode_message(
    message: Payload, me: Me, place: Place, names: Mapping[str, str], *, team: str, in_own_thread: bool = False
) -> InboundEnvelope | None:
    """Bring a message into the common form; `message` and `app_mention` of one post are the same event.

    Args:
        message: Of an event or of a history.
        me: Who the bot is.
        place: Where it was written.
        names: Of people, by their ids.
        team: The workspace that the event is of.
        in_own_thread: Whether it stands in a thread that began with words to the bot, or of it.

    Returns:
        None when no person said anything to us in it.
    """
    if not is_from_person(message):
        return None
    words = said(str(message.get("text") or ""), me, names)
    text = "\n".join(part for part in [*labels(message), words.text] if part)
    files = attachments(message)
    if not (text or files):
        return None
    user, ts, direct = str(message["user"]), str(message["ts"]), is_direct(place.chat)
    return InboundEnvelope(
        conversation=ConversationKey(place),
        sender=identity(user, team_of(message) or team),
        event_id=f"{place.chat}:{ts}",
        message_id=ts,
        text=text,
        attachments=files,
        sender_name=names.get(user, ""),
        direct=direct,
        addressed=direct or words.to_me or in_own_thread,
        sent_at=datetime.fromtimestamp(float(ts), UTC),
    )


def decode_change(event: Payload, me: Me, place: Place, names: Mapping[str, str], *, team: str) -> EnvelopeEdit | None:
    """Bring a changed or deleted message into the common form; None: only what Slack adds (a preview) has changed.

    Args:
        event: Of subtype `message_changed` or `message_deleted`.
        me: Who the bot is.
        place: Of its chat.
        names: Of people, by their ids.
        team: The workspace that the event is of.
    """
    before = event.get("previous_message") or {}
    now = event.get("message") or {}
    # Of a post that has answers a stone remains.
    deleted = event.get("subtype") == "message_deleted" or now.get("subtype") == "tombstone"
    about = before if deleted else now
    if about.get("bot_id") or (not deleted and (not is_from_person(now) or now.get("text") == before.get("text"))):
        return None
    user = about.get("user")
    words = None if deleted else "\n".join([*labels(now), said(str(now.get("text") or ""), me, names).text])
    return EnvelopeEdit(
        place=place,
        sender=identity(str(user), team_of(about) or team) if user else None,
        message_id=str(event.get("deleted_ts") or about.get("ts") or ""),
        text=words,
    )


def decode_press(payload: Payload, channel: str, chat: str) -> Press | None:
    """Bring a pressed button into the common form; None: it is none.

    Args:
        payload: Of type `block_actions`: https://docs.slack.dev/reference/interaction-payloads/block_actions-payload.
        channel: The name of the channel's table.
        chat: The chat that it was pressed in.
    """
    actions = payload.get("actions") or ()
    if not actions or not payload.get("user"):
        return None
    action, container = actions[0], payload.get("container") or {}
    message = payload.get("message") or {}
    verb = read_press(str(action.get("action_id") or ""), str(action.get("value") or ""))
    thread = str(message.get("thread_ts") or container.get("thread_ts") or "")
    ts = str(container.get("message_ts") or message.get("ts") or "")
    origin = FormOrigin(verb.approval, str((payload.get("channel") or {}).get("id") or ""), thread, ts)
    return Press(
        _press(payload, Place(channel, chat, thread or None), origin, verb.button, ""),
        origin,
        trigger=str(payload.get("trigger_id") or ""),
        respond_to=str(payload.get("response_url") or ""),
        opens_form=verb.opens_form,
    )


def decode_form(payload: Payload, channel: str, chat_of: Callable[[str], str]) -> Press | None:
    """Bring a form that was sent into the common form; None: it is none of ours.

    Args:
        payload: Of type `view_submission`.
        channel: The name of the channel's table.
        chat_of: Tells the chat that a channel of Slack is.
    """
    shown = payload.get("view") or {}
    if shown.get("callback_id") != FORM or not payload.get("user"):
        return None
    origin, reason = read_form(shown)
    place = Place(channel, chat_of(origin.channel), origin.thread or None)
    return Press(_press(payload, place, origin, Button.DENY, reason), origin)


def _press(payload: Payload, place: Place, origin: FormOrigin, button: Button, reason: str) -> ButtonPress:
    user = payload["user"]
    team = user.get("team_id") or (payload.get("team") or {}).get("id") or ""
    return ButtonPress(
        channel=place.channel,
        presser=identity(str(user["id"]), str(team)),
        approval=origin.approval,
        button=button,
        reason=reason,
        presser_name=str(user.get("name") or user.get("username") or ""),
        place=place,
        message_id=origin.message,
    )


_REF = "command-"


def command_ref(user: str, trigger: str) -> str:
    """What stands for a slash command where a message's id is wanted: what its answer answers, and who reads that."""
    return f"{_REF}{user}-{trigger}"


def commanded_by(ref: str) -> str | None:
    """Whose slash command such an id stands for; None: it is a message's."""
    user = ref.removeprefix(_REF).partition("-")[0]
    return user if ref.startswith(_REF) and is_direct(user) else None


def decode_command(payload: Payload, me: Me, channel: str, chat: str, ref: str) -> InboundEnvelope:
    """Bring a slash command into the common form; its words are the command.

    Args:
        payload: https://docs.slack.dev/interactivity/implementing-slash-commands#app_command_handling
        me: Who the bot is.
        channel: The name of the channel's table.
        chat: Where it was written.
        ref: What stands for it where a message's id is wanted.
    """
    words = said(str(payload.get("text") or ""), me, {}).text.lstrip("/!").strip()
    name, _, rest = words.partition(" ")
    # What is no command of ours is told so, and not answered as a question: the channel would not see it.
    text = f"/{name or 'help'}" + (f" {rest}" if name.lower() in me.commands and rest else "")
    user = str(payload["user_id"])
    return InboundEnvelope(
        conversation=ConversationKey(Place(channel, chat)),
        sender=identity(user, str(payload.get("team_id") or me.team)),
        event_id=ref,
        message_id=ref,
        text=text,
        sender_name=str(payload.get("user_name") or ""),
        direct=is_direct(chat),
    )
