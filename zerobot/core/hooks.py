"""What plug-ins may do to a tool call (turn-engine spec K3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from zerobot.core.messages import RecordedCall, ToolResult
from zerobot.core.tools import Execution


@dataclass(frozen=True, slots=True)
class Block:
    """The call must not run; the model reads the reason."""

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


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of an engine, in their order."""

    prepare: tuple[Prepare, ...] = ()
    authorize: tuple[Authorize, ...] = ()
    finalize: tuple[Finalize, ...] = ()


NO_HOOKS = Hooks()
