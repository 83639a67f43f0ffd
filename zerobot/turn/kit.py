"""What the stages of a turn are given; the daemon makes it once."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Protocol

from zerobot.core.access import Grant
from zerobot.core.approvals import Approval
from zerobot.core.clock import Clock
from zerobot.core.command_text import USUAL_PREFIX
from zerobot.core.envelope import Attachment
from zerobot.core.events import TurnEvent
from zerobot.core.guards import NO_GUARDS, Guards
from zerobot.core.hooks import NO_HOOKS, Hooks
from zerobot.core.ids import ConversationId, TurnId
from zerobot.core.log import EventLog
from zerobot.core.messages import RecordedCall, StoredFile
from zerobot.core.model import ModelProvider
from zerobot.core.places import Identity, Place
from zerobot.core.tools import Tool
from zerobot.memory.block import NO_BLOCK, MemoryBlock
from zerobot.security.policy import AccessPolicy
from zerobot.store.summaries import Summaries
from zerobot.store.turn_rows import AttemptUsage, Turn
from zerobot.store.turns import Turns
from zerobot.turn.purse import UNLIMITED, Purse
from zerobot.turn.window import CompactionRules

Emit = Callable[[TurnEvent], None]
"""Takes a turn's events; it never raises and never waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLimits:
    """How long, how much."""

    max_steps: int = 25
    """Model calls a turn; then comes one closing request without tools. 0: no limit."""
    timeout: float = 900.0
    """Seconds of work at a stretch; waiting for an operator does not count."""
    history_messages: int = 200
    """Messages in the model's view; at the bound the window moves on so that 70 % are left."""
    tool_grace: float = 2.0
    """Seconds that a cancelled tool has to end before it is left behind."""
    result_characters: int = 50_000
    """Of a tool result; a longer one is saved, and the model reads `preview_characters` of it and where the rest is."""
    preview_characters: int = 2_000


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model at a provider."""

    provider: ModelProvider
    model: str
    max_output: int | None = None
    """Tokens that the model can write at once; None: not known, the provider decides."""
    sees: bool = False
    """Whether its provider shows it the pictures in a request."""
    max_retries: int = 3
    """Tries after the first."""
    retry_cap: float = 45.0
    """Seconds that a step may have waited in all, for this model to be tried again."""

    def __str__(self) -> str:
        return f"{self.provider.name}/{self.model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRoute:
    """The models that are tried for a step, in order."""

    choices: Sequence[ModelChoice]

    @property
    def sees(self) -> bool:
        """Whether one of them is shown pictures."""
        return any(choice.sees for choice in self.choices)

    def without_retries(self) -> "ModelRoute":
        """The same models, each tried once."""
        return ModelRoute(choices=[replace(choice, max_retries=0) for choice in self.choices])


NO_ROUTE = ModelRoute(choices=())


class Operators(Protocol):
    """Who can be asked."""

    async def routes(self, asker: Identity, place: Place) -> Sequence[Place]:
        """Where a request that was asked for in `place` is shown; empty when nobody can be asked."""
        ...

    async def nobody(self, conversation: ConversationId, turn: TurnId, place: Place) -> None:
        """Tell a chat, once a turn, that something it wants needs an operator, and that none can be asked."""
        ...

    def timeout(self, place: Place, shown: Sequence[Place]) -> timedelta:
        """How long operators have, for requests from this place that are shown in others."""
        ...

    def still_counts(self, approval: Approval) -> bool:
        """Whether a call may run on an approval: whoever gave it may give it by the rules in force now."""
        ...


class AccessState(Protocol):
    """The policy and the grants as they are now, not as they were when the turn began."""

    def policy(self) -> AccessPolicy:
        """The policy in force."""
        ...

    async def grants(self, conversation: ConversationId) -> Sequence[Grant]:
        """The grants of a conversation."""
        ...

    def own_secrets(self, arguments: Mapping[str, object]) -> tuple[str, ...]:
        """The keys of the daemon's own secrets that stand in the arguments of a call."""
        ...

    async def until_frozen(self) -> None:
        """Wait until an operator stops all tools; returns at once while they are stopped."""
        ...


