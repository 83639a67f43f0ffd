"""What Discord's double refuses of messages and commands, and whom a message notifies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tests.platforms.discord_world import Json, Message, RefusalError, StoredFile, bad_form

# https://discord.com/developers/docs/resources/message#create-message
CHARACTERS = 2000
NONCE_CHARACTERS = 25
_LOADING = 1 << 7
_MESSAGE_KEYS = frozenset(
    {"content", "nonce", "enforce_nonce", "tts", "embeds", "allowed_mentions", "message_reference", "components",
     "sticker_ids", "attachments", "flags", "poll"}
)  # fmt: skip
_MENTION = re.compile(r"(?<!\\)<@(&?)!?(\d+)>|(?<![\w`])@(everyone|here)\b")


def change(message: Message, payload: Json) -> None:
    """Change a message by the payload of an edit."""
    if "content" in payload:
        message.text = payload["content"] or ""
        message.history.append(message.text)
        message.flags &= ~_LOADING
    if "components" in payload:
        message.components = payload["components"]
    message.pings += pings(payload)


def pings(payload: Json) -> list[str]:
    """Whom a message notifies: without `allowed_mentions`, everybody whom its text names."""
    allowed = payload.get("allowed_mentions")
    found = [
        match[3] or match[2] for match in _MENTION.finditer(payload.get("content") or "")
    ]  # fmt: skip
    if allowed is None:
        return found
    kinds = allowed.get("parse", [])
    return [each for each in found if ("everyone" if each in {"everyone", "here"} else "users") in kinds]


def checked_message(
    payload: Any, files: Sequence[StoredFile], *, allowed_flags: int, is_edit: bool = False, has_files: bool = False
) -> None:
    """Check what is sent.

    Raises:
        RefusalError: As Discord does.
    """
    if not isinstance(payload, dict):
        raise bad_form("no object")
    unknown = payload.keys() - _MESSAGE_KEYS
    if unknown:
        raise bad_form(f"unknown: {sorted(unknown)}")
    content = payload.get("content") or ""
    if len(content) > CHARACTERS:
        raise bad_form("content: Must be 2000 or fewer in length.")
    if not content.strip() and not (files or has_files or (is_edit and "content" not in payload)):
        raise RefusalError(400, 50006, "Cannot send an empty message")
    if payload.get("flags", 0) & ~allowed_flags:
        raise bad_form("flags")
    if len(str(payload.get("nonce", ""))) > NONCE_CHARACTERS:
        raise bad_form("nonce: Must be 25 or fewer in length.")
    _check_components(payload.get("components", []))


def _check_components(rows: Any) -> None:
    if not isinstance(rows, list) or len(rows) > 5:
        raise bad_form("components")
    idents: list[str] = []
    for row in rows:
        buttons = row.get("components", [])
        if row.get("type") != 1 or not 1 <= len(buttons) <= 5:
            raise bad_form("components: a row has 1 to 5 buttons")
        for button in buttons:
            if button.get("type") != 2 or button.get("style") not in {1, 2, 3, 4}:
                raise bad_form("components: no button")
            if not 1 <= len(button.get("label", "")) <= 80 or not 1 <= len(button.get("custom_id", "")) <= 100:
                raise bad_form("components: label or custom_id")
            idents.append(button["custom_id"])
    if len(set(idents)) != len(idents):
        raise bad_form("components: COMPONENT_CUSTOM_ID_DUPLICATED")


def checked_commands(commands: Any) -> list[Json]:
    """Check slash commands: https://discord.com/developers/docs/interactions/application-commands.

    Raises:
        RefusalError: As Discord does.
    """
    if not isinstance(commands, list) or len(commands) > 100:
        raise RefusalError(400, 30032, "Maximum number of application commands reached (100)")
    for command in commands:
        if not re.fullmatch(r"[-_'a-z0-9]{1,32}", command.get("name", "")):
            raise bad_form("name")
        if not 1 <= len(command.get("description", "")) <= 100:
            raise bad_form("description: Must be between 1 and 100 in length.")
        for option in command.get("options", []):
            if option.get("type") != 3 or not option.get("name") or not 1 <= len(option.get("description", "")) <= 100:
                raise bad_form("options")
            if not 1 <= option.get("max_length", 1) <= 6000:
                raise bad_form("max_length")
    if len({command["name"] for command in commands}) != len(commands):
        raise bad_form("name: Application command names must be unique")
    return [dict(command) for command in commands]
