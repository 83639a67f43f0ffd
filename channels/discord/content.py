"""What a Discord message says: its text with names in place of ids, its files, and a line for whatever is neither."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from zerobot.core.envelope import Attachment, Quote

Payload = Mapping[str, Any]

QUOTE_CHARACTERS = 1500
"""As much of a quoted message as goes to the model; a whole one would be up to 4000."""
# https://discord.com/developers/docs/reference#message-formatting
_TOKEN = re.compile(r"<(?:@!?(?P<user>\d+)|@&(?P<role>\d+)|a?:(?P<emoji>\w+):\d+)>")
_AROUND = " ,:;"


@dataclass(frozen=True, slots=True)
class Me:
    """Who the bot is."""

    id: str
    name: str = ""
    roles: AbstractSet[str] = field(default_factory=frozenset)
    """Its roles where the message was written."""
    commands: AbstractSet[str] = frozenset()
    """The names of the chat's commands, without the slash."""
    hears_bots: bool = False
    """Whether what other bots say counts."""


@dataclass(frozen=True, slots=True)
class Said:
    """The words of a message, and whether they name the bot."""

    text: str
    to_me: bool = False


def said(message: Payload, me: Me) -> Said:
    """Read a message's text; what only says that it is for the bot is left out, other ids become names."""
    names = {str(user["id"]): display_name(user) for user in message.get("mentions", ())}
    text = message.get("content") or ""
    pieces: list[str] = []
    to_me, end = False, 0
    for token in _TOKEN.finditer(text):
        before = text[end : token.start()]
        end = token.end()
        if token["user"] == me.id or token["role"] in me.roles:
            to_me = True
            before, end = _closed_up("".join(pieces) + before, text, end)
            pieces = [before]
            continue
        pieces += [before, _readable(token, names)]
    whole = ("".join(pieces) + text[end:]).strip()
    return Said(whole or text.strip(), to_me=to_me or _is_command(whole, me))


def _closed_up(before: str, text: str, end: int) -> tuple[str, int]:
    """Take a mention out of a sentence with the blank, or at the beginning of a line the comma, that belonged to it."""
    before = before.rstrip(" ")
    if not before or before.endswith("\n"):
        while end < len(text) and text[end] in _AROUND:
            end += 1
    return before, end


def _readable(token: re.Match[str], names: Mapping[str, str]) -> str:
    if token["emoji"]:
        return f":{token['emoji']}:"
    name = names.get(token["user"] or "")
    return f"@{name}" if name else token[0]


def _is_command(text: str, me: Me) -> bool:
    return text.startswith("/") and text[1:].partition(" ")[0].lower() in me.commands


def display_name(user: Payload, member: Payload | None = None) -> str:
    """How people see somebody: by the name of this server, else by the account's."""
    return _line((member or {}).get("nick") or user.get("global_name") or user.get("username") or "somebody")


def labels(message: Payload) -> list[str]:
    """One line of text for each thing in a message that is neither text nor file, and the words of what it forwards."""
    return [*_forwarded(message), *_things(message)]


def _forwarded(message: Payload) -> Iterator[str]:
    for snapshot in message.get("message_snapshots", ()):
        yield f"[Forwarded]\n{(snapshot.get('message') or {}).get('content') or ''}".strip()


def _things(message: Payload) -> Iterator[str]:
    for sticker in message.get("sticker_items", ()):
        yield f"[Sticker: {_line(sticker.get('name', ''))}]"
    poll = message.get("poll")
    if poll:
        options = "; ".join(_line(each.get("poll_media", {}).get("text", "")) for each in poll.get("answers", ()))
        yield f"[Poll: {_line(poll.get('question', {}).get('text', ''))} ({options})]"


def _line(text: str) -> str:
    """Bring a text that somebody else wrote onto one line."""
    return " ".join(text.split())


def attachments(message: Payload) -> tuple[Attachment, ...]:
    """The files of a message, and of what it forwards."""
    forwarded = [(each.get("message") or {}) for each in message.get("message_snapshots", ())]
    return tuple(_file(each) for part in (message, *forwarded) for each in part.get("attachments", ()))


def _file(attachment: Payload) -> Attachment:
    mime = str(attachment.get("content_type") or "application/octet-stream").partition(";")[0]
    kind = mime.partition("/")[0]
    return Attachment(
        kind=kind if kind in {"image", "audio", "video"} else "file",
        name=str(attachment.get("filename") or "file"),
        mime=mime,
        size=attachment.get("size"),
        ref=str(attachment["url"]),
    )


def quote(message: Payload) -> Quote | None:
    """What a message answers, as far as Discord still has it."""
    answered = message.get("referenced_message")
    if not answered or message.get("type") != REPLY:
        return None
    names = Me(id="")
    text = "\n".join([*labels(answered), said(answered, names).text, *_file_lines(answered)]).strip()
    if len(text) > QUOTE_CHARACTERS:
        text = text[:QUOTE_CHARACTERS].rstrip() + " …"
    return Quote(author=display_name(answered.get("author", {})), text=text) if text else None


REPLY = 19
"""The type of a message that answers another: https://discord.com/developers/docs/resources/message#message-object."""


def _file_lines(message: Payload) -> Sequence[str]:
    return [f"[{file.kind}: {_line(file.name)}]" for file in attachments(message)]
