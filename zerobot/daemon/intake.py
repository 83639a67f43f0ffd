"""Where everything comes in: an envelope is stored, a command is carried out, a press is decided."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from zerobot.core.admission import Admission
from zerobot.core.approvals import PressOutcome, PressReply
from zerobot.core.command_text import USUAL_PREFIX, with_prefix
from zerobot.core.envelope import Acceptance, ButtonPress, EnvelopeEdit, InboundEnvelope
from zerobot.core.errors import StorageError, ZerobotError
from zerobot.core.guards import NO_GUARDS, Guards, Passage, Ruling
from zerobot.core.ids import ConversationId, InboxId
from zerobot.core.log import EventLog
from zerobot.core.places import Identity, Place
from zerobot.daemon.chat_commands import is_command
from zerobot.store.inbox import Accepted, Inbox, WaitingCommand
from zerobot.turn.guards import judge_input

FULL = "I have {count} messages of this chat waiting already, so I did not take this one. Please send it again later."
STRANGER = (
    "I don't know you yet. Your id is `{who}`. Give this code to whoever runs me: **{code}**\n\n"
    "They let you in with `/pair {code}` or `zerobot pair approve {code}`; it is good for an hour."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeWires:
    """Where an intake leads to; the same for all channels."""

    inbox: Inbox
    wake: Callable[[ConversationId], None]
    command: Callable[[WaitingCommand], None]
    """Starts a command at once, beside the queues."""
    interrupt: Callable[[ConversationId, InboxId], Awaitable[None]]
    """A newer input ends the running turn, where that is wanted."""
    press: Callable[[ButtonPress], Awaitable[PressReply]]
    may_press: Callable[[ButtonPress], Awaitable[PressReply | None]]
    notice: Callable[[Place, str, str], Awaitable[object]]
    """(place, Markdown, the message that is answered)."""
    stranger: Callable[[], None]
    """Somebody asks to be let in."""
    move: Callable[[Place, str], Awaitable[None]]
    alarm: Callable[[str, str, str], Awaitable[None]]
    """(channel, subject, Markdown): tells the operators."""
    alive: Callable[[str, str | None], None]
    """(channel, why it broke): None says that it is connected."""
    log: EventLog
    guards: Guards = NO_GUARDS
    """Those of inputs look at what people write before it is stored: what they block leaves everything as it was."""


class ChannelIntake:
    """One channel's way in. An `Intake`."""

    def __init__(
        self,
        name: str,
        admission: Callable[[], Admission],
        wires: IntakeWires,
        *,
        require_mention: bool,
        interrupts: bool = False,
        command_prefix: str = USUAL_PREFIX,
    ) -> None:
        self._name = name
        self._admission = admission
        self._wires = wires
        self._require_mention = require_mention
        self._interrupts = interrupts
        self._command_prefix = command_prefix

    async def accept(self, envelope: InboundEnvelope) -> Acceptance:
        """Store an envelope, or refuse it; a command is stored too, and starts at once.

        An envelope that we trip over counts as refused: the platform would repeat it for ever, and nothing after it
        would come in.

        Raises:
            StorageError: It could not be stored.
        """
        with self._fence("envelope.crashed"):
            return await self._accept(envelope)
        return Acceptance.NOT_ALLOWED

    async def _accept(self, envelope: InboundEnvelope) -> Acceptance:
        if (self._require_mention or envelope.from_bot) and not (envelope.addressed or envelope.direct):
            self._refused(envelope, Acceptance.NOT_ADDRESSED)
            return Acceptance.NOT_ADDRESSED
        command = is_command(envelope.text)
        ruling = None if command else await self._ruling(envelope.text, envelope.place, envelope.sender)
        if ruling is not None and ruling.blocked:
            return await self._refuse(envelope, ruling)
        if ruling is not None:
            envelope = replace(envelope, text=ruling.text)
        accepted = await self._wires.inbox.accept(envelope, self._admission(), is_command=command)
        if accepted.outcome is Acceptance.ACCEPTED:
            self._wires.log("envelope.accepted", channel=self._name, conversation=accepted.conversation)
        else:
            await self._explain(envelope, accepted)
        if accepted.outcome in (Acceptance.ACCEPTED, Acceptance.DUPLICATE):
            await self._begin(envelope, accepted)
        return accepted.outcome

    async def _ruling(self, text: str, place: Place, sender: Identity | None) -> Ruling | None:
        """What the guards say of an input; None when there are none."""
        guards = self._wires.guards
        if not (guards.input or guards.required):
            return None
        return await judge_input(guards, Passage(text=text, place=place, sender=sender), self._wires.log)

    async def _refuse(self, envelope: InboundEnvelope, ruling: Ruling) -> Acceptance:
        """Refuse what a guard has blocked. As with a full queue, its id alone is stored: a repeat isn't answered."""
        accepted = await self._wires.inbox.accept(envelope, self._admission(), is_command=False, queue_limit=0)
        if accepted.outcome is Acceptance.FULL:
            self._refused(envelope, Acceptance.BLOCKED)
            await self._wires.notice(envelope.place, ruling.text, envelope.message_id)
            return Acceptance.BLOCKED
        await self._explain(envelope, accepted)
        return accepted.outcome

    async def _begin(self, envelope: InboundEnvelope, accepted: Accepted) -> None:
        """Start what was stored. Also for one that is known: whoever stored it may have been cut off before this."""
        if accepted.conversation is None:
            return
        if accepted.inbox_id is not None and is_command(envelope.text):
            command = WaitingCommand(id=accepted.inbox_id, conversation=accepted.conversation, envelope=envelope)
            self._wires.command(command)
            return
        if self._interrupts and accepted.inbox_id is not None:
            await self._wires.interrupt(accepted.conversation, accepted.inbox_id)
        self._wires.wake(accepted.conversation)

    async def _explain(self, envelope: InboundEnvelope, accepted: Accepted) -> None:
        self._refused(envelope, accepted.outcome)
        if accepted.outcome is Acceptance.FULL and accepted.conversation is not None:
            count = await self._wires.inbox.waiting_count(accepted.conversation)
            await self._wires.notice(envelope.place, FULL.format(count=count), envelope.message_id)
        if accepted.pairing is not None:
            text = with_prefix(STRANGER, self._command_prefix).format(code=accepted.pairing.code, who=envelope.sender)
            await self._wires.notice(envelope.place, text, envelope.message_id)
            self._wires.stranger()

    def _refused(self, envelope: InboundEnvelope, reason: Acceptance) -> None:
        self._wires.log("envelope.refused", channel=self._name, reason=reason, sender=str(envelope.sender))

    async def edited(self, edit: EnvelopeEdit) -> None:
        """A message that still waits is changed or cancelled with it; any other stays as it was said."""
        with self._fence("envelope.crashed"):
            ruling = None if edit.text is None else await self._ruling(edit.text, edit.place, edit.sender)
            if ruling is not None:
                edit = replace(edit, text=None if ruling.blocked else ruling.text)
            changed = await self._wires.inbox.edit(edit, self._admission())
            if changed and ruling is not None and ruling.blocked:
                await self._wires.notice(edit.place, ruling.text, edit.message_id)
            self._wires.log("envelope.edited", level="debug", channel=self._name, changed=changed)

    async def press(self, press: ButtonPress) -> PressReply:
        """Decide a press; what it starts goes on elsewhere."""
        with self._fence("press.crashed"):
            return await self._wires.press(press)
        return PressReply(PressOutcome.UNKNOWN, ZerobotError.user_text)

    async def may_press(self, press: ButtonPress) -> PressReply | None:
        """What a press would be refused with; None: it would count now."""
        with self._fence("press.crashed"):
            return await self._wires.may_press(press)
        return PressReply(PressOutcome.UNKNOWN, ZerobotError.user_text)

    async def moved(self, old: Place, new_chat: str) -> None:
        """A chat has a new id."""
        with self._fence("envelope.crashed"):
            await self._wires.move(old, new_chat)

    async def alarm(self, subject: str, text: str) -> None:
        """Tell the operators; see `Intake`."""
        with self._fence("alarm.crashed"):
            await self._wires.alarm(self._name, subject, text)

    @contextmanager
    def _fence(self, event: str) -> Iterator[None]:
        """Log a bug instead of passing it on to the adapter, which could only break over it, again and again."""
        try:
            yield
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001 - one odd event must not make a channel deaf for all others
            self._wires.log(event, level="error", error=error, channel=self._name)

    def connected(self) -> None:
        """The connection works."""
        self._wires.alive(self._name, None)

    def disconnected(self, why: str) -> None:
        """The connection broke."""
        self._wires.alive(self._name, why)
