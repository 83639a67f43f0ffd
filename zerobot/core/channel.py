"""The seam to platforms: what every channel does, what only some can, and how one is found and opened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pydantic import BaseModel

from zerobot.core.approvals import ApprovalPrompt, PressReply
from zerobot.core.clock import Clock
from zerobot.core.command_text import USUAL_PREFIX
from zerobot.core.envelope import Acceptance, Attachment, ButtonPress, EnvelopeEdit, InboundEnvelope
from zerobot.core.log import EventLog
from zerobot.core.places import Identity, Place

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True, slots=True)
class MessageBody:
    """One message in a platform's own form, made by its renderer and stored as it will be sent."""

    text: str
    format: Mapping[str, object] = field(default_factory=dict)
    """What the platform needs beside the text (marks and their offsets, say); plain JSON values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundFile:
    """A file to send; read when it is sent."""

    path: str
    name: str
    mime: str = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundMessage:
    """One message to send."""

    place: Place
    body: MessageBody
    key: str
    """The same for every try of the same message: a nonce, a Message-ID."""
    reply_to: str = ""
    """The platform's id of the message that this one answers."""
    answers: str = ""
    """The same of the reply that it is a part of; only the first part has it in `reply_to` as well."""
    not_before: datetime | None = None
    """No try of this message was earlier, UTC; None: nobody knows."""
    file: OutboundFile | None = None
    """Sent instead of the body's text, which is its caption."""
    growing: bool = False
    """A draft: edits follow, the last one when its turn ends."""


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message that the platform has taken."""

    place: Place
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a kind of channel can do; delivery reads this, it never asks for the platform."""

    edits: bool
    """Messages can be changed, so drafts and settled approval prompts are possible."""
    buttons: bool
    typing_interval: float | None = None
    """Seconds between typing signals while work goes on; None: there is no such signal."""
    groups: bool = False
    """Has chats of several people."""
    addresses: bool = False
    """Ids of people are `LOCAL@DOMAIN`, compared in lower case; `@DOMAIN` in a list lets in everyone of a domain."""
    notice_after: float | None = None
    """Seconds after which a turn says once that it is still at work, and words for a turn that waits for an operator:
    for platforms on which neither a draft nor a typing signal shows it. None: they do."""
    command_prefix: str = USUAL_PREFIX
    """What our texts name commands by: `!` where the platform keeps the slash for itself. Typed, both work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often a platform wants to be called, with the source of each number beside it where it is made.

    Args:
        draft_interval: Seconds between edits of a draft in a chat.
        chat_calls: (calls, seconds): what one chat takes.
        bot_calls: (calls, seconds): what the whole bot may do.
        group_draft_interval: Seconds between edits of a draft in a group; None: as everywhere.
        group_calls: (calls, seconds): what one group takes; None: as every chat.
        is_group: Tells a group from a direct chat by its place; None: the platform makes no difference.
        strict: The platform refuses each call above a chat's number. Else it bears short bursts, and a first answer
            goes out at once.
    """

    draft_interval: float
    chat_calls: tuple[int, float]
    bot_calls: tuple[int, float]
    group_draft_interval: float | None = None
    group_calls: tuple[int, float] | None = None
    is_group: Callable[[Place], bool] | None = None
    strict: bool = False

    def draft_interval_in(self, place: Place) -> float:
        """Seconds between edits of a draft in this place."""
        if self.group_draft_interval is not None and self._groups(place):
            return self.group_draft_interval
        return self.draft_interval

    def calls_in(self, place: Place) -> tuple[int, float]:
        """(calls, seconds): what this place's chat takes."""
        if self.group_calls is not None and self._groups(place):
            return self.group_calls
        return self.chat_calls

    def _groups(self, place: Place) -> bool:
        return self.is_group is not None and self.is_group(place)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCommand:
    """A command of the chat, for platforms that show a menu."""

    name: str
    summary: str
    operators_only: bool = False


