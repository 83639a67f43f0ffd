"""What a test of the engine may set, and the access policy that follows from it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from zerobot.core.access import Grant
from zerobot.core.events import TurnEvent
from zerobot.core.guards import NO_GUARDS, Guards
from zerobot.core.hooks import NO_HOOKS, Hooks
from zerobot.core.ids import ConversationId
from zerobot.core.messages import StoredFile
from zerobot.security.bounds import Bounds
from zerobot.security.own_secrets import OwnSecrets
from zerobot.security.policy import AccessPolicy
from zerobot.store.database import Database
from zerobot.store.inbox import QUEUE_LIMIT
from zerobot.store.turn_rows import WaitingInput
from zerobot.testing.model import ScriptedModel
from zerobot.turn.ending import TurnEnd
from zerobot.turn.kit import (
    CostOf,
    RecallMemory,
    SaveResult,
    TurnLimits,
    WaitingWords,
    no_words,
    nothing_recalled,
    unpriced,
)
from zerobot.turn.purse import UNLIMITED, Purse
from zerobot.turn.window import CompactionRules


@dataclass(slots=True)
class Settings:
    """What a test may change before it begins. Retries, grace and time limit as the engine's cases have them."""

    limits: TurnLimits = field(default_factory=lambda: TurnLimits(max_steps=0, tool_grace=0.05))
    fallbacks: list[ScriptedModel] = field(default_factory=list)
    """Models that are asked when the house's own fails."""
    sees: bool = True
    """Whether all of them are shown pictures."""
    files: dict[str, StoredFile] = field(default_factory=dict)
    """By its name, what can be had of an attachment; all others cannot be had."""
    max_retries: int = 2
    retry_cap: float = 45.0
    approval_timeout: timedelta = timedelta(seconds=600)
    hooks: Hooks = NO_HOOKS
    guards: Guards = NO_GUARDS
    supersedes: Callable[[WaitingInput], bool] = lambda _: True
    listener: Callable[[TurnEvent], None] = lambda _: None
    """Gets every event beside the house."""
    queue_limit: int = QUEUE_LIMIT
    denied_tools: tuple[str, ...] = ()
    always_ask: tuple[str, ...] = ()
    own_secrets: OwnSecrets = field(default_factory=OwnSecrets)
    frozen: asyncio.Event = field(default_factory=asyncio.Event)
    """Set it, and all tools are stopped."""
    save_result: SaveResult | None = None
    cost: CostOf = unpriced
    purse: Callable[[Database], Purse] = lambda _: UNLIMITED
    """What turns pay from, over the store of their process; always the same for the same store."""
    recall: RecallMemory = nothing_recalled
    waiting_words: WaitingWords = no_words
    joins: timedelta | None = None
    window: int | None = None
    compaction: CompactionRules = field(default_factory=CompactionRules)
    around: Callable[[Coroutine[Any, Any, TurnEnd]], Awaitable[TurnEnd]] = lambda work: work
    """Carries out the work on a turn; a test that interferes with it puts itself between."""


@dataclass(frozen=True, slots=True)
class AccessDouble:
    """The policy as the test has it now: low risk runs, medium asks; no grants."""

    settings: Settings

    def policy(self) -> AccessPolicy:
        """See `AccessState`."""
        return AccessPolicy(
            bounds=Bounds(workspace=Path("/nowhere")),
            denied_tools=self.settings.denied_tools,
            always_ask=self.settings.always_ask,
            frozen=self.settings.frozen.is_set(),
        )

    async def grants(self, conversation: ConversationId) -> Sequence[Grant]:  # noqa: ARG002 - there are none
        """See `AccessState`."""
        return ()

    def own_secrets(self, arguments: Mapping[str, object]) -> tuple[str, ...]:
        """See `AccessState`."""
        return self.settings.own_secrets.named_in(arguments)

    async def until_frozen(self) -> None:
        """See `AccessState`."""
        await self.settings.frozen.wait()
