"""The composition root: builds everything once, runs it, and takes it down in order."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from pydantic import BaseModel

from zerobot.config.checks import NO_OPERATORS
from zerobot.config.loader import LoadedConfig
from zerobot.core.channel import Channel, ChannelKind, ChannelServices
from zerobot.core.channel_settings import ChannelSettings
from zerobot.core.clock import Clock
from zerobot.core.errors import ConfigError
from zerobot.core.loading import loading
from zerobot.core.log import BoundLog, EventLog
from zerobot.daemon.absent import declare_absent
from zerobot.daemon.access_state import configured_bounds
from zerobot.daemon.alarm import ObservedDatabase, StorageAlarm
from zerobot.daemon.boxes import open_box
from zerobot.daemon.channel_services import channel_services
from zerobot.daemon.clock import SystemClock
from zerobot.daemon.control import control_socket
from zerobot.daemon.control_handlers import control_handlers
from zerobot.daemon.foundation import Foundation
from zerobot.daemon.housekeeping import keep_house
from zerobot.daemon.http import HttpClients
from zerobot.daemon.intake import ChannelIntake
from zerobot.daemon.logs import stderr_log
from zerobot.daemon.parts import Parts, build_parts
from zerobot.daemon.plugins import open_plugins
from zerobot.delivery.fence import fenced
from zerobot.delivery.line import OpenChannel
from zerobot.security.own_secrets import OwnSecrets
from zerobot.security.redact import Redactor
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
    started: "asyncio.Future[Parts] | None" = None,
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
        ConfigError: A channel's library is missing, or the sandbox that is demanded does not work.
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
        async with (
            _signals(stop) as asked,
            open_database(state.database_path) as opened,
            HttpClients(config.settings) as http,
        ):
            database = ObservedDatabase(opened)
            services = _services(database, http, clock, log)
            bounds = configured_bounds(config)
            box = await open_box(config, bounds, log)
            foundation = Foundation(
                config=config,
                state=state,
                database=database,
                channels=_open_channels(config, only_channels, extra_channels or {}, services),
                plugin=open_plugins(config, http, clock, log),
                http=http,
                redactor=redactor,
                bounds=bounds,
                box=box,
                own_secrets=OwnSecrets(config.secrets, state.secret("digests")),
                clock=clock,
                log=log,
            )
            try:
                parts = build_parts(foundation)
                operators = config.settings.operators.identities
                alarm = StorageAlarm(database, parts.delivery, operators, clock, log)
                await _run(parts, alarm, asked, started)
            finally:
                for each in foundation.channels.values():
                    # A platform that is gone must not keep the others open.
                    with fenced(log, "channel.close_failed", "warning", channel=each.name):
                        await each.channel.close()
                await foundation.plugin.close()
    log("daemon.stopped")


async def _run(
    parts: Parts, alarm: StorageAlarm, asked: asyncio.Event, started: "asyncio.Future[Parts] | None"
) -> None:
    """Run the parts until somebody asks to stop; then take in nothing, finish what can be finished, leave the rest."""
    foundation = parts.foundation
    await parts.access.load()
    intakes = {name: _intake(parts, each) for name, each in foundation.channels.items()}
    async with (
        control_socket(foundation.state.socket_path, control_handlers(parts), foundation.log),
        asyncio.TaskGroup() as group,
    ):
        services = [
            group.create_task(parts.delivery.run(), name="delivery"),
            group.create_task(parts.wards.desk.run(), name="desk"),
            group.create_task(parts.wards.doorbell.run(), name="doorbell"),
            group.create_task(parts.dispatcher.run(), name="dispatcher"),
            group.create_task(parts.lane.run(), name="commands"),
            group.create_task(keep_house(foundation, parts.books.inbox), name="housekeeping"),
            group.create_task(alarm.run(), name="storage alarm"),
        ]
        if parts.budget_alarm is not None:
            services.append(group.create_task(parts.budget_alarm.run(), name="budget alarm"))
        receiving = group.create_task(parts.supervisor.run(intakes), name="channels")
        announcing = group.create_task(_announce(parts, started), name="announcing")
        await asked.wait()
        foundation.log("daemon.stopping", turns=parts.dispatcher.running)
        announcing.cancel()
        receiving.cancel()
        await parts.dispatcher.drain(foundation.config.settings.daemon.shutdown_grace)
        await parts.delivery.drain(DELIVERY_GRACE)
        await parts.strays.close(STRAY_PATIENCE)
        for service in services:
            service.cancel()


async def _announce(parts: Parts, started: "asyncio.Future[Parts] | None") -> None:
    await parts.supervisor.ready()
    foundation = parts.foundation
    # With a channel on, the configuration's own warnings have said it.
    if not foundation.config.settings.operators.users and NO_OPERATORS not in foundation.config.warnings:
        foundation.log("config.warning", level="warning", text=NO_OPERATORS)
    foundation.log("daemon.ready", parked=sorted(parts.supervisor.parked), channels=sorted(parts.supervisor.health()))
    if started is not None and not started.done():
        started.set_result(parts)


ServicesFor = Callable[[str], ChannelServices]


def _services(database: Database, http: HttpClients, clock: Clock, log: EventLog) -> ServicesFor:
    def services(name: str) -> ChannelServices:
        return channel_services(name, http, clock, BoundLog(log, channel=name), channel_state(database, name))

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
        opened[name] = OpenChannel(
            name=name,
            channel=channel,
            kind=kind,
            drafts=settings.drafts == "edit",
            notice_after=_notice_after(kind, settings),
        )
    return opened


def _notice_after(kind: ChannelKind, settings: ChannelSettings) -> float | None:
    after = kind.capabilities.notice_after if settings.notice_after is None else settings.notice_after
    return after or None


def _open(kind: ChannelKind, settings: BaseModel, services: ChannelServices) -> Channel:
    try:
        with loading():
            return kind.open(settings, services)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != kind.library:
            raise
        package = f"zerobot[{kind.extra}]"
        raise ConfigError([f"channels.{services.name}: its library is missing; pip install '{package}'"]) from error


def _intake(parts: Parts, opened: OpenChannel) -> ChannelIntake:
    foundation = parts.foundation
    settings = foundation.config.settings
    table = settings.channels.get(opened.name, ChannelSettings())
    return ChannelIntake(
        opened.name,
        lambda: parts.wards.door.admission(opened.name),
        parts.intake,
        require_mention=table.require_mention,
        interrupts=settings.agent_for(opened.name).on_message_during_turn == "interrupt",
        command_prefix=opened.kind.capabilities.command_prefix,
    )


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
