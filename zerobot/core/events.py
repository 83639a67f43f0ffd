"""What a turn tells those who watch it.

Within a step: text and calls, then usage, then tools, then step_finished; `final` is last and once.
"""

from dataclasses import dataclass
from enum import StrEnum

from zerobot.core.ids import CallId, TurnId
from zerobot.core.messages import ResultCode
from zerobot.core.usage import NO_USAGE, Usage


class StepReason(StrEnum):
    """How a step ended (turn-engine spec K2)."""

    DONE = "done"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    PAUSED = "paused"
    FILTERED = "filtered"
    UNKNOWN = "unknown"


class StopReason(StrEnum):
    """How a turn ended (turn-engine spec K2, the enum on the final)."""

    DONE = "done"
    LENGTH = "length"
    FILTERED = "filtered"
    PROVIDER_PAUSE = "provider_pause"
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"
    ABORTED = "aborted"
    STEP_LIMIT = "step_limit"
    BUDGET = "budget"
    STOPPED_BY_TOOL = "stopped_by_tool"
    STOPPED_BY_REPEAT = "stopped_by_repeat"
    BLOCKED_INPUT = "blocked_input"
    BLOCKED_OUTPUT = "blocked_output"
    SUPERSEDED = "superseded"
    RESTARTED = "restarted"
    ERROR = "error"


class Outcome(StrEnum):
    """The five words of `turn.finished`."""

    REPLIED = "replied"
    STOPPED = "stopped"
    LIMITED = "limited"
    FAILED = "failed"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """Work on an input began, or goes on after a pause or a restart."""

    turn: TurnId
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A model is about to be asked; steps count from 1 over the whole turn."""

    step: int


@dataclass(frozen=True, slots=True)
class TextShown:
    """`text_delta`: more of the visible text."""

    text: str


@dataclass(frozen=True, slots=True)
class TextReset:
    """`text_reset`: this step's text so far is void (another attempt begins, or it was withdrawn)."""


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool runs now."""

    call: CallId
    tool: str
    description: str


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """A line from a running tool."""

    call: CallId
    tool: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A call has its result; sent as each ends, whatever the order."""

    call: CallId
    tool: str
    code: ResultCode


@dataclass(frozen=True, slots=True)
class UsageCounted:
    """What this step's attempts cost, `failed` being the part of attempts that gave no answer."""

    step: int
    usage: Usage
    failed: Usage = NO_USAGE


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A step was sealed; a failed or cancelled one never is."""

    step: int
    reason: StepReason


@dataclass(frozen=True, slots=True)
class StatusChanged:
    """A line for people about what goes on (waiting for a slow provider, compacting); empty: nothing to say."""

    text: str


@dataclass(frozen=True, slots=True)
class ApprovalsRequested:
    """`paused`: the turn waits for operators. What was shown so far is settled as a message of its own."""

    turn: TurnId
    calls: tuple[CallId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSummary:
    """A call of the turn, for the final."""

    id: CallId
    name: str
    code: ResultCode


@dataclass(frozen=True, slots=True)
class TurnError:
    """What went wrong: a stable code, and the log's sentence (never shown in a chat)."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """The end of a turn: exactly one over its whole life, and nothing of the turn follows."""

    turn: TurnId
    text: str
    """As delivered: what the model said since the last settled message, and the engine's notice."""
    reason: StopReason
    outcome: Outcome
    steps: int
    usage: Usage = NO_USAGE
    failed_usage: Usage = NO_USAGE
    calls: tuple[CallSummary, ...] = ()
    error: TurnError | None = None
    sources: tuple[str, ...] = ()
    """Where calls of the turn have read outside, as URLs, in their order."""


TurnEvent = (
    TurnStarted
    | StepStarted
    | TextShown
    | TextReset
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | UsageCounted
    | StepFinished
    | StatusChanged
    | ApprovalsRequested
    | Final
)
