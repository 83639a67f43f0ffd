"""Keeps tools from operating the daemon that runs them (security spec R06).

The daemon's own side refuses them too (`daemon.control`); this one also covers commands that work without a daemon.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from zerobot.core.errors import ZerobotError
from zerobot.daemon.ancestry import ancestors

MARK = "ZEROBOT_TOOL_CALL"
"""Stands in the environment of whatever a tool starts."""

_REFUSAL = "a tool may not operate the bot that runs it; ask the operator to do this"


class ToolRefusedError(ZerobotError):
    """The command was started by a tool of the daemon."""


def refuse_marked(environ: Mapping[str, str], proc: Path = Path("/proc")) -> None:
    """Refuse a process that is marked as a tool's, or descends from one that is.

    Raises:
        ToolRefusedError: It is.
    """
    if MARK in environ or any(_is_marked(proc / str(pid) / "environ") for pid in ancestors(os.getpid(), proc)):
        raise ToolRefusedError(_REFUSAL)


def refuse_child_of_holder(lock: Path) -> None:
    """Refuse a process that descends from the one that holds a state directory.

    Args:
        lock: The lock's file; who holds it has written his process id there.

    Raises:
        ToolRefusedError: It does.
    """
    try:
        holder = json.loads(lock.read_text(encoding="utf-8"))["pid"]
    except (OSError, ValueError, KeyError, TypeError):
        # Nobody holds it.
        return
    if holder in ancestors(os.getpid()):
        raise ToolRefusedError(_REFUSAL)


def _is_marked(environment: Path) -> bool:
    try:
        return any(entry.startswith(f"{MARK}=".encode()) for entry in environment.read_bytes().split(b"\0"))
    except OSError:
        # Another user's process: none of our tools.
        return False
