"""The terminal as a channel: composition and life cycle."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import TYPE_CHECKING

from channels.console import buttons
from channels.console.decode import CHAT, LOCAL, decode
from channels.console.render import mark_repeat, plain, render
from channels.console.seats import Seats
from zerobot.core.channel import SentMessage
from zerobot.core.errors import GoneError, StorageError, TryLaterError, UnreachableError
from zerobot.core.places import Identity, Place

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from zerobot.core.approvals import ApprovalPrompt
    from zerobot.core.channel import ChannelServices, Intake, MessageBody, OutboundMessage
    from zerobot.core.envelope import Attachment
    from zerobot.core.events import Outcome
    from zerobot.core.terminal import Terminal

ATTACH_SECONDS = 2.0
"""How long a message waits for a terminal: at a start the daemon is sooner ready than the person's screen."""

RETRY_SECONDS = 15.0
"""After which a message is tried again while nobody sits at a terminal."""

_ASKED = "asked"
"""The key under which the open prompts are kept: a terminal that is attached later shows them too."""


class ConsoleChannel:
    """One conversation, seen by every terminal that is attached."""

    def __init__(self, services: ChannelServices) -> None:
        self._services = services
        self._place = Place(services.name, CHAT)
        self._seats = Seats()
        self._intake: asyncio.Future[Intake] | None = None
        self._asked: dict[str, Mapping[str, object]] = {}
        self._mute: list[Terminal] = []
        """Those at which nobody sits who could answer: a script, a pipe."""

    async def run(self, intake: Intake) -> None:
        """Serve terminals until cancelled."""
        self._asked = _read_asked(await self._services.state.get(_ASKED))
        self._opened().set_result(intake)
        intake.connected()
        try:
            await asyncio.Event().wait()
        finally:
            self._intake = None

    async def attach(self, terminal: Terminal) -> None:
        """Serve a terminal until it is closed or gone."""
        intake = await asyncio.shield(self._opened())
        open_prompts = [self._ask_item(ident, prompt) for ident, prompt in self._asked.items()]
        writing = asyncio.create_task(self._seats.write(terminal, open_prompts), name="terminal output")
        reading = asyncio.create_task(self._read(terminal, intake), name="terminal input")
        try:
            await asyncio.wait((writing, reading), return_when=asyncio.FIRST_COMPLETED)
        finally:
            writing.cancel()
            reading.cancel()
            await asyncio.wait((writing, reading))
            self._mute = [each for each in self._mute if each is not terminal]
        for task in (writing, reading):
            if not task.cancelled():
                task.result()

    async def close(self) -> None:
        """Nothing is held beside the terminals, and those are their owners'."""

    def render(self, markdown: str) -> Sequence[MessageBody]:
        """See `Channel.render`."""
        return render(markdown, self._services.escape)

    def plain(self, body: MessageBody) -> MessageBody:
        """See `Channel.plain`."""
        return plain(body)

    def mark_repeat(self, body: MessageBody) -> MessageBody:
        """See `Channel.mark_repeat`."""
        return mark_repeat(body)

    async def send(self, message: OutboundMessage) -> SentMessage:
        """Show a message; a file is shown by its name and path.

        Raises:
            TryLaterError: No terminal is attached.
        """
        await self._somebody()
        sent = SentMessage(message.place, uuid.uuid4().hex)
        more = {"reply_to": message.reply_to, "growing": message.growing}
        self._seats.tell(_message("message", sent, message.body) | more | self._file(message))
        return sent

    async def edit(self, sent: SentMessage, body: MessageBody) -> None:
        """Show a message's new text.

        Raises:
            TryLaterError: No terminal is attached.
        """
        await self._somebody()
        self._seats.tell(_message("edit", sent, body))

    async def delete(self, sent: SentMessage) -> None:
        """Take a message off the screen, where it has not scrolled away."""
        self._seats.tell({"kind": "delete", "id": sent.id})

    async def fetch(self, attachment: Attachment, limit: int) -> AsyncIterator[bytes]:  # noqa: ARG002 - the seam's
        """Terminals send no attachments.

        Raises:
            GoneError: Always.
        """
        raise GoneError(f"a terminal has no attachment {attachment.name!r}")

    async def typing(self, place: Place) -> None:
        """Show that work goes on."""
        self._seats.tell({"kind": "typing", "chat": place.chat})

    async def turn_ended(self, place: Place, reply_to: str, outcome: Outcome) -> None:
        """Tell the terminals that a turn is over."""
        self._seats.tell({"kind": "ended", "chat": place.chat, "reply_to": reply_to, "outcome": outcome.value})

    async def ask(self, place: Place, prompt: ApprovalPrompt, key: str) -> SentMessage:
        """Show a prompt; it is kept, and shown again to each terminal that is attached while it is open.

        Raises:
            UnreachableError: Terminals are attached, and nobody sits at any of them.
        """
        sent = SentMessage(place, key)
        laid_out = buttons.lay_out(prompt, self._services.escape)
        if self._mute and len(self._mute) >= self._seats.count:
            self._seats.tell({"kind": "unasked", "prompt": laid_out})
            raise UnreachableError("nobody can be asked: the terminal is not interactive")
        await self._keep({**self._asked, sent.id: laid_out})
        self._seats.tell(self._ask_item(sent.id, laid_out))
        return sent

    async def settle(self, sent: SentMessage, prompt: ApprovalPrompt) -> None:
        """Show what a prompt came to."""
        laid_out = buttons.lay_out(prompt, self._services.escape)
        self._seats.tell({"kind": "settle", "id": sent.id, "prompt": laid_out})
        await self._keep({ident: kept for ident, kept in self._asked.items() if ident != sent.id})

    def direct_place(self, operator: Identity) -> Place | None:
        """The one chat, for the person at the terminal."""
        return self._place if operator == LOCAL else None

    async def _somebody(self) -> None:
        try:
            async with asyncio.timeout(ATTACH_SECONDS):
                await self._seats.taken()
        except TimeoutError:
            raise TryLaterError("no terminal is attached", retry_after=RETRY_SECONDS) from None

    async def _read(self, terminal: Terminal, intake: Intake) -> None:
        async for value in terminal.inputs():
            if value.get("answers") is False:
                self._mute.append(terminal)
            else:
                self._seats.tell(await self._receive(value, intake))

    async def _receive(self, value: Mapping[str, object], intake: Intake) -> Mapping[str, object]:
        """Take one thing that a person did, and say what became of it."""
        ident = str(value.get("id", ""))
        try:
            press = buttons.read(value, LOCAL, self._place)
            if press is not None:
                reply = await intake.press(press)
                return {"kind": "pressed", "outcome": reply.outcome.value, "text": self._services.escape(reply.text)}
            envelope = decode(value, self._services.name, self._services.clock.now())
            acceptance = "empty" if envelope is None else (await intake.accept(envelope)).value
        except StorageError as error:
            return {"kind": "failed", "id": ident, "text": self._services.escape(error.user_text)}
        return {"kind": "accepted", "id": ident, "acceptance": acceptance}

    async def _keep(self, asked: dict[str, Mapping[str, object]]) -> None:
        await self._services.state.set(_ASKED, json.dumps(asked))
        self._asked = asked

    def _ask_item(self, ident: str, prompt: Mapping[str, object]) -> Mapping[str, object]:
        return {"kind": "ask", "id": ident, "prompt": prompt}

    def _file(self, message: OutboundMessage) -> dict[str, object]:
        if message.file is None:
            return {}
        return {"file": self._services.escape(f"{message.file.name} ({message.file.path})")}

    def _opened(self) -> asyncio.Future[Intake]:
        """What `run` resolves; terminals may come before it and wait."""
        if self._intake is None:
            self._intake = asyncio.get_running_loop().create_future()
        return self._intake


def _message(kind: str, sent: SentMessage, body: MessageBody) -> dict[str, object]:
    return {"kind": kind, "id": sent.id, "text": body.text, "spans": body.format.get("spans", [])}


def _read_asked(text: str | None) -> dict[str, Mapping[str, object]]:
    asked = json.loads(text) if text else {}
    return {str(ident): prompt for ident, prompt in asked.items()}
