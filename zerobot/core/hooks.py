"""What plug-ins may do to a step and to a tool call (turn-engine spec K3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from zerobot.core.events import StopReason
from zerobot.core.ids import ConversationId, TurnId
from zerobot.core.messages import Message, RecordedCall, ToolResult
from zerobot.core.tools import Execution


@dataclass(frozen=True, slots=True)
class Block:
    """What is looked at must not happen.

    Of a call the model reads the reason; of a step people do, since the turn ends with it.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The hook answers itself; the tool does not run."""

    result: ToolResult
    stop_turn: bool = False


@dataclass(frozen=True, slots=True)
class Replace:
    """The call runs with other arguments. They are checked again, and it is they that an operator sees."""

    arguments: Mapping[str, object]


class Prepare(Protocol):
    """Runs before a call is judged, in the model's order. If it raises, that call becomes an error result."""

    async def prepare(self, call: RecordedCall, batch: Sequence[RecordedCall]) -> Block | Answer | Replace | None:
        """Look at a call, seeing its whole batch."""
        ...


class Authorize(Protocol):
    """Runs after the arguments are final. It can only take away: if it raises, the call is blocked."""

    async def authorize(self, call: RecordedCall, execution: Execution) -> Block | Answer | None:
        """Look at a resolved call."""
        ...


class Finalize(Protocol):
    """Sees every result before it is stored. If it raises, the result is withheld and the raw output never stored."""

    async def finalize(self, call: RecordedCall, result: ToolResult) -> ToolResult:
        """Return the result to keep."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """What a hook may know of a step."""

    conversation: ConversationId
    turn: TurnId
    step: int
    """From 1, over the whole turn."""
    messages: Sequence[Message]
    """The conversation in the model's view; before a step: as the request will hold it."""


@dataclass(frozen=True, slots=True)
class Inject:
    """The model reads a note with the next request. It is not stored."""

    note: str


@dataclass(frozen=True, slots=True)
class EndTurn:
    """The turn ends with this step; what was said stands as its reply."""

    reason: StopReason
    notice: str = ""
    """What people read beside it (Markdown)."""


@dataclass(frozen=True, slots=True)
class GoOn:
    """The turn goes on although the model is done; it reads the note with the next request."""

    note: str


class BeforeStep(Protocol):
    """Runs before the model is asked. If it raises, the turn fails and no step is opened."""

    async def before_step(self, step: StepView) -> Block | Inject | None:
        """Look at what the model is about to be asked."""
        ...


class AfterStep(Protocol):
    """Runs when a step is sealed. If it raises, that changes nothing."""

    async def after_step(self, step: StepView) -> EndTurn | None:
        """Look at what a step has left."""
        ...


class ContinueAfterStop(Protocol):
    """Runs when the model is done. If it raises, the turn fails, with what the model said."""

    async def continue_after_stop(self, step: StepView, text: str) -> GoOn | None:
        """Look at the last answer. Nobody is asked when the step limit is reached: then the turn just ends."""
        ...


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of an engine, in their order. The first of a kind that answers something decides."""

    prepare: tuple[Prepare, ...] = ()
    authorize: tuple[Authorize, ...] = ()
    finalize: tuple[Finalize, ...] = ()
    before_step: tuple[BeforeStep, ...] = ()
    after_step: tuple[AfterStep, ...] = ()
    continue_after_stop: tuple[ContinueAfterStop, ...] = ()


NO_HOOKS = Hooks()
