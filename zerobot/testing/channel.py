"""Channels that live in memory: what was said to them can be read, and they fail or hold when a test says so."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from pydantic import BaseModel

from zerobot.core.approvals import ApprovalPrompt, PressReply
from zerobot.core.channel import (
    AsksApproval,
    Capabilities,
    Channel,
    ChannelKind,
    ChannelServices,
    EditsMessages,
    Finding,
    Intake,
    MessageBody,
    OutboundMessage,
    Pace,
    SentMessage,
    SettlesUnclear,
    ShowsTyping,
)
from zerobot.core.clock import Clock
from zerobot.core.command_text import USUAL_PREFIX
from zerobot.core.envelope import Acceptance, Attachment, ButtonPress, EnvelopeEdit, InboundEnvelope
from zerobot.core.places import Identity, Place

FAST = Pace(draft_interval=1.1, chat_calls=(1, 1.0), bot_calls=(30, 1.0))
REPEAT_MARK = "(possible repeat) "


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that delivery made."""

    kind: str
    """`send`, `edit`, `delete`, `typing`, `ask`, `settle` or `find`."""
    place: Place
    at: float
    """Monotonic seconds."""
    text: str = ""
    id: str = ""
    """Of an edit: the message. Of a send: what it got, empty when it was not taken."""
    key: str = ""
    reply_to: str = ""
    prompt: ApprovalPrompt | None = None


@dataclass(slots=True)
class _Fault:
    """What happens to some next calls."""

    kind: str
    error: Exception
    times: int
    place: Place | None
    taken: bool


