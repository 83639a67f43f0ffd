"""The menu of commands that Telegram shows beside the input field."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence

from telegram import Bot, BotCommand
from telegram.error import TelegramError

from zerobot.core.channel import ChannelServices, ChatCommand
from zerobot.core.errors import StorageError

# https://core.telegram.org/bots/api#botcommand and #setmycommands
_NAME = re.compile(r"[a-z0-9_]{1,32}")
_SUMMARY_CHARACTERS = 256
_MOST = 100
_STATE_KEY = "menu"


def menu(commands: Sequence[ChatCommand]) -> list[tuple[str, str]]:
    """The commands that everybody sees, as (name, summary), within Telegram's limits; operators' own are typed."""
    return [
        (command.name, command.summary[:_SUMMARY_CHARACTERS])
        for command in commands
        if not command.operators_only and command.summary and _NAME.fullmatch(command.name)
    ][:_MOST]


async def publish_menu(bot: Bot, services: ChannelServices) -> None:
    """Tell Telegram the menu when it differs from the one told last; a failure waits for the next connection."""
    entries = menu(services.commands)
    digest = hashlib.sha256(json.dumps([bot.id, entries]).encode()).hexdigest()
    try:
        if not entries or await services.state.get(_STATE_KEY) == digest:
            return
        await bot.set_my_commands([BotCommand(name, summary) for name, summary in entries])
        await services.state.set(_STATE_KEY, digest)
    except (TelegramError, StorageError) as error:
        services.log("telegram.menu_failed", level="warning", error=error, channel=services.name)
