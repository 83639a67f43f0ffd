"""Asks the daemon to do something if one runs, and does it itself if none does."""

import asyncio
import os
from collections.abc import Callable, Mapping

import typer

from zerobot.cli.context import CliContext
from zerobot.cli.guard import refuse_child_of_holder
from zerobot.config.loader import LoadedConfig, load_config
from zerobot.core.errors import StateLockedError, ZerobotError
from zerobot.daemon.clock import SystemClock
from zerobot.daemon.control import NoDaemonError, call
from zerobot.daemon.costs import Costs
from zerobot.daemon.operations import NoEffects, OperationError, Operations, Result
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
    path = context.obj.config if isinstance(context.obj, CliContext) else None
    loaded = load_config(path, os.environ)
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
    """The status of the daemon that runs; None when none does.

    Raises:
        ControlError: One runs and does not answer.
    """
    try:
        return call(StateDir(loaded.state_dir).socket_path, "status", {}, timeout=5.0)
    except NoDaemonError:
        return None


async def _without_daemon(loaded: LoadedConfig, method: str, params: Mapping[str, object], on_item: OnItem) -> Result:
    state = StateDir(loaded.state_dir)

    async def send(item: Mapping[str, object]) -> None:
        on_item(item)

    clock = SystemClock()
    with state.lock(now=clock.now(), command=f"zerobot {method}"):
        async with open_database(state.database_path) as database:
            costs = Costs(loaded, UsageLog(database))
            operations = Operations(database=database, effects=NoEffects(), costs=costs, clock=clock)
            operation = operations.table().get(method)
            if operation is None:
                raise OperationError(f"there is no operation {method!r}")
            return await operation(params, send)