@dataclass(slots=True)
class Hold:
    """Calls that do not return before the test lets them."""

    kind: str
    place: Place | None
    _open: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Let them go on."""
        self._open.set()

    async def wait(self) -> None:
        """Wait for the release."""
        await self._open.wait()


class PlainChannel:
    """A channel that can only send, as e-mail does: no drafts, no buttons.

    Args:
        clock: Its time stands in each `Call`.
        limit: Characters that a message may have; longer texts are cut there.
    """

    def __init__(self, clock: Clock, *, limit: int = 4000) -> None:
        self.calls: list[Call] = []
        self.messages: dict[Place, dict[str, MessageBody]] = {}
        """What people see, by the message's id, oldest first."""
        self.handed: list[OutboundMessage] = []
        """Each message that was to be sent, as often as it was."""
        self.files: dict[str, bytes] = {}
        """What `fetch` gives, by the attachment's `ref`."""
        self.limit = limit
        self._clock = clock
        self._ids = count(1)
        self._faults: list[_Fault] = []
        self._holds: list[Hold] = []
        self._changed = asyncio.Event()
        self._intake: asyncio.Future[Intake] | None = None

    def fail(
        self, kind: str, error: Exception, *, times: int = 1, place: Place | None = None, taken: bool = False
    ) -> None:
        """Let the next calls of a kind fail; `taken`: the platform does it all the same, the answer is what is lost."""
        self._faults.append(_Fault(kind, error, times, place, taken))

    def heal(self) -> None:
        """Forget the faults that have not happened yet."""
        self._faults.clear()

    def hold(self, kind: str, place: Place | None = None) -> Hold:
        """Keep calls of a kind from returning until the result's `release`; what they do is done before."""
        hold = Hold(kind, place)
        self._holds.append(hold)
        return hold

    def of(self, *kinds: str, place: Place | None = None) -> list[Call]:
        """The calls of some kinds, in order."""
        return [call for call in self.calls if call.kind in kinds and place in (None, call.place)]

    def texts(self, place: Place) -> list[str]:
        """What a chat shows now."""
        return [body.text for body in self.messages.get(place, {}).values()]

    async def until(self, condition: Callable[[], bool], *, patience: float = 10.0) -> None:
        """Wait until calls have made something true.

        Args:
            condition: Looked at after each call.
            patience: Real seconds.

        Raises:
            TimeoutError: It did not come to hold.
        """
        async with asyncio.timeout(patience):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def intake(self) -> Intake:
        """What `run` was handed, as soon as it runs."""
        if self._intake is None:
            self._intake = asyncio.get_running_loop().create_future()
        return await asyncio.shield(self._intake)

    async def receive(self, envelope: InboundEnvelope) -> Acceptance:
        """Somebody writes."""
        return await (await self.intake()).accept(envelope)

    async def change(self, edit: EnvelopeEdit) -> None:
        """Somebody changes or deletes a message."""
        await (await self.intake()).edited(edit)

    async def press(self, press: ButtonPress) -> PressReply:
        """Somebody presses a button."""
        return await (await self.intake()).press(press)

    async def run(self, intake: Intake) -> None:
        """Be connected until cancelled."""
        if self._intake is None:
            self._intake = asyncio.get_running_loop().create_future()
        self._intake.set_result(intake)
        intake.connected()
        try:
            await asyncio.Event().wait()
        finally:
            self._intake = None

    def render(self, markdown: str) -> Sequence[MessageBody]:
        """Cut at the limit; `format` shows that it is not the plain form."""
        text = markdown.strip()
        return [MessageBody(text[at : at + self.limit], {"rich": True}) for at in range(0, len(text), self.limit)]

    def plain(self, body: MessageBody) -> MessageBody:
        """The text alone."""
        return MessageBody(body.text)

    def mark_repeat(self, body: MessageBody) -> MessageBody:
        """The text with `REPEAT_MARK` before it."""
        return MessageBody(REPEAT_MARK + body.text, body.format)

    async def send(self, message: OutboundMessage) -> SentMessage:
        """Show a message."""

        def take() -> str:
            return self._show(message.place, message.body)

        self.handed.append(message)
        return SentMessage(
            message.place,
            await self._call(
                "send", message.place, take, message.body.text, key=message.key, reply_to=message.reply_to
            ),
        )

    async def fetch(self, attachment: Attachment, limit: int) -> AsyncIterator[bytes]:
        """Give the bytes of `files`."""

        async def pieces() -> AsyncIterator[bytes]:
            yield self.files[attachment.ref][:limit]

        return pieces()

    async def close(self) -> None:
        """Nothing is held open."""

    def _show(self, place: Place, body: MessageBody) -> str:
        ident = f"m{next(self._ids)}"
        self.messages.setdefault(place, {})[ident] = body
        return ident

    async def _call(
        self,
        kind: str,
        place: Place,
        take: Callable[[], str],
        text: str = "",
        *,
        key: str = "",
        reply_to: str = "",
        prompt: ApprovalPrompt | None = None,
    ) -> str:
        """Note a call, do it unless it fails, hold it if asked to, and return the message's id."""
        at = self._clock.monotonic()
        fault = self._next_fault(kind, place)
        ident = take() if fault is None or fault.taken else ""
        self.calls.append(
            Call(kind=kind, place=place, at=at, text=text, id=ident, key=key, reply_to=reply_to, prompt=prompt)
        )
        self._changed.set()
        for hold in self._holds:
            if hold.kind == kind and hold.place in (None, place):
                await hold.wait()
        if fault is not None:
            raise fault.error
        return ident

    def _next_fault(self, kind: str, place: Place) -> _Fault | None:
        for fault in self._faults:
            if fault.kind == kind and fault.place in (None, place) and fault.times:
                fault.times -= 1
                return fault
        return None


class ProbedChannel(PlainChannel):
    """A channel whose platform can be asked whether it is up."""

    async def probe(self) -> None:
        """One harmless call, noted as `probe`."""
        await self._call("probe", Place("", ""), lambda: "")


