"""The seam to tools: what a call touches, how risky it is, how it runs."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Protocol

from zerobot.core.ids import CallId, ConversationId, TurnId
from zerobot.core.messages import ResultCode


class Risk(IntEnum):
    """How bad a call can be; it may depend on the arguments."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2


class Effect(StrEnum):
    """What a call does to the world."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    NETWORK = "network"
    SEND = "send"


class Mode(StrEnum):
    """How a resource is touched. Two calls conflict when one of them does not only read."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Access:
    """A resource that a call touches: a canonical path (`/a/b`), or a named one (`mailbox:x`)."""

    resource: str
    mode: Mode
    tree: bool = False
    """For paths: everything below it too."""


@dataclass(frozen=True, slots=True)
class Accesses:
    """All that a call touches. `everything` conflicts with every call that touches anything at all."""

    items: tuple[Access, ...] = ()
    everything: bool = False

    def conflict_with(self, other: "Accesses") -> bool:
        """Whether both may not run at once (turn-engine spec K5)."""
        if not (self.touches_anything and other.touches_anything):
            return False
        if self.everything or other.everything:
            return True
        return any(_clash(a, b) for a in self.items for b in other.items)

    @property
    def touches_anything(self) -> bool:
        """Whether there is something to conflict about."""
        return self.everything or bool(self.items)


NOTHING = Accesses()
EVERYTHING = Accesses(everything=True)


def _clash(a: Access, b: Access) -> bool:
    if a.mode is Mode.READ and b.mode is Mode.READ:
        return False
    # Paths compare without case: some file systems do, and a needless wait is cheaper than a lost write.
    first, second = a.resource.casefold().rstrip("/"), b.resource.casefold().rstrip("/")
    if first == second:
        return True
    return (a.tree and second.startswith(first + "/")) or (b.tree and first.startswith(second + "/"))


class BadArgumentsError(Exception):
    """The arguments do not fit the tool; `str(error)` is what the model reads."""


class BlockedByToolError(Exception):
    """The tool itself knows that this call is out of bounds; `str(error)` is what the model reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What a tool gives back."""

    text: str
    ok: bool = True
    code: ResultCode | None = None
    """Only where `ok` says too little: TIMEOUT."""
    outside_content: bool = False
    """Whether the text was written by somebody else (a web page, a mail)."""
    stop_turn: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a running tool may know of its call."""

    conversation: ConversationId
    turn: TurnId
    call: CallId
    progress: Callable[[str], None]
    """Shows a line while the tool runs; does nothing once the call has its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One call, resolved: what it would do, and how. Making it has no side effects."""

    run: Callable[[ToolContext], Awaitable[ToolOutput]]
    description: str
    """One line for people: what this call does."""
    effects: frozenset[Effect]
    risk: Risk
    accesses: Accesses = EVERYTHING
    reads: tuple[Path, ...] = ()
    """Absolute paths, links resolved, that the call reads."""
    writes: tuple[Path, ...] = ()
    command: str = ""
    """For `shell`: the line that runs, byte for byte."""
    site: str = ""
    """For what goes to one place of the Web: its scheme, host and port. A grant of the call covers no other."""
    destination: str = ""
    """For the same: the whole URL, as people would have to write it to name just this place."""
    frozen: Mapping[str, str] = field(default_factory=dict)
    """What else must not change between the prompt and the run: name -> SHA-256 (script operands)."""
    timeout: float = 60.0
    """Seconds after which the call is ended as TIMEOUT."""
    stop_batch: bool = False
    """Calls after this one in the same step are skipped, and the turn ends if it succeeds."""
    repeatable: bool = False
    """Whether the same call again is meant (a tool that polls): it runs although the step has its like already, and it
    does not count as a repetition."""


class Tool(Protocol):
    """Something that a model may ask for."""

    name: str
    description: str

    @property
    def parameters(self) -> Mapping[str, object]:
        """JSON Schema of the arguments, an object."""
        ...

    def resolve(self, arguments: Mapping[str, object]) -> Execution:
        """Check the arguments and say what the call would do. No side effects.

        Raises:
            BadArgumentsError: They do not fit.
            BlockedByToolError: They fit, but the call is out of bounds whatever the policy.
        """
        ...
