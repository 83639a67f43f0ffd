"""How somebody else's package adds tools, hooks and guards, and how it is found and opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from zerobot.core.clock import Clock
from zerobot.core.guards import NO_GUARDS, Guards
from zerobot.core.hooks import NO_HOOKS, Hooks
from zerobot.core.log import EventLog
from zerobot.core.settings import Section, Text
from zerobot.core.tools import Tool

if TYPE_CHECKING:
    import httpx


class PluginSettings(Section):
    """A table `[plugins.NAME]`; a plug-in's own model adds its keys."""

    enabled: bool = Field(default=True, description="Whether the daemon opens this plug-in.")
    kind: Text = Field(
        default="", validate_default=False, description="The kind of plug-in; absent: the name of the table."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginServices:
    """What plug-ins are given."""

    name: str
    """The name of the plug-in's table."""
    http: Callable[[], httpx.AsyncClient]
    """The guarded client, made when it is first asked for. It reaches the public Internet, and private hosts only where
    their URL stands in the configuration."""
    clock: Clock
    log: EventLog


async def nothing_to_close() -> None:
    """For a plug-in that holds nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """What a plug-in adds. All of it runs in the daemon's process, with its rights."""

    tools: tuple[Tool, ...] = ()
    """Judged by the access policy like every other."""
    hooks: Hooks = NO_HOOKS
    guards: Guards = NO_GUARDS
    close: Callable[[], Awaitable[None]] = nothing_to_close
    """Gives back what it holds, when the daemon ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginKind:
    """What an entry point of the group `zerobot.plugins` names. It opens only where the owner has written a table."""

    name: str
    settings: type[PluginSettings] = PluginSettings
    open: Callable[[BaseModel, PluginServices], Plugin]
    """Make a plug-in from its table. Connects nothing yet."""
