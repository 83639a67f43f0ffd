"""The composition root: builds everything once, runs it, and takes it down in order."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from pydantic import BaseModel

from zerobot.config.loader import LoadedConfig
from zerobot.core.admission import Admission, fold_handle
from zerobot.core.channel import Channel, ChannelKind, ChannelServices
from zerobot.core.channel_settings import ChannelSettings
from zerobot.core.clock import Clock
from zerobot.core.errors import ConfigError
from zerobot.core.log import BoundLog, EventLog
from zerobot.core.places import Identity, Place
from zerobot.daemon.chat_commands import COMMANDS
from zerobot.daemon.clock import SystemClock
from zerobot.daemon.engine import Engine
from zerobot.daemon.http import HttpClients
from zerobot.daemon.intake import ChannelIntake
from zerobot.daemon.logs import stderr_log
from zerobot.delivery.line import OpenChannel
from zerobot.security.filenames import safe_name
from zerobot.security.redact import Redactor
from zerobot.security.visible import escape
from zerobot.store.channel_state import channel_state
from zerobot.store.database import Database, open_database
from zerobot.store.state_dir import StateDir

DELIVERY_GRACE = 5.0
"""Seconds that replies get to go out at a graceful stop; the rest follows at the next start."""

ExtraChannels = Mapping[str, tuple[ChannelKind, ChannelSettings]]
"""Channels without a table: the terminal of `zerobot chat`."""


async def run_daemon(
    config: LoadedConfig,
    *,
    only_channels: tuple[str, ...] | None = None,
    extra_channels: ExtraChannels | None = None,
    stop: asyncio.Event | None = None,
    started: "asyncio.Future[Engine] | None" = None,
    log: EventLog | None = None,
    command: str = "zerobot run",
) -> None:
    """Run the daemon until it is asked to stop, then stop gracefully.

    Args:
        config: What is configured.
        only_channels: Names of the configured channels to open; None: all that are enabled.
        extra_channels: Channels to open beside them.
        stop: Ends it; None: SIGTERM and SIGINT do. A second signal ends the process at once.
        started: Gets the engine when everything is connected or parked.
        log: Where events go; None: stderr, as configured.
        command: What holds the state directory, for whoever comes second.

    Raises:
        StateLockedError: Another daemon holds the state directory.
        StorageError: The state directory or the database cannot be used.
        ConfigError: A channel's library is missing.
    """
    daemon = config.settings.daemon
    redactor = Redactor(value for _, value in config.secrets)
    log = log or stderr_log(daemon.log_level, redactor, daemon.log_format)
    clock = SystemClock()
    state = StateDir(config.state_dir)
    with state.lock(now=clock.now(), command=command):
        for warning in (*config.warnings, *state.prepare()):
            log("config.warning", level="warning", text=warning)
        config.workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
        async with _signals(stop) as asked, open_database(state.database_path) as database, HttpClients() as http:
            channels = _open_channels(config, only_channels, extra_channels or {}, database, http, clock, log)
            engine = Engine(config, state, database, channels, http, redactor, clock, log)
            await _run(config, engine, channels, asked, started, log)
    log("daemon.stopped")


async def _run(
    config: LoadedConfig,
    engine: Engine,
    channels: Mapping[str, OpenChannel],
    asked: asyncio.Event,
    started: "asyncio.Future[Engine] | None",
    log: EventLog,
) -> None:
    await engine.access.load()
    intakes = {name: _intake(config, engine, each) for name, each in channels.items()}
    try:
        async with asyncio.TaskGroup() as group:
            services = [
                group.create_task(engine.delivery.run(), name="delivery"),
                group.create_task(engine.desk.run(), name="desk"),
                group.create_task(engine.dispatcher.run(), name="dispatcher"),
                group.create_task(engine.lane.run(), name="commands"),
                group.create_task(engine.serve_control(), name="control socket"),
                group.create_task(engine.housekeeping(), name="housekeeping"),
            ]
            receiving = group.create_task(engine.supervisor.run(intakes), name="channels")
            announcing = group.create_task(_announce(config, engine, started, log), name="announcing")
            await asked.wait()
            announcing.cancel()
            receiving.cancel()
            await engine.dispatcher.drain(config.settings.daemon.shutdown_grace)
            await engine.delivery.drain(DELIVERY_GRACE)
            for task in services:
                task.cancel()
    finally:
        await engine.close()
        for each in channels.values():
            with contextlib.suppress(Exception):  # a platform that is gone must not keep the others from closing
                await each.channel.close()


async def _announce(
    config: LoadedConfig, engine: Engine, started: "asyncio.Future[Engine] | None", log: EventLog
) -> None:
    await engine.supervisor.ready()
    if not config.settings.operators.users and not engine.has_terminal:
        log("config.warning", level="warning", text="[operators] users is empty: supervised tools will be refused")
    log("daemon.ready", parked=sorted(engine.supervisor.parked), channels=sorted(engine.supervisor.health()))
    if started is not None and not started.done():
        started.set_result(engine)


def _open_channels(
    config: LoadedConfig,
    only: tuple[str, ...] | None,
    extra: ExtraChannels,
    database: Database,
    http: HttpClients,
    clock: Clock,
    log: EventLog,
) -> dict[str, OpenChannel]:
    wanted: dict[str, tuple[ChannelKind, ChannelSettings]] = {
        name: (config.kinds.channels[table.kind or name](), table)
        for name, table in config.settings.channels.items()
        if table.enabled and (only is None or name in only)
    }
    opened = {}
    for name, (kind, settings) in {**wanted, **extra}.items():
        services = ChannelServices(
            name=name,
            http=http.guarded,
            escape=escape,
            safe_name=safe_name,
            clock=clock,
            log=BoundLog(log, channel=name),
            commands=COMMANDS,
            state=channel_state(database, name),
        )
        channel = _open(kind, settings, services)
        opened[name] = OpenChannel(name=name, channel=channel, kind=kind, drafts=settings.drafts == "edit")
    return opened


def _open(kind: ChannelKind, settings: BaseModel, services: ChannelServices) -> Channel:
    try:
        return kind.open(settings, services)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != kind.library:
            raise
        package = f"zerobot[{kind.extra}]"
        raise ConfigError([f"channels.{services.name}: its library is missing; pip install '{package}'"]) from error


def _intake(config: LoadedConfig, engine: Engine, opened: OpenChannel) -> ChannelIntake:
    table = config.settings.channels.get(opened.name, ChannelSettings())
    platform = opened.kind.name
    local = {each for each in (engine.local_operator,) if each and each.platform == platform}
    listed = [user for user in table.allowed_users if user != "*"]
    admission = Admission(
        identities=frozenset(Identity(platform, user) for user in listed if not user.startswith("@")),
        handles=frozenset(fold_handle(user) for user in listed if user.startswith("@")),
        everyone="*" in table.allowed_users,
        pairing=table.pairing,
        operators=frozenset(config.settings.operators.identities) | local,
    )
    return ChannelIntake(opened.name, admission, engine.intake_wires, require_mention=table.require_mention)


@asynccontextmanager
async def _signals(stop: asyncio.Event | None) -> AsyncIterator[asyncio.Event]:
    """What ends the daemon: the event that was given, else SIGTERM and SIGINT; the second signal ends the process."""
    if stop is not None:
        yield stop
        return
    asked = asyncio.Event()

    def on_signal() -> None:
        if asked.is_set():
            # Everything that matters is in the store, so the process can just end.
            os._exit(130)
        asked.set()

    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, on_signal)
            stack.callback(loop.remove_signal_handler, number)
        yield asked
