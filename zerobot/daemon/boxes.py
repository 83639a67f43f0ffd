"""The box for commands, as it is configured: found at the start, demanded where the owner demands it."""

import asyncio
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from zerobot.config.loader import LoadedConfig
from zerobot.core.channel import Finding
from zerobot.core.errors import ConfigError
from zerobot.core.log import EventLog
from zerobot.sandbox.box import Box
from zerobot.sandbox.find import find_box
from zerobot.security.bounds import Bounds
from zerobot.security.sandbox import SandboxKind


async def open_box(config: LoadedConfig, bounds: Bounds, log: EventLog) -> Box:
    """Find what holds commands, without holding up anybody else.

    Args:
        config: What was configured. Its state directory and its workspace are there.
        bounds: What commands may reach.
        log: Is told what was found.

    Raises:
        ConfigError: The one kind that is demanded does not work here.
    """
    choice = config.settings.security.sandbox
    box = await asyncio.to_thread(find_box, choice, bounds, config.state_dir)
    if not box.state.holds and choice not in ("auto", "off"):
        raise ConfigError([f"security.sandbox: {box.state.why}"])
    missing = box.state.kind is SandboxKind.NONE
    log("sandbox.found", level="warning" if missing else "info", kind=box.state.kind.value, why=box.state.why)
    return box


def sandbox_finding(config: LoadedConfig, bounds: Bounds) -> Finding:
    """What `zerobot doctor` says of the sandbox, found by trying; without a workspace yet, in an empty folder."""
    choice = config.settings.security.sandbox
    beside = config.state_dir if config.state_dir.is_dir() else None
    with ExitStack() as stack:
        if not bounds.workspace.is_dir():
            folder = stack.enter_context(TemporaryDirectory())
            bounds = replace(bounds, workspace=Path(folder).resolve())
        state = find_box(choice, bounds, beside).state
    if state.holds:
        return Finding("ok", "sandbox", str(state))
    if state.declined:
        return Finding("warn", "sandbox", str(state), 'security.sandbox = "auto" uses the best that works here')
    return Finding("warn" if choice == "auto" else "fail", "sandbox", str(state), state.why)
