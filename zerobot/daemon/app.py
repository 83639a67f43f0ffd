"""The composition root: builds everything once, runs it, and takes it down in order."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from pydantic import BaseModel

from zerobot.config.loader import LoadedConfig
from zerobot.core.admission import Admission, fold_handle
from zerobot.core.channel import Channel, ChannelKind, ChannelServices
from zerobot.core.channel_settings import ChannelSettings
from zerobot.core.clock import Clock
from zerobot.core.errors import ConfigError
from zerobot.core.loading import loading
from zerobot.core.log import BoundLog, EventLog
from zerobot.core.places import Identity
from zerobot.daemon.absent import declare_absent
from zerobot.daemon.alarm import ObservedDatabase, StorageAlarm
from zerobot.daemon.chat_commands import COMMANDS
from zerobot.daemon.clock import SystemClock
from zerobot.daemon.control import control_socket
from zerobot.daemon.control_handlers import control_handlers
from zerobot.daemon.engine import Engine, House, build_engine
from zerobot.daemon.housekeeping import keep_house
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

STRAY_PATIENCE = 2.0
"""Seconds that tools which ignored their cancellation get at the very end."""
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
    declare_absent()
    daemon = config.settings.daemon
    redactor = Redactor(value for _, value in config.secrets)
    log = log or stderr_log(daemon.log_level, redactor, daemon.log_format)
    clock = SystemClock()
    state = StateDir(config.state_dir)
    with state.lock(now=clock.now(), command=command):
        for warning in (*config.warnings, *state.prepare()):
            log("config.warning", level="warning", text=warning)
        config.workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
        async with _signals(stop) as asked, open_database(state.database_path) as opened, HttpClients() as http:
            database = ObservedDatabase(opened)
            services = _services(database, http, clock, log)
            house = House(
                config=config,
                state=state,
                database=database,
                channels=_open_channels(config, only_channels, extra_channels or {}, services),
                http=http,
                redactor=redactor,
                clock=clock,
                log=log,
            )
            try:
                engine = build_engine(house)
                operators = config.settings.operators.identities
                alarm = StorageAlarm(database, engine.delivery, operators, clock, log)
                await _run(engine, alarm, asked, started)
            finally:
                for each in house.channels.values():
                    with contextlib.suppress(Exception):  # a platform that is gone must not keep the others open
                        await each.channel.close()
    log("daemon.stopped")


async def _run(
    engine: Engine, alarm: StorageAlarm, asked: asyncio.Event, started: "asyncio.Future[Engine] | None"
) -> None:
    """Run the parts until somebody asks to stop; then take in nothing, finish what can be finished, leave the rest."""
    house = engine.house
    await engine.access.load()
    intakes = {name: _intake(engine, each) for name, each in house.channels.items()}
    async with (
        control_socket(house.state.socket_path, control_handlers(engine), house.log),
        asyncio.TaskGroup() as group,
    ):
        parts = [
            group.create_task(engine.delivery.run(), name="delivery"),
            group.create_task(engine.desk.run(), name="desk"),
            group.create_task(engine.dispatcher.run(), name="dispatcher"),
            group.create_task(engine.lane.run(), name="commands"),
            group.create_task(keep_house(house, engine.books.inbox), name="housekeeping"),
            group.create_task(alarm.run(), name="storage alarm"),
        ]
        receiving = group.create_task(engine.supervisor.run(intakes), name="channels")
        announcing = group.create_task(_announce(engine, started), name="announcing")
        await asked.wait()
        house.log("daemon.stopping", turns=engine.dispatcher.running)
        announcing.cancel()
        receiving.cancel()
        await engine.dispatcher.drain(house.config.settings.daemon.shutdown_grace)
        await engine.delivery.drain(DELIVERY_GRACE)
        await engine.strays.close(STRAY_PATIENCE)
        for part in parts:
            part.cancel()


async def _announce(engine: Engine, started: "asyncio.Future[Engine] | None") -> None:
    await engine.supervisor.ready()
    house = engine.house
    if not house.config.settings.operators.users:
        house.log("config.warning", level="warning", text="[operators] users is empty: supervised tools are refused")
    house.log("daemon.ready", parked=sorted(engine.supervisor.parked), channels=sorted(engine.supervisor.health()))
    if started is not None and not started.done():
        started.set_result(engine)


ServicesFor = Callable[[str], ChannelServices]


def _services(database: Database, http: HttpClients, clock: Clock, log: EventLog) -> ServicesFor:
    def services(name: str) -> ChannelServices:
        return ChannelServices(
            name=name,
            http=http.guarded,
            escape=escape,
            safe_name=safe_name,
            clock=clock,
            log=BoundLog(log, channel=name),
            commands=COMMANDS,
            state=channel_state(database, name),
        )

    return services


def _open_channels(
    config: LoadedConfig, only: tuple[str, ...] | None, extra: ExtraChannels, services: ServicesFor
) -> dict[str, OpenChannel]:
    wanted: dict[str, tuple[ChannelKind, ChannelSettings]] = {
        name: (config.kinds.channels[table.kind or name](), table)
        for name, table in config.settings.channels.items()
        if table.enabled and (only is None or name in only)
    }
    opened = {}
    for name, (kind, settings) in {**wanted, **extra}.items():
        channel = _open(kind, settings, services(name))
        opened[name] = OpenChannel(name=name, channel=channel, kind=kind, drafts=settings.drafts == "edit")
    return opened


def _open(kind: ChannelKind, settings: BaseModel, services: ChannelServices) -> Channel:
    try:
        with loading():
            return kind.open(settings, services)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != kind.library:
            raise
        package = f"zerobot[{kind.extra}]"
        raise ConfigError([f"channels.{services.name}: its library is missing; pip install '{package}'"]) from error


def _intake(engine: Engine, opened: OpenChannel) -> ChannelIntake:
    house = engine.house
    settings = house.config.settings
    table = settings.channels.get(opened.name, ChannelSettings())
    platform = opened.kind.name
    local = house.local_operator
    listed = [user for user in table.allowed_users if user != "*"]
    admission = Admission(
        identities=frozenset(Identity(platform, user) for user in listed if not user.startswith("@")),
        handles=frozenset(fold_handle(user) for user in listed if user.startswith("@")),
        everyone="*" in table.allowed_users,
        pairing=table.pairing,
        operators=frozenset(settings.operators.identities) | ({local} if local else set()),
    )
    return ChannelIntake(opened.name, admission, engine.intake, require_mention=table.require_mention)


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
