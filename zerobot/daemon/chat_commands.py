"""The commands of the chat: which there are, and how a line is read as one. Pure."""

from dataclasses import dataclass

from zerobot.core.channel import ChatCommand

COMMANDS: tuple[ChatCommand, ...] = (
    ChatCommand(name="help", summary="what I can do"),
    ChatCommand(name="new", summary="start afresh; what was said before is forgotten here"),
    ChatCommand(name="stop", summary="stop what I am doing"),
    ChatCommand(name="status", summary="what I am doing, and with which model"),
    ChatCommand(name="usage", summary="your tokens of the last 30 days"),
    ChatCommand(name="whoami", summary="your id, as settings and operators know it"),
    ChatCommand(name="approve", summary="approve a waiting request: /approve CODE", operators_only=True),
    ChatCommand(name="deny", summary="deny a waiting request: /deny CODE [reason]", operators_only=True),
    ChatCommand(name="pair", summary="let somebody in: /pair CODE; alone: who is in", operators_only=True),
    ChatCommand(name="grants", summary="what needs no approval here; /grants revoke NUMBER", operators_only=True),
    ChatCommand(name="model", summary="the model of this chat; /model PROVIDER/MODEL changes it", operators_only=True),
    ChatCommand(name="freeze", summary="let no tool run until /unfreeze", operators_only=True),
    ChatCommand(name="unfreeze", summary="let tools run again", operators_only=True),
)
PREFIXES = ("/", "!")
"""Some platforms keep the first for themselves, so the second works everywhere."""

_BY_NAME = {command.name: command for command in COMMANDS}


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A line that is a command."""

    command: ChatCommand
    rest: str
    """What follows the name, stripped."""


def read_command_line(text: str) -> CommandLine | None:
    """Read a message as a command of ours; None when it is something to answer (also when it names no command)."""
    line = text.strip()
    if not line.startswith(PREFIXES):
        return None
    word, _, rest = line[1:].partition(" ")
    # Groups address a bot's command as /stop@name.
    name = word.partition("@")[0].partition("\n")[0].lower()
    command = _BY_NAME.get(name)
    return CommandLine(command, rest.strip()) if command else None


def is_command(text: str) -> bool:
    """Whether a message is a command of ours."""
    return read_command_line(text) is not None