class FakeChannel(PlainChannel):
    """A chat channel: edits, typing signals and approval prompts.

    Args:
        clock: Its time stands in each `Call`.
        name: The table's name; a person's direct chat is the place `NAME:ID`.
        platform: Of the identities that it reaches directly.
        limit: Characters that a message may have.
    """

    def __init__(self, clock: Clock, *, name: str = "fake", platform: str = "fake", limit: int = 4000) -> None:
        super().__init__(clock, limit=limit)
        self.name = name
        self.platform = platform

    async def edit(self, sent: SentMessage, body: MessageBody) -> None:
        """Change a message."""

        def take() -> str:
            if sent.id in self.messages.get(sent.place, {}):
                self.messages[sent.place][sent.id] = body
            return sent.id

        await self._call("edit", sent.place, take, body.text)

    async def delete(self, sent: SentMessage) -> None:
        """Take a message back."""

        def take() -> str:
            self.messages.get(sent.place, {}).pop(sent.id, None)
            return sent.id

        await self._call("delete", sent.place, take)

    async def typing(self, place: Place) -> None:
        """Note a typing signal."""
        await self._call("typing", place, lambda: "")

    async def ask(self, place: Place, prompt: ApprovalPrompt, key: str) -> SentMessage:
        """Show a prompt."""
        body = _laid_out(prompt)
        return SentMessage(
            place, await self._call("ask", place, lambda: self._show(place, body), body.text, key=key, prompt=prompt)
        )

    async def settle(self, sent: SentMessage, prompt: ApprovalPrompt) -> None:
        """Change a prompt."""
        body = _laid_out(prompt)

        def take() -> str:
            if sent.id in self.messages.get(sent.place, {}):
                self.messages[sent.place][sent.id] = body
            return sent.id

        await self._call("settle", sent.place, take, body.text, prompt=prompt)

    def direct_place(self, operator: Identity) -> Place | None:
        """The person's direct chat, for people of this platform."""
        return Place(self.name, operator.id) if operator.platform == self.platform else None


class AskableChannel(FakeChannel):
    """A chat channel that can be asked whether it took a message."""

    async def find(self, message: OutboundMessage) -> SentMessage | None:
        """Look for a message by its key."""
        await self._call("find", message.place, lambda: "", key=message.key)
        for call in self.of("send", "ask", place=message.place):
            if call.key == message.key and call.id:
                return SentMessage(message.place, call.id)
        return None


def _laid_out(prompt: ApprovalPrompt) -> MessageBody:
    lines = [f"{line.label}: {line.text}" if line.label else line.text for line in prompt.lines]
    return MessageBody("\n".join(lines), {"buttons": prompt.open})


def fake_kind(
    *,
    pace: Pace = FAST,
    edits: bool = True,
    buttons: bool = True,
    typing_interval: float | None = 4.0,
    command_prefix: str = USUAL_PREFIX,
) -> ChannelKind:
    """A kind whose numbers a test chooses. Its channels are made by the test, not by `open`."""

    def open_channel(settings: BaseModel, services: ChannelServices) -> Channel:  # noqa: ARG001 -- the seam's signature
        return FakeChannel(services.clock, name=services.name)

    async def check(settings: BaseModel, services: ChannelServices) -> AsyncIterator[Finding]:  # noqa: ARG001
        yield Finding("ok", services.name, "it is a double")

    return ChannelKind(
        name="fake",
        title="Fake",
        settings=BaseModel,
        capabilities=Capabilities(
            edits=edits,
            buttons=buttons,
            typing_interval=typing_interval,
            groups=True,
            command_prefix=command_prefix,
        ),
        pace=pace,
        open=open_channel,
        check=check,
    )


def _fits(plain: PlainChannel, fake: FakeChannel, askable: AskableChannel) -> None:
    """Proof for the type checker that the doubles are what they double."""
    _channel: Channel = plain
    _edits: EditsMessages = fake
    _asks: AsksApproval = fake
    _shows: ShowsTyping = fake
    _finds: SettlesUnclear = askable
