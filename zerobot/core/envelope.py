"""What comes in: one platform event in the common form."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from zerobot.core.ids import ApprovalId
from zerobot.core.places import ConversationKey, Identity, Place


class TurnOrigin(StrEnum):
    """Who started a turn."""

    USER = "user"
    SCHEDULE = "schedule"
    DAEMON = "daemon"
    NESTED = "nested"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that a person sent. Nothing is fetched yet; `Channel.fetch` does that, off the receiving path."""

    kind: str
    """`image`, `audio`, `video` or `file`."""
    name: str
    """As the sender's side named it: never a path to write to, see `security.filenames`."""
    mime: str = "application/octet-stream"
    size: int | None = None
    """Bytes, as the platform says."""
    ref: str = ""
    """What the adapter needs to fetch it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """What a message answers."""

    author: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundEnvelope:
    """One platform event in the common form; whatever comes after the adapter knows nothing else."""

    conversation: ConversationKey
    sender: Identity
    event_id: str
    """The platform's own id. The same id on the same channel is the same event, however often it arrives."""
    message_id: str = ""
    """The platform's id of the message itself: what a reply answers, what an edit names."""
    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    """In the platform's order; nothing is fetched yet."""
    sender_name: str = ""
    """For people to read. Never compared with anything."""
    sender_handles: tuple[str, ...] = ()
    """Names such as `@ann`. A list may name one: it is bound to the sender's id once, then compared by id."""
    direct: bool = False
    """Whether this is a chat of the sender and the bot alone."""
    addressed: bool = True
    """Whether the bot is spoken to (always in a direct chat; by mention or reply in a group)."""
    from_bot: bool = False
    """Whether another bot wrote it. It is answered only where it names the bot, and only so often in a row."""
    quote: Quote | None = None
    album: str = ""
    """Set when the platform splits one message into several events: the id that they share."""
    sent_at: datetime | None = None
    """When the platform says that it was sent, UTC."""

    @property
    def place(self) -> Place:
        """Where an answer goes."""
        return self.conversation.place


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeEdit:
    """A person changed (or, with `text` None, deleted) a message that he had sent."""

    place: Place
    sender: Identity | None
    """None: the platform does not say whose message was deleted; it lets authors and moderators do that."""
    message_id: str
    text: str | None


class Button(StrEnum):
    """What an approval prompt's button says."""

    APPROVE = "approve"
    ALWAYS = "always"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class ButtonPress:
    """Somebody pressed a button of an approval prompt, or typed its code."""

    channel: str
    presser: Identity
    approval: ApprovalId | None = None
    code: str = ""
    """Typed instead of a button: `/approve CODE`."""
    button: Button
    reason: str = ""
    """What the presser says about it, in a form of the platform's or behind the code; the model reads it after a no."""
    presser_name: str = ""
    place: Place | None = None
    """Where it was pressed."""
    message_id: str = ""
    """The platform's id of the message whose button it was; empty where that is not known."""


class Acceptance(StrEnum):
    """What became of an envelope. Everything but ACCEPTED is a refusal with its reason."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    NOT_ALLOWED = "not_allowed"
    PAIRING = "pairing"
    OWN_MESSAGE = "own_message"
    NOT_ADDRESSED = "not_addressed"
    LOOP = "loop"
    STALE = "stale"
    FULL = "full"
    BLOCKED = "blocked"
    """A guard does not let it in."""
    NO_STORAGE = "no_storage"
