"""What delivery knows of a channel, and what it works with."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from zerobot.core.channel import Channel, ChannelKind, EditsMessages, MessageBody, SentMessage
from zerobot.core.clock import Clock
from zerobot.core.ids import ConversationId, ReplyId, TurnId
from zerobot.core.log import EventLog
from zerobot.core.places import Place
from zerobot.delivery.pacing import Gate
from zerobot.delivery.patience import Patience
from zerobot.store.outbox import Outbox

OnMoved = Callable[[Place, str], Awaitable[None]]
"""Told that a chat has a new id, before anything is sent there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenChannel:
    """A channel that is open, as the daemon hands it to delivery."""

    name: str
    """Of its table; what `Place.channel` says."""
    channel: Channel
    kind: ChannelKind
    drafts: bool
    """Whether its settings want replies to grow in an edited message."""
    notice_after: float | None = None
    """Seconds after which a turn says once that it is still at work, and whether a turn that waits for an operator says
    so; None: people see it otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An open channel, and the gate before its platform."""

    open: OpenChannel
    gate: Gate

    @property
    def channel(self) -> Channel:
        """The channel."""
        return self.open.channel

    @property
    def command_prefix(self) -> str:
        """What our texts name commands by on it."""
        return self.open.kind.capabilities.command_prefix

    @property
    def editor(self) -> EditsMessages | None:
        """The channel, if messages on it can be changed."""
        channel = self.open.channel
        return channel if self.open.kind.capabilities.edits and isinstance(channel, EditsMessages) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What everything in delivery works with."""

    outbox: Outbox
    clock: Clock
    log: EventLog
    on_moved: OnMoved
    patience: Patience


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRef:
    """A turn whose events are shown."""

    turn: TurnId
    conversation: ConversationId
    place: Place
    reply_to: str = ""
    """The platform's id of the message that it answers."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A message of a draft, as it stands on the platform."""

    id: str
    body: MessageBody | None
    """None: not known."""

    def at(self, place: Place) -> SentMessage:
        """The message, as a channel takes it."""
        return SentMessage(place, self.id)


def part_key(reply: ReplyId, position: int, turn: TurnId | None, created_at: datetime | None = None) -> str:
    """The key of a part's message: the same whenever it is sent, and short (a nonce may have 25 characters).

    A turn's id is random, and a notice of no turn has the time: the keys of a daemon that begins again with an empty
    store repeat none of the old one's.
    """
    origin = turn or f"n{int(created_at.timestamp() * 1000):x}" if created_at else turn
    return f"{origin}.{reply}.{position}"
