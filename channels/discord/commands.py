"""The chat's commands as slash commands of Discord, told only when they have changed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from channels.discord.decode import ASK
from channels.discord.rest import LinkError, Rest, RestError
from channels.discord.settings import DiscordSettings
from zerobot.core.channel import ChannelServices, ChatCommand
from zerobot.core.errors import StorageError

# https://discord.com/developers/docs/interactions/application-commands#application-command-object
_NAME = re.compile(r"[-_a-z0-9]{1,32}")
_DESCRIPTION_CHARACTERS = 100
_MOST = 100
_CHAT_INPUT, _STRING = 1, 3
_IN_SERVER, _WITH_BOT = 0, 1
_WORDS_CHARACTERS = 6000
_STATE_KEY = "commands"


def slash_commands(commands: Sequence[ChatCommand]) -> list[dict[str, Any]]:
    """The commands as Discord wants them, `/ask` first; whatever follows a command's name is one line of words."""
    ask = _command(ASK, "ask me something", {"name": "prompt", "description": "what you want to say", "required": True})
    words = {"name": "words", "description": "what follows the command, if anything", "required": False}
    return [
        ask,
        *(
            _command(command.name, command.summary, words)
            for command in commands
            if command.summary and _NAME.fullmatch(command.name) and command.name != ASK
        ),
    ][:_MOST]


def _command(name: str, summary: str, option: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "type": _CHAT_INPUT,
        "description": summary[:_DESCRIPTION_CHARACTERS],
        "options": [option | {"type": _STRING, "max_length": _WORDS_CHARACTERS}],
        "contexts": [_IN_SERVER, _WITH_BOT],
        "integration_types": [0],
    }


async def publish_commands(rest: Rest, application: str, settings: DiscordSettings, services: ChannelServices) -> None:
    """Tell Discord the commands when they differ from those told last; a failure waits for the next connection."""
    wanted = slash_commands(services.commands)
    digest = _digest(application, settings, wanted)
    try:
        if await services.state.get(_STATE_KEY) == digest:
            return
        scope = settings.command_scope
        await rest.bulk_upsert_global_commands(application, wanted if scope == "global" else [])
        for guild in settings.allowed_guilds:
            await rest.bulk_upsert_guild_commands(application, guild, wanted if scope == "guild" else [])
        await services.state.set(_STATE_KEY, digest)
    except (RestError, LinkError, StorageError) as error:
        services.log("discord.commands_failed", level="warning", error=error, channel=services.name)


def _digest(application: str, settings: DiscordSettings, commands: Sequence[dict[str, Any]]) -> str:
    told = [application, settings.command_scope, list(settings.allowed_guilds), commands]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()
