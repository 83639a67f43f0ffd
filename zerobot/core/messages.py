"""History as a model reads it. A call carries its own result, so a result without its call cannot be written down."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from zerobot.core.ids import CallId, InboxId, TurnId


class ResultCode(StrEnum):
    """How a tool call ended. All but OK are error results; each says whether the tool ran (turn-engine spec 0.4)."""

    OK = "OK"
    ERROR = "ERROR"
    """The tool ran and reports a failure of its own (file not found, exit status 1)."""
    UNKNOWN_TOOL = "UNKNOWN_TOOL"
    BAD_ARGS = "BAD_ARGS"
    BLOCKED = "BLOCKED"
    DENIED = "DENIED"
    EXPIRED = "EXPIRED"
    NOT_RUN = "NOT_RUN"
    SKIPPED = "SKIPPED"
    CUT_OFF = "CUT_OFF"
    CANCELLED = "CANCELLED"
    INTERRUPTED = "INTERRUPTED"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    BAD_RESULT = "BAD_RESULT"
    WITHHELD = "WITHHELD"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a call gave back, as the model reads it."""

    code: ResultCode
    text: str
    receipt: str = ""
    """HMAC that shows that this result came from this process; empty where none is given."""

    @property
    def ok(self) -> bool:
        """Whether the tool ran and succeeded."""
        return self.code is ResultCode.OK


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A tool call of the model, on record."""

    id: CallId
    wire_id: str
    """The id that a provider sees: its own if that was usable and unique in the conversation, else ours."""
    name: str
    arguments: Mapping[str, object]
    """Parsed; empty when `raw_arguments` is not a JSON object."""
    raw_arguments: str
    position: int
    """Place in the model's order, from 0."""
    started: bool = False
    result: ToolResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """An attachment that was fetched, as the history keeps it."""

    kind: str
    name: str
    mime: str
    """As the platform says; of a picture with a digest, as its bytes say."""
    size: int
    path: str
    """Relative to the workspace."""
    digest: str = ""
    """SHA-256 in hex of a picture that models can be shown; empty: the model only reads about the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """What a person said."""

    seq: int
    turn: TurnId
    text: str
    speaker: str = ""
    """Set in chats of several people, so that the model knows who speaks."""
    files: tuple[StoredFile, ...] = ()
    note: str = ""
    """An engine notice for the model (what was skipped, what happened meanwhile); not the person's words."""
    memory: str = ""
    """What was recalled for it, in its fence; sent again unchanged for as long as the message is sent."""
    inputs: tuple[InboxId, ...] = ()
    """The accepted events that it is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    """What the model said, with the calls of that step (a round) and their results."""

    seq: int
    turn: TurnId
    text: str = ""
    calls: tuple[RecordedCall, ...] = ()
    """In the model's order."""
    reasoning: tuple[Mapping[str, object], ...] = ()
    """Opaque blocks, given back as they came, to the provider that wrote them: each has a key `provider`."""
    partial: bool = False
    """The stream broke off or was stopped; `text` is what people saw of it."""
    notice: str = ""
    """What the engine added for people (cut, stopped); the model gets it as a note."""
    context_tokens: int = 0
    """What the provider counted for the request and this answer together; 0: it said nothing."""

    @property
    def open_calls(self) -> tuple[RecordedCall, ...]:
        """Calls that have no result yet."""
        return tuple(call for call in self.calls if call.result is None)

    @property
    def says_nothing(self) -> bool:
        """Whether no provider could be sent this message."""
        return not (self.text.strip() or self.calls)


Message = UserMessage | AssistantMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What stands in a request for the messages that have left the window; all numbers are sequence numbers."""

    epoch: int = 0
    """Of the conversation's history; a reset begins another one."""
    start: int = 0
    """Where the window begins: what comes from here on is sent."""
    head: tuple[int, ...] = ()
    """The messages that opened the conversation. They are sent word for word, and no summary tells of them."""
    kept: tuple[int, ...] = ()
    """Other messages before the window that are sent: inputs that were being answered when it moved past them."""
    covers: int = 0
    """The last message that `text` tells of; 0 when there is no summary."""
    text: str = ""
    """The summary."""
    after: int = 0
    """The newest message when the window last moved; 0: it never did."""


NOTHING_EARLIER = Earlier()


@dataclass(frozen=True, slots=True)
class History:
    """The messages of a conversation that a turn works with, oldest first."""

    messages: Sequence[Message] = field(default_factory=tuple)
    earlier: Earlier = NOTHING_EARLIER

    @property
    def open_round(self) -> AssistantMessage | None:
        """The last message, if calls of it have no result; else None."""
        last = self.messages[-1] if self.messages else None
        return last if isinstance(last, AssistantMessage) and last.open_calls else None
