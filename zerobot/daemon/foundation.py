"""What the daemon's parts stand on: made before them, and closed after them."""

from collections.abc import Mapping
from dataclasses import dataclass

from zerobot.config.loader import LoadedConfig
from zerobot.core.channel import Channel
from zerobot.core.clock import Clock
from zerobot.core.log import EventLog
from zerobot.core.places import Identity
from zerobot.core.plugin import Plugin
from zerobot.core.terminal import TakesTerminals
from zerobot.daemon.http import HttpClients
from zerobot.delivery.line import OpenChannel
from zerobot.sandbox.box import Box
from zerobot.security.bounds import Bounds
from zerobot.security.own_secrets import OwnSecrets
from zerobot.security.redact import Redactor
from zerobot.store.database import Database
from zerobot.store.state_dir import StateDir


@dataclass(frozen=True, slots=True, kw_only=True)
class Foundation:
    """What each part may build on."""

    config: LoadedConfig
    state: StateDir
    """Locked."""
    database: Database
    channels: Mapping[str, OpenChannel]
    plugin: Plugin
    """All plug-ins, as one."""
    http: HttpClients
    redactor: Redactor
    """Knows the configured secrets."""
    own_secrets: OwnSecrets
    """The same by their keys."""
    bounds: Bounds
    box: Box
    """Holds the commands of tools."""
    clock: Clock
    log: EventLog

    @property
    def bare_channels(self) -> dict[str, Channel]:
        """The channels by name, without what delivery has to know of each."""
        return {name: each.channel for name, each in self.channels.items()}

    @property
    def local_operator(self) -> Identity | None:
        """The person at the terminal, if there is a channel for terminals."""
        kinds = [each.kind.name for each in self.channels.values() if isinstance(each.channel, TakesTerminals)]
        return Identity(kinds[0], "local") if kinds else None
