"""Approvals: one operator's decision on one tool call."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from zerobot.core.ids import ApprovalId, CallId, ConversationId, TurnId
from zerobot.core.places import Identity, Place


class ApprovalState(StrEnum):
    """The one way of an approval: from pending to one of the others."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    """Superseded by a new message, stopped, or withdrawn; `reason` says which."""


class Withdrawal(StrEnum):
    """Why the daemon itself ends an approval that nobody has decided; the store keeps it as the approval's reason."""

    SUPERSEDED = "superseded"
    """Something else was written meanwhile."""
    STOPPED = "stopped"
    UNREACHABLE = "unreachable"
    """No operator can be asked."""
    FAILED = "failed"
    """The turn broke while it asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A row of the store: what is asked, and what became of it."""

    id: ApprovalId
    code: str
    """Short, for `/approve CODE`."""
    conversation: ConversationId
    turn: TurnId
    call: CallId
    tool: str
    arguments: Mapping[str, object]
    """Exactly what will run."""
    digest: str
    """SHA-256 of tool, arguments and frozen operands: compared again when the call runs."""
    rule: str
    """The rule that wants it asked."""
    why: str
    """The same for people."""
    description: str
    asker: Identity
    asker_name: str
    place: Place
    """Where it was asked for."""
    sandbox: str = ""
    """What holds the call while it runs; for people."""
    grantable: bool = True
    """Whether "always" is offered."""
    covers: str = ""
    """What "always" would allow, for people; empty where it is not offered."""
    state: ApprovalState = ApprovalState.PENDING
    requested_at: datetime
    expires_at: datetime
    decided_by: Identity | None = None
    decided_by_name: str = ""
    decided_at: datetime | None = None
    reason: str = ""
    """What the operator said about it; of a cancelled one, a `Withdrawal`."""


class PressOutcome(StrEnum):
    """What became of a press; the presser is told, in words, privately where the platform can."""

    APPROVED = "approved"
    DENIED = "denied"
    ALREADY = "already"
    """Somebody decided before, or it expired: `PressReply.text` says what really happened."""
    NOT_OPERATOR = "not_operator"
    UNKNOWN = "unknown"
    """No such approval, or a code too many; the two look alike."""


@dataclass(frozen=True, slots=True)
class PressReply:
    """The answer to a press."""

    outcome: PressOutcome
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptLine:
    """One line of an approval prompt, already escaped: it holds no control or line-ending character."""

    kind: str
    """`title`, `field`, `argument`, `note` or `outcome`: how an adapter may set it."""
    label: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalPrompt:
    """What an operator sees. Adapters lay it out; they add no words and leave none out."""

    approval: ApprovalId
    code: str
    lines: tuple[PromptLine, ...]
    attachment: str | None = None
    """The whole request as text, when some line had to be cut: sent as a file with the prompt."""
    open: bool = True
    """Whether buttons are shown; False once it is decided."""
    grantable: bool = True
    """Whether one of the buttons is "always"."""
    answer: str = ""
    """How it is answered where there are no buttons (Markdown); empty: by `/approve` and `/deny` with the code."""
    decided_by: Identity | None = None
    """Who decided it, once that is so; whoever did need not be told."""
    operators: tuple[Identity, ...] = ()
    """Who may decide it, as far as that is known: where a message goes to people one by one, it is for them alone."""
