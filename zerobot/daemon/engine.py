"""The daemon's long-lived parts, wired to each other."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta

from zerobot.config.loader import LoadedConfig
from zerobot.config.schema import AgentSettings
from zerobot.core.clock import Clock
from zerobot.core.hooks import Hooks
from zerobot.core.log import EventLog
from zerobot.core.places import Identity, Place
from zerobot.core.provider_kind import ProviderServices
from zerobot.core.terminal import TakesTerminals
from zerobot.daemon.access_state import DaemonAccess, configured_policy
from zerobot.daemon.attachments import AttachmentFetcher
from zerobot.daemon.command_lane import CommandLane
from zerobot.daemon.commands import ChatCommands, CommandBooks, CommandWires
from zerobot.daemon.desk import ApprovalDesk
from zerobot.daemon.dispatcher import Dispatcher, DispatcherWires
from zerobot.daemon.http import HttpClients
from zerobot.daemon.intake import IntakeWires
from zerobot.daemon.models import Models
from zerobot.daemon.prompts import system_prompt
from zerobot.daemon.result_redaction import RedactResults
from zerobot.daemon.supervisor import Supervisor
from zerobot.delivery.delivery import Delivery
from zerobot.delivery.line import OpenChannel
from zerobot.security.paths import GuardedFiles
from zerobot.security.redact import Redactor
from zerobot.store.approvals import Approvals
from zerobot.store.audit import Audit
from zerobot.store.channel_state import DAEMON, channel_state
from zerobot.store.conversations import Conversations
from zerobot.store.database import Database
from zerobot.store.grants import Grants
from zerobot.store.inbox import Inbox
from zerobot.store.moving import move_chat
from zerobot.store.outbox import Outbox
from zerobot.store.pairing import Pairings
from zerobot.store.state_dir import StateDir
from zerobot.store.turn_rows import Turn, WaitingInput
from zerobot.store.turns import Turns
from zerobot.store.usage import UsageLog
from zerobot.tools.registry import builtin_tools, selected
from zerobot.tools.shell import ShellSettings
from zerobot.turn.kit import StrayTasks, TurnKit, TurnLimits

KEPT_ENVELOPES = timedelta(days=7)
HOUSEKEEPING = 6 * 3600.0
"""Seconds between two rounds of housekeeping."""
STRAY_PATIENCE = 2.0


class Engine:
    """Everything between a channel's intake and its outbox. Built once; nothing of it is global.

    Args:
        config: What is configured.
        state: The state directory, locked.
        database: Its database.
        channels: The open channels by name.
        http: For providers.
        redactor: Knows the configured secrets.
        clock: The clock of everything.
        log: Where events go.
    """

    def __init__(
        self,
        config: LoadedConfig,
        state: StateDir,
        database: Database,
        channels: Mapping[str, OpenChannel],
        http: HttpClients,
        redactor: Redactor,
        clock: Clock,
        log: EventLog,
    ) -> None:
        books = _books(database, clock)
        operators = _operators(config, channels)
        own_paths = [state.path, *([config.path] if config.path else [])]
        self._outer = _Outer(config, database, clock, log)
        self.access = DaemonAccess(
            configured_policy(config, own_paths), books.grants, channel_state(database, DAEMON), clock
        )
        self.delivery = Delivery(channels, Outbox(database, clock), clock, log, self._moved)
        self.desk = ApprovalDesk()
        self.dispatcher = Dispatcher()
        self.lane = CommandLane(books.inbox, ChatCommands().carry_out, log)
        self.supervisor = Supervisor({name: each.channel for name, each in channels.items()}, clock, log)
