"""What `zerobot doctor` looks at: each part by a real call, each fault with what to do about it."""

import asyncio
import os
import sqlite3
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from pathlib import Path

from zerobot.config.checks import NO_OPERATORS
from zerobot.config.kinds import library_advice
from zerobot.config.loader import LoadedConfig, load_config
from zerobot.core.channel import ChannelKind, Finding
from zerobot.core.channel_settings import ChannelSettings
from zerobot.core.errors import ConfigError, StateLockedError, ZerobotError
from zerobot.core.log import silent
from zerobot.core.provider_kind import ProviderServices
from zerobot.daemon.access_state import configured_bounds
from zerobot.daemon.boxes import sandbox_finding
from zerobot.daemon.channel_services import channel_services
from zerobot.daemon.clock import SystemClock
from zerobot.daemon.control_client import NoDaemonError, call
from zerobot.daemon.costs import catalogue_of
from zerobot.daemon.http import HttpClients
from zerobot.daemon.models import Models
from zerobot.store.channel_state import read_channel_state
from zerobot.store.state_dir import StateDir

PATIENCE = 30.0
"""Seconds for one part; a server that does not answer is a finding too."""


async def examine(path: Path | None, environ: Mapping[str, str]) -> list[Finding]:
    """Look at everything that the daemon would use.

    Args:
        path: The configuration that was asked for; None: the first that is found.
        environ: The environment.
    """
    try:
        config = load_config(path, environ)
    except ConfigError as error:
        return [Finding("fail", "config", fault) for fault in error.faults]
    nothing = "none: the defaults count, with the demo model; zerobot chat works in the current directory"
    findings = [Finding("ok", "config", str(config.path or nothing))]
    findings += [Finding("warn", "config", warning) for warning in config.warnings if warning != NO_OPERATORS]
    findings += [_python(), *_operators(config), *_state(config)]
    findings.append(await asyncio.to_thread(sandbox_finding, config, configured_bounds(config)))
    async with HttpClients(config.settings) as http:
        findings += await _models(config, http)
        for name, table in config.settings.channels.items():
            if table.enabled:
                findings += await _channel(config, name, table, http)
    return findings


def _python() -> Finding:
    return Finding("ok", "python", f"{sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}")


def _operators(config: LoadedConfig) -> list[Finding]:
    if config.settings.operators.users:
        return []
    advice = "list somebody under [operators] users; /whoami in a chat shows an id"
    nobody = "there are none: only who sits at the terminal can approve, and only what was asked for there"
    return [Finding("warn", "operators", nobody, advice)]


def _state(config: LoadedConfig) -> list[Finding]:
    """The state directory, the daemon that may hold it, and the database in it."""
    state = StateDir(config.state_dir)
    try:
        findings = [Finding("warn", "state", warning) for warning in state.prepare()]
        probe = config.state_dir / ".doctor"
        probe.write_text("", encoding="utf-8")
        probe.unlink()
    except (ZerobotError, OSError) as error:
        advice = "make it yours, or choose another one by daemon.state_dir"
        return [Finding("fail", "state", f"{config.state_dir}: {error}", advice)]
    room = os.statvfs(config.state_dir)
    free = room.f_bavail * room.f_frsize // 1_000_000
    level, advice = ("ok", "") if free > 200 else ("warn", "make room: a full disk stops the bot from taking messages")
    findings.append(Finding(level, "state", f"{config.state_dir}, {free:,} MB free", advice))
    return [*findings, _daemon(state), _database(state)]


def _daemon(state: StateDir) -> Finding:
    try:
        status = call(state.socket_path, "status", {}, timeout=5.0)
    except NoDaemonError:
        try:
            with state.lock(now=SystemClock().now(), command="zerobot doctor"):
                return Finding("ok", "daemon", "none runs")
        except StateLockedError as error:
            return Finding("warn", "daemon", str(error), "try again when it has started")
    except ZerobotError as error:
        return Finding("fail", "daemon", str(error), "look into its log; restart it")
    return Finding("ok", "daemon", f"version {status.get('version')} runs")


def _database(state: StateDir) -> Finding:
    if not state.database_path.exists():
        return Finding("ok", "database", "there is none yet; the first start makes it")
    try:
        with closing(sqlite3.connect(f"{state.database_path.as_uri()}?mode=ro", uri=True, timeout=5.0)) as db:
            said = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        said = str(error)
    if said == "ok":
        return Finding("ok", "database", f"{state.database_path.stat().st_size:,} bytes, sound")
    return Finding("fail", "database", f"damaged: {said}", "stop the daemon and put a backup in its place")


async def _models(config: LoadedConfig, http: HttpClients) -> list[Finding]:
    """Each model that an agent names, by a real call."""
    agents = [config.settings.agent, *config.settings.agents.values()]
    references = dict.fromkeys(model for agent in agents for model in (agent.model, *agent.fallback_models))
    services = ProviderServices(http=http.guarded, clock=SystemClock(), log=silent)
    models = Models(config, services, lambda: catalogue_of(config))
    findings = []
    for reference in references:
        choice = models.choice(reference)
        try:
            async with asyncio.timeout(PATIENCE):
                findings.append(Finding("ok", f"model {reference}", await choice.provider.check(choice.model)))
        except ZerobotError as error:
            advice = f"look at [providers.{reference.partition('/')[0]}]"
            findings.append(Finding("fail", f"model {reference}", str(error), advice))
        except TimeoutError:
            findings.append(Finding("fail", f"model {reference}", f"no answer within {PATIENCE:.0f} s"))
    return findings


async def _channel(config: LoadedConfig, name: str, table: ChannelSettings, http: HttpClients) -> list[Finding]:
    kind = config.kinds.channels[table.kind or name]()
    subject = f"channel {name}"
    if advice := library_advice(kind):
        return [Finding("fail", subject, "its library is missing", advice)]
    try:
        async with asyncio.timeout(PATIENCE):
            database = StateDir(config.state_dir).database_path
            return [each async for each in _check(kind, name, table, http, database)]
    except ZerobotError as error:
        return [Finding("fail", subject, str(error))]
    except TimeoutError:
        return [Finding("fail", subject, f"no answer within {PATIENCE:.0f} s", "look at the network and api_base")]


async def _check(
    kind: ChannelKind, name: str, table: ChannelSettings, http: HttpClients, database: Path
) -> AsyncIterator[Finding]:
    services = channel_services(name, http, SystemClock(), silent, _StoredState(database, name))
    async for finding in kind.check(table, services):
        yield finding


class _StoredState:
    """A channel's state for a check: what a daemon has stored can be read, and is left alone.

    Args:
        database: The file; there need be none.
        channel: The channel's table.
    """

    def __init__(self, database: Path, channel: str) -> None:
        self._database = database
        self._channel = channel

    async def get(self, key: str) -> str | None:
        return await asyncio.to_thread(self._read, key)

    async def set(self, key: str, value: str) -> None:
        """Nothing is kept."""

    async def forget(self, key: str) -> None:
        """Nothing is removed."""

    def _read(self, key: str) -> str | None:
        try:
            with closing(sqlite3.connect(f"{self._database.as_uri()}?mode=ro", uri=True, timeout=5.0)) as db:
                return read_channel_state(db, self._channel, key)
        except sqlite3.Error:
            return None