class Intake(Protocol):
    """Where everything goes that comes in; a channel is handed one when it runs."""

    async def accept(self, envelope: InboundEnvelope) -> Acceptance:
        """Store an envelope, or refuse it. Only when this has returned may the platform be told that we have it.

        Raises:
            StorageError: It could not be stored: don't acknowledge, let the platform send it again.
        """
        ...

    async def edited(self, edit: EnvelopeEdit) -> None:
        """A message was changed or deleted by its author."""
        ...

    async def press(self, press: ButtonPress) -> PressReply:
        """Somebody pressed a button. Answers at once; the work that a decision starts goes on elsewhere."""
        ...

    async def may_press(self, press: ButtonPress) -> PressReply | None:
        """Ask before a form is opened for a press: what the press would be refused with; None: it would count now."""
        ...

    async def moved(self, old: Place, new_chat: str) -> None:
        """A chat has a new id; its conversation and everything pending go along."""
        ...

    async def alarm(self, subject: str, text: str) -> None:
        """Tell the operators, each in a direct chat, something that needs them; once a day about one subject.

        Args:
            subject: What it is about, the same each time; never shown.
            text: Markdown.

        Raises:
            StorageError: It could not be stored; it is told another time.
        """
        ...

    def connected(self) -> None:
        """The connection works: call it at each connect, and at each sign of life."""
        ...

    def disconnected(self, why: str) -> None:
        """The connection broke and will be tried again."""
        ...


class Channel(Protocol):
    """A live connection to one platform."""

    async def run(self, intake: Intake) -> None:
        """Receive until cancelled. Passing faults are the channel's own business: it backs off and reconnects.

        Raises:
            ChannelFaultError: It can't work as configured (a refused token); the daemon parks this channel only.
        """
        ...

    def render(self, markdown: str) -> Sequence[MessageBody]:
        """Bring our Markdown into messages of the platform; pure, total, and empty when nothing is visible."""
        ...

    def plain(self, body: MessageBody) -> MessageBody:
        """The same message without any formatting: the last resort when the platform refuses it; pure."""
        ...

    def mark_repeat(self, body: MessageBody) -> MessageBody:
        """The same message, visibly marked as a possible repeat; pure. Rendered bodies leave room for the mark."""
        ...

    async def send(self, message: OutboundMessage) -> SentMessage:
        """Send one message.

        Raises:
            TryLaterError, UnclearError, RefusedError, UnreachableError, MovedError: see each.
        """
        ...

    async def fetch(self, attachment: Attachment, limit: int) -> AsyncIterator[bytes]:
        """Fetch an attachment's bytes in pieces.

        Raises:
            DeliveryError: It is gone, too large for the platform or for `limit` (bytes).
        """
        ...

    async def close(self) -> None:
        """Let go of everything; called once, after `run` has ended."""
        ...


@runtime_checkable
class EditsMessages(Protocol):
    """Can change a message that was sent. A channel without it shows no draft, only the reply."""

    async def edit(self, sent: SentMessage, body: MessageBody) -> None:
        """Change a message; the same body again is no error.

        Raises:
            TryLaterError, UnclearError, RefusedError, GoneError, UnreachableError: see each.
        """
        ...

    async def delete(self, sent: SentMessage) -> None:
        """Take a message back; that it is gone already is no error.

        Raises:
            TryLaterError, UnclearError, RefusedError, UnreachableError: see each.
        """
        ...


@runtime_checkable
class GrowsMessages(Protocol):
    """Can let a draft grow otherwise than by edits: meanwhile the message may lag behind or lack its formatting."""

    async def grow(self, sent: SentMessage, body: MessageBody) -> bool:
        """Bring a draft nearer to a body; more follows. `EditsMessages.edit` makes it the body, whole.

        Returns:
            Whether all words of the body stand there; else the same body is given again when its time comes.

        Raises:
            TryLaterError, UnclearError, RefusedError, GoneError, UnreachableError: As for an edit.
        """
        ...

    def is_growing(self, sent: SentMessage) -> bool:
        """Whether a message has grown like this, so that it needs an edit in the end even if no word changes."""
        ...


