"""The values that the journal of turns takes and gives."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from zerobot.core.approvals import Approval
from zerobot.core.budget import Payer
from zerobot.core.envelope import InboundEnvelope, TurnOrigin
from zerobot.core.events import Outcome, StopReason
from zerobot.core.ids import CallId, ConversationId, ReservationId, TurnId
from zerobot.core.messages import ToolResult
from zerobot.core.places import Identity, Place
from zerobot.core.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An open turn, as the store knows it when work on it begins or goes on."""

    id: TurnId
    conversation: ConversationId
    place: Place
    direct: bool
    origin: TurnOrigin
    asker: Identity
    asker_name: str
    reply_to: str
    preface: str
    """A line that opens the reply: what became of an earlier request."""
    model: str
    """Chosen for this conversation by /model; empty: the agent's."""
    steps: int
    settled_seq: int
    crashes: int
    outside_content: bool
    usage: Usage
    failed_usage: Usage
    resumed: bool
    """Whether it goes on after a pause, a stop of the daemon or a crash."""

    @property
    def payer(self) -> Payer:
        """On whose account its model calls go."""
        return Payer(turn=self.id, conversation=self.conversation, channel=self.place.channel, asker=self.asker)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTurn:
    """What is under way in a conversation."""

    state: str
    """`running`, `suspended` or `paused`."""
    asker: Identity
    steps: int
    """Whose answer is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingInput:
    """The next input of a conversation whose turn is paused."""

    envelope: InboundEnvelope
    asker: Identity
    """Who asked for what is paused."""


@dataclass(frozen=True, slots=True)
class NextWork:
    """What a conversation works on now, or when to look again."""

    turn: Turn | None
    superseded: Turn | None = None
    """A paused turn that a new input has ended."""
    look_again: datetime | None = None
    waits_for: Turn | None = None
    """Set when an input waits for the end of this paused turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptUsage:
    """What one model call cost."""

    model: str
    """PROVIDER/MODEL."""
    purpose: str
    """`step`, `closing` or `summary`."""
    failed: bool
    usage: Usage | None
    """None: the provider said nothing, so the numbers are unknown, which is not the same as none."""
    reservation: ReservationId | None = None
    """Money that was kept for it: set free when the call is recorded, or held if nobody knows what the call took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a turn ends: the last thing it commits."""

    outcome: Outcome
    reason: StopReason
    reply: str
    """Markdown for the chat; empty when nothing is to be said."""
    error_code: str = ""
    results: tuple[tuple[CallId, ToolResult], ...] = ()
    """Results for calls that are still open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRequest:
    """One approval to ask for, and where it is shown."""

    approval: Approval
    places: tuple[Place, ...]


Supersedes = Callable[[WaitingInput], bool]


def turn_of(row: sqlite3.Row, *, resumed: bool) -> Turn:
    """Bring a row of `turns`, joined with its conversation, into its value."""
    return Turn(
        id=TurnId(row["id"]),
        conversation=ConversationId(row["conversation_id"]),
        place=Place(row["channel"], row["chat"], row["thread"] or None),
        direct=bool(row["direct"]),
        origin=TurnOrigin(row["origin"]),
        asker=Identity.parse(row["asker"]),
        asker_name=row["asker_name"],
        reply_to=row["reply_to"],
        preface=row["preface"],
        model=row["model"],
        steps=row["steps"],
        settled_seq=row["settled_seq"],
        crashes=row["crashes"],
        outside_content=bool(row["outside_content"]),
        usage=Usage(
            input_tokens=row["input_tokens"],
            output_tokens=row["output_tokens"],
            cache_read_tokens=row["cache_read_tokens"],
            cache_write_tokens=row["cache_write_tokens"],
        ),
        failed_usage=Usage(input_tokens=row["failed_input_tokens"], output_tokens=row["failed_output_tokens"]),
        resumed=resumed,
    )
