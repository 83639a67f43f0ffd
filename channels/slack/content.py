"""What a Slack message says: its text with names in place of ids, its files, and a line for whatever is neither."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from zerobot.core.envelope import Attachment

Payload = Mapping[str, Any]

FILE_ID = "id:"
"""Begins the reference to a file that has to be asked for by its id."""

# https://docs.slack.dev/messaging/formatting-message-text#retrieving-messages
_TOKEN = re.compile(r"<([^<>\n]+)>")
_AROUND = " ,:;"


@dataclass(frozen=True, slots=True)
class Me:
    """Who the bot is."""

    user: str
    """Its id as a member."""
    team: str
    """The workspace that it is installed in."""
    commands: AbstractSet[str] = frozenset()
    """The names of the chat's commands, without a slash."""


@dataclass(frozen=True, slots=True)
class Said:
    """The words of a message, and whether they name the bot."""

    text: str
    to_me: bool = False


def named_in(text: str) -> set[str]:
    """The people whom a text names by their ids."""
    inner = (token[1].partition("|")[0] for token in _TOKEN.finditer(text))
    return {each[1:] for each in inner if each[:2] in {"@U", "@W"}}


def said(text: str, me: Me, names: Mapping[str, str]) -> Said:
    """Read a message's text; what only says that it is for the bot is left out, other ids become names.

    Args:
        text: As Slack writes it.
        me: Who the bot is.
        names: Of people, by their ids.
    """
    pieces: list[str] = []
    to_me, end = False, 0
    for token in _TOKEN.finditer(text):
        before, end = text[end : token.start()], token.end()
        if token[1].partition("|")[0] == f"@{me.user}":
            to_me = True
            whole, end = _closed_up("".join(pieces) + before, text, end)
            pieces = [whole]
            continue
        pieces += [before, _readable(token[1], names)]
    words = html.unescape("".join(pieces) + text[end:]).strip()
    return Said(words or html.unescape(text).strip(), to_me=to_me or _is_command(words, me))


def _closed_up(before: str, text: str, end: int) -> tuple[str, int]:
    """Take a mention out of a sentence with the blank, or at the beginning of a line the comma, that belonged to it."""
    before = before.rstrip(" ")
    if not before or before.endswith("\n"):
        while end < len(text) and text[end] in _AROUND:
            end += 1
    return before, end


def _readable(token: str, names: Mapping[str, str]) -> str:
    """What a token stands for, still escaped."""
    target, _, label = token.partition("|")
    if target[:1] == "@":
        return (
            "@" + html.escape(names.get(target[1:], ""), quote=False)
            if names.get(target[1:])
            else "@" + (label or target[1:])
        )
    if target[:1] == "#":
        return f"#{label or target[1:]}"
    if target[:1] == "!":
        command, _, rest = target[1:].partition("^")
        return label or f"@{rest or command}"
    if not label or label == target or target.endswith(f"//{label}") or target == f"mailto:{label}":
        return label or target
    return f"{label} ({target})"


def _is_command(text: str, me: Me) -> bool:
    return text[:1] in {"/", "!"} and text[1:].partition(" ")[0].lower() in me.commands


def labels(message: Payload) -> Iterator[str]:
    """One line of text for each thing in a message that is neither text nor file: what it shares of others."""
    for shared in message.get("attachments") or ():
        if not (shared.get("is_msg_unfurl") or shared.get("is_share")):
            continue
        author = _line(shared.get("author_name") or "somebody")
        yield f"[Shared from {author}]\n{html.unescape(str(shared.get('text') or ''))}".strip()
    for file in message.get("files") or ():
        if file.get("is_external"):
            yield f"[File elsewhere: {_line(file.get('title') or 'file')}, {file.get('url_private') or ''}]"


def attachments(message: Payload) -> tuple[Attachment, ...]:
    """The files of a message; of one that lies outside of Slack there is only a line, see `labels`."""
    return tuple(_file(each) for each in message.get("files") or () if not each.get("is_external") and _ref(each))


def _ref(file: Payload) -> str:
    address = file.get("url_private_download") or file.get("url_private")
    if address:
        return str(address)
    # https://docs.slack.dev/apis/slack-connect: what another workspace shares is named by its id alone.
    return f"{FILE_ID}{file['id']}" if file.get("file_access") == "check_file_info" else ""


def _file(file: Payload) -> Attachment:
    mime = str(file.get("mimetype") or "application/octet-stream")
    kind = mime.partition("/")[0]
    size = file.get("size")
    return Attachment(
        kind=kind if kind in {"image", "audio", "video"} else "file",
        name=_line(file.get("name") or file.get("title") or "file"),
        mime=mime,
        size=size if isinstance(size, int) else None,
        ref=_ref(file),
    )


def _line(text: object) -> str:
    """Bring a text that somebody else wrote onto one line."""
    return " ".join(str(text).split())