@runtime_checkable
class ShowsTyping(Protocol):
    """Can show that work goes on."""

    async def typing(self, place: Place) -> None:
        """Show it once; whatever goes wrong is not an error."""
        ...


@runtime_checkable
class AsksApproval(Protocol):
    """Can show an approval prompt with buttons."""

    async def ask(self, place: Place, prompt: ApprovalPrompt, key: str) -> SentMessage:
        """Show a prompt. All of it is shown, or it raises.

        Raises:
            DeliveryError: see `Channel.send`.
        """
        ...

    async def settle(self, sent: SentMessage, prompt: ApprovalPrompt) -> None:
        """Change a prompt that was shown: `prompt.open` is False, the buttons go."""
        ...

    def direct_place(self, operator: Identity) -> Place | None:
        """Where this person is reached alone; None when he can't be by this channel."""
        ...


@runtime_checkable
class SettlesUnclear(Protocol):
    """Can tell whether a message whose sending ended unclear was taken."""

    async def find(self, message: OutboundMessage) -> SentMessage | None:
        """Ask the platform for the message with this key.

        Returns:
            The message; None: it surely was not taken.

        Raises:
            CannotTellError: The platform doesn't know, so the message is sent once more, marked as a repeat.
            DeliveryError: It could not be asked now.
        """
        ...


@runtime_checkable
class AnswersProbe(Protocol):
    """Can tell whether its platform is up, by a call that nobody sees."""

    async def probe(self) -> None:
        """Make one harmless call.

        Raises:
            DeliveryError: The platform does not answer.
        """
        ...


@runtime_checkable
class HasHome(Protocol):
    """Is on a platform whose ids of people hold within a scope: `SCOPE/ID`."""

    @property
    def home(self) -> str:
        """The bot's own scope, which an id written without one means; empty while it is not known."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelServices:
    """What adapters are given, since they may import only `zerobot.core`."""

    name: str
    """The name of the channel's table."""
    http: Callable[[], httpx.AsyncClient]
    """The guarded client: no proxies from the environment, no redirects. Only hosts that the owner has configured may
    be private."""
    escape: Callable[[str], str]
    """Makes control, bidirectional and invisible characters visible."""
    safe_name: Callable[[str], str]
    """A file name of our own choosing, from one that somebody sent."""
    clock: Clock
    log: EventLog
    commands: Sequence[ChatCommand]
    state: ChannelState


class ChannelState(Protocol):
    """A few small values that a channel keeps over restarts (an offset, a last id)."""

    async def get(self, key: str) -> str | None:
        """The value, or None."""
        ...

    async def set(self, key: str, value: str) -> None:
        """Store a value, durably, before it returns."""
        ...

    async def forget(self, key: str) -> None:
        """Remove a value, durably; that there is none is no error."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """One step of `zerobot init` for this kind."""

    key: str
    prompt: str
    secret: bool = False
    help: str = ""
    """Where one gets it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A line of `zerobot doctor`."""

    level: str
    """`ok`, `warn` or `fail`."""
    subject: str
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelKind:
    """What an entry point of the group `zerobot.channels` names. Making one imports no platform library."""

    name: str
    title: str
    settings: type[BaseModel]
    capabilities: Capabilities
    pace: Pace
    extra: str = ""
    """The extra that brings its library: `pip install zerobot[extra]`; empty when it needs none."""
    library: str = ""
    """The top-level module that must be importable."""
    questions: tuple[Question, ...] = ()
    open: Callable[[BaseModel, ChannelServices], Channel]
    """Make a channel (imports the adapter and its platform's library). Connects nothing yet."""
    check: Callable[[BaseModel, ChannelServices], AsyncIterator[Finding]]
    """Prove by real calls that the credentials and rights suffice."""
