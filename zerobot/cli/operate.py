"""Asks the daemon to do something if one runs, and does it itself if none does."""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import typer

from zerobot.cli.context import CliContext
from zerobot.cli.guard import refuse_child_of_holder
from zerobot.cli.terminal.kind import TERMINAL
from zerobot.config.loader import LoadedConfig, load_config, load_for_operators
from zerobot.core.errors import StateLockedError, ZerobotError
from zerobot.daemon.clock import SystemClock
from zerobot.daemon.control_client import NoDaemonError, call
from zerobot.daemon.control_wire import Result
from zerobot.daemon.costs import Costs
from zerobot.daemon.operations import NoEffects, OperationError, Operations
from zerobot.security.own_secrets import OwnSecrets, without_secrets
from zerobot.security.redact import Redactor
from zerobot.store.database import open_database
from zerobot.store.state_dir import StateDir
from zerobot.store.usage import UsageLog

OnItem = Callable[[Mapping[str, object]], None]


def load(context: typer.Context) -> LoadedConfig:
    """Load the configuration that `--config` names, or the first that is found.

    Raises:
        ConfigError: It cannot be used.
        ToolRefusedError: A tool of the daemon that holds its state directory asks.
    """
    return _refused_to_tools(load_config(_chosen(context), os.environ))


def load_state(context: typer.Context) -> LoadedConfig:
    """Load as much as commands on the state need; faults elsewhere in the configuration do not matter to them.

    Raises:
        ConfigError: The state directory is not known.
        ToolRefusedError: As for `load`.
    """
    return _refused_to_tools(load_for_operators(_chosen(context), os.environ))


def _chosen(context: typer.Context) -> Path | None:
    return context.obj.config if isinstance(context.obj, CliContext) else None


def _refused_to_tools(loaded: LoadedConfig) -> LoadedConfig:
    refuse_child_of_holder(StateDir(loaded.state_dir).lock_path)
    return loaded


def operate(loaded: LoadedConfig, method: str, params: Mapping[str, object], on_item: OnItem | None = None) -> Result:
    """Carry out one operation; see `daemon.operations`.

    Args:
        loaded: Names the state directory.
        method: The operation's name.
        params: What it takes.
        on_item: Gets what is sent before the result.

    Raises:
        OperationError, ControlError: It cannot be done.
        StorageError: The state directory cannot be used.
    """
    state = StateDir(loaded.state_dir)
    try:
        return call(state.socket_path, method, params, on_item)
    except NoDaemonError:
        pass
    try:
        return asyncio.run(_without_daemon(loaded, method, params, on_item or (lambda _: None)))
    except StateLockedError as error:
        raise ZerobotError(f"{error}; it does not answer yet: try again when it has started or ended") from None


def running(loaded: LoadedConfig) -> Result | None:
    """The status of the daemon that runs, and in `channels` how each of its channels is; None when none runs.

    A channel for terminals needs no platform, so it is not among them.

    Raises:
        ControlError: One runs and does not answer.
    """
    socket = StateDir(loaded.state_dir).socket_path
    try:
        status = call(socket, "status", {}, timeout=5.0)
        states = call(socket, "health", {}, timeout=5.0).get("channels")
    except NoDaemonError:
        return None
    tables = loaded.settings.channels
    known = {name: table.kind or name for name, table in tables.items()}
    channels = states.items() if isinstance(states, dict) else ()
    return {**status, "channels": {name: state for name, state in channels if known.get(name, name) != TERMINAL}}


async def _without_daemon(loaded: LoadedConfig, method: str, params: Mapping[str, object], on_item: OnItem) -> Result:
    state = StateDir(loaded.state_dir)

    async def send(item: Mapping[str, object]) -> None:
        on_item(item)

    clock = SystemClock()
    with state.lock(now=clock.now(), command=f"zerobot {method}"):
        async with open_database(state.database_path) as database:
            costs = Costs(loaded, UsageLog(database))
            redactor = Redactor(value for _, value in loaded.secrets)
            own = OwnSecrets(loaded.secrets, state.secret("digests"))
            operations = Operations(
                database=database,
                effects=NoEffects(database),
                costs=costs,
                clean=without_secrets(redactor, own),
                receipt_key=state.receipt_key,
                clock=clock,
            )
            operation = operations.table().get(method)
            if operation is None:
                raise OperationError(f"there is no operation {method!r}")
            return await operation(params, send)
