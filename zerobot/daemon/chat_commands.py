"""The commands of the chat: which there are, and how a line is read as one. Pure."""

import re
from dataclasses import dataclass
from difflib import get_close_matches

from zerobot.core.channel import ChatCommand

COMMANDS: tuple[ChatCommand, ...] = (
    ChatCommand(name="help", summary="what I can do"),
    ChatCommand(name="new", summary="start afresh; what was said before is forgotten here"),
    ChatCommand(name="compact", summary="sum up what was said so far, so that long talks stay quick"),
    ChatCommand(name="memory", summary="what I remember here; also export, correct, forget"),
    ChatCommand(name="stop", summary="stop what I am doing"),
    ChatCommand(name="status", summary="what I am doing, and with which model"),
    ChatCommand(name="usage", summary="your tokens of the last 30 days"),
    ChatCommand(name="whoami", summary="your id, as settings and operators know it"),
    ChatCommand(
        name="approve", summary="approve a waiting request: /approve CODE, or /approve CODE always", operators_only=True
    ),
    ChatCommand(name="deny", summary="deny a waiting request: /deny CODE [reason]", operators_only=True),
    ChatCommand(
        name="pair", summary="let somebody in: /pair CODE; out: /pair revoke ID; alone: who is in", operators_only=True
    ),
    ChatCommand(name="grants", summary="what needs no approval here; /grants revoke NUMBER", operators_only=True),
    ChatCommand(name="model", summary="the model of this chat; /model PROVIDER/MODEL changes it", operators_only=True),
    ChatCommand(name="freeze", summary="stop all tools, everywhere, until /unfreeze", operators_only=True),
    ChatCommand(name="unfreeze", summary="let tools run again", operators_only=True),
)
PREFIXES = ("/", "!")
"""Some platforms keep the first for themselves, so the second works everywhere."""

UNKNOWN = ChatCommand(name="", summary="what looks like a command and is none")
_BY_NAME = {command.name: command for command in COMMANDS}
# What platforms send by themselves when somebody opens a chat with a bot.
_ALIASES = {"start": "help"}
_LOOKS_LIKE_ONE = re.compile(r"/[a-z][a-z0-9_-]{1,23}", re.IGNORECASE)
_ALONE = frozenset({"freeze", "unfreeze", "new"})
"""What changes much and takes no words: `/freeze off` may be meant the other way round."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A line that is a command."""

    command: ChatCommand
    rest: str
    """What follows the name, stripped."""


def read_command_line(text: str) -> CommandLine | None:
    """Read a message as a command of ours; None when it is something to answer.

    A single word that looks like a command and is none is read as `UNKNOWN`; "/usr/bin is full" is something to answer.
    """
    line = text.strip()
    if not line.startswith(PREFIXES):
        return None
    word, _, rest = line[1:].partition(" ")
    # Groups address a bot's command as /stop@name.
    name = word.partition("@")[0].partition("\n")[0].lower()
    command = _BY_NAME.get(_ALIASES.get(name, name))
    if command is not None:
        return CommandLine(command, rest.strip())
    return CommandLine(UNKNOWN, line) if _LOOKS_LIKE_ONE.fullmatch(line) else None


def refusal(line: CommandLine) -> str:
    """Why a command is not carried out, whoever wrote it; empty when it can be. Markdown."""
    if line.command is UNKNOWN:
        close = get_close_matches(line.rest[1:].lower(), _BY_NAME, n=1)
        meant = f" Did you mean `/{close[0]}`?" if close else ""
        return f"There is no command `{line.rest[1:]}`.{meant} /help lists them all."
    if line.rest and line.command.name in _ALONE:
        return f"Nothing was done: `/{line.command.name}` takes no words behind it. Send it alone if you mean it."
    return ""


def is_command(text: str) -> bool:
    """Whether a message is a command of ours."""
    return read_command_line(text) is not None
