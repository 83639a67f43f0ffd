"""How a kind of model API is found and opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from zerobot.core.clock import Clock
from zerobot.core.log import EventLog
from zerobot.core.model import ModelProvider

if TYPE_CHECKING:
    import httpx


class ProviderSettings(Protocol):
    """What a provider reads of its `[providers.NAME]` table; durations in seconds, the key in clear."""

    @property
    def base_url(self) -> str:
        """Where the API is, as the vendor's SDK takes it; empty: the kind's default."""
        ...

    @property
    def key(self) -> str:
        """The API key in clear; empty when none is needed."""
        ...

    @property
    def idle_timeout(self) -> float:
        """Seconds without any byte after which a stream is given up."""
        ...

    @property
    def connect_timeout(self) -> float:
        """Seconds to connect."""
        ...

    @property
    def text_tools(self) -> bool:
        """Whether tools are offered and called in plain text, for models that know no other way."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderServices:
    """What providers are given."""

    http: Callable[[], httpx.AsyncClient]
    """The guarded client; made when it is first asked for."""
    clock: Clock
    log: EventLog


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderKind:
    """What an entry point of the group `zerobot.providers` names."""

    name: str
    default_base_url: str
    needs_key: bool
    key_help: str = ""
    """Where one gets a key."""
    open: Callable[[str, ProviderSettings, ProviderServices], ModelProvider]
    """Make a provider from its table's name, its settings and the services."""