FetchFile = Callable[[Turn, Attachment], Awaitable[StoredFile | str]]
"""Fetches an attachment into the workspace; a text says why it could not be had. Never raises for circumstances."""


CostOf = Callable[[TurnId], Awaitable[str]]
"""What a turn has cost so far, as text; `unpriced` where that is not known."""


async def unpriced(turn: TurnId) -> str:  # noqa: ARG001 - the shape of `CostOf`
    """The cost of a turn where nobody knows prices."""
    return "unpriced"


RecallMemory = Callable[[Turn, str], Awaitable[MemoryBlock]]
"""Looks up what is remembered that fits the input of a turn; it is put before it."""


async def nothing_recalled(turn: Turn, text: str) -> MemoryBlock:  # noqa: ARG001 - the shape of the others
    """What is recalled where there is no memory."""
    return NO_BLOCK


WaitingWords = Callable[[Place, Sequence[Place]], str]
"""What is said in a chat (the first) whose turn begins to wait, its requests being shown in places (the second); empty
where people see it otherwise."""


def no_words(place: Place, shown: Sequence[Place]) -> str:  # noqa: ARG001 - the shape of the others
    """What is said where people see by themselves that a turn waits."""
    return ""


class SaveResult(Protocol):
    """Keeps a result that is too long for a conversation where the tools can read it."""

    async def __call__(self, turn: Turn, call: RecordedCall, text: str) -> str | None:
        """Save the whole text, already redacted.

        Returns:
            Where it is, as a model names it; None: it could not be saved. Never raises for circumstances.
        """
        ...


class UnrecordedUsage:
    """What attempts cost whose step the store refused: the next run of the same turn records it."""

    def __init__(self) -> None:
        self._attempts: dict[TurnId, list[AttemptUsage]] = {}

    def keep(self, turn: TurnId, attempts: Sequence[AttemptUsage]) -> None:
        """Keep the attempts of a run that the store has refused."""
        if attempts:
            self._attempts[turn] = list(attempts)

    def take(self, turn: TurnId) -> list[AttemptUsage]:
        """What was kept; it is given once."""
        return self._attempts.pop(turn, [])


class StrayTasks:
    """Tools that ignored their cancellation. They are kept until they end, so that nothing runs unseen."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    def adopt(self, task: asyncio.Task[object]) -> None:
        """Keep a task; what it returns or raises from now on counts for nothing."""
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

    async def close(self, patience: float) -> None:
        """Cancel what is left and wait for it, at most `patience` seconds."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=patience)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnKit:
    """Everything that a turn works with and does not own."""

    turns: Turns
    summaries: Summaries
    route: ModelRoute
    system: str
    """The system prompt; the same bytes for every turn, so that providers can cache the prefix."""
    tools: Mapping[str, Tool]
    access: AccessState
    operators: Operators
    fetch: FetchFile
    receipt_key: bytes
    clock: Clock
    log: EventLog
    limits: TurnLimits
    hooks: Hooks = NO_HOOKS
    guards: Guards = NO_GUARDS
    strays: StrayTasks = field(default_factory=StrayTasks)
    unrecorded: UnrecordedUsage = field(default_factory=UnrecordedUsage)
    show_receipts: bool = False
    """Whether people read the receipts of a turn's calls below its reply."""
    save_result: SaveResult | None = None
    """None: what is too long is cut in its middle."""
    cost: CostOf = unpriced
    purse: Purse = UNLIMITED
    recall: RecallMemory = nothing_recalled
    waiting_words: WaitingWords = no_words
    joins: timedelta | None = None
    """Set where inputs join a running turn: how long one waits for more of it before it does. None: each waits for a
    turn of its own."""
    command_prefix: str = USUAL_PREFIX
    """What our texts name commands by where the turn is."""
    window: int | None = None
    """Tokens that the model reads and writes together; None: nobody knows, so there is no compaction by itself."""
    compaction: CompactionRules = field(default_factory=CompactionRules)
