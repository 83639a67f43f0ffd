"""Conversations without a person at a screen: one message (`chat -m`), or a line of stdin after the other."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TextIO

from zerobot.cli.terminal.link import NO_ANSWERS, Link, new_message, new_press
from zerobot.cli.terminal.transcript import Accepted, Asked, Ended, Message, Note, Shown, Transcript
from zerobot.core.errors import ZerobotError
from zerobot.daemon.chat_commands import is_command
from zerobot.security.visible import escape

LEFT = "the terminal was closed"
"""Why a call was denied; the model and the audit read it."""

Decide = Callable[[Asked], Awaitable[tuple[str, str] | None]]
"""Ask the person for a button and a reason; None: he has left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """Where the reply goes, and where all else."""

    out: TextIO
    err: TextIO


async def ask_once(link: Link, text: str, streams: Streams, decide: Decide | None) -> int:
    """Say one thing, and write the reply to `out` when it is complete.

    Args:
        link: Where the bot is.
        text: What to say.
        streams: Where to write.
        decide: Asks the person; None: there is nobody.

    Returns:
        The exit status: 0 when the turn replied, else 1.

    Raises:
        ControlError: The daemon is gone.
    """
    transcript = Transcript()
    await _introduce(link, decide)
    async with contextlib.aclosing(_shown(link, transcript)) as shown:
        return await _Talk(link, transcript, shown, streams, decide).say(text)


async def ask_lines(
    link: Link, lines: AsyncIterator[str], streams: Streams, decide: Decide | None, leave: frozenset[str]
) -> int:
    """Say each line as a message of its own, one after the other; the status is that of the last one.

    Raises:
        ControlError: The daemon is gone.
    """
    transcript = Transcript()
    await _introduce(link, decide)
    status = 0
    async with contextlib.aclosing(_shown(link, transcript)) as shown:
        talk = _Talk(link, transcript, shown, streams, decide)
        async for line in lines:
            if line.strip() in leave:
                break
            if line.strip():
                status = await talk.say(line.rstrip("\n"))
    return status


async def _introduce(link: Link, decide: Decide | None) -> None:
    if decide is None:
        await link.send(NO_ANSWERS)


async def _shown(link: Link, transcript: Transcript) -> AsyncGenerator[Shown, None]:
    async with contextlib.aclosing(link.items()) as items:
        async for item in items:
            for shown in transcript.take(item):
                yield shown


@dataclass(frozen=True, slots=True)
class _Talk:
    """One conversation, a message after the other."""

    link: Link
    transcript: Transcript
    shown: AsyncIterator[Shown]
    streams: Streams
    decide: Decide | None
    one_question: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def say(self, text: str) -> int:
        """Say one thing and follow it to its end; the exit status."""
        message = new_message(text)
        ident = str(message["id"])
        # A command of the chat starts no turn: its answer is all there is.
        command = is_command(text)
        if command:
            self.transcript.commands.add(ident)
        if not await self._send(message, ident):
            return 1
        asking: list[asyncio.Task[None]] = []
        async with asyncio.TaskGroup() as group:
            try:
                return await self._follow(ident, command, lambda a: asking.append(group.create_task(self._answer(a))))
            finally:
                for task in asking:
                    task.cancel()

    async def _follow(self, ident: str, command: bool, ask: Callable[[Asked], None]) -> int:  # noqa: FBT001
        later: set[str] = set()
        ours = False
        async for event in self.shown:
            if isinstance(event, Message):
                # Only the first part of a reply names what it answers.
                ours = event.reply_to == ident or (ours and not event.reply_to)
                if ours:
                    self._write(event)
                if ours and command:
                    return 0
            elif isinstance(event, Asked):
                if event.open and self.decide is not None:
                    ask(event)
            elif (status := self._status(event, ident, later)) is not None:
                return status
        raise ZerobotError("the bot stopped before it answered")

    def _status(self, event: Accepted | Note | Ended, ident: str, later: set[str]) -> int | None:
        """The exit status, if an event is the end of our turn; `later` are the messages that came after ours."""
        match event:
            case Accepted(other):
                later.add(other)
            case Note(note):
                self._tell(note)
            case Ended(reply_to, outcome) if reply_to == ident:
                if outcome == "replied":
                    return 0
                self._tell(f"zerobot: the turn ended as: {outcome}")
                return 1
            case Ended(reply_to, _) if reply_to in later:
                # Turns of one conversation come one after the other: ours was given up for a newer message.
                self._tell("zerobot: a message from another terminal came before this one was answered")
                return 1
        return None

    async def _send(self, message: dict[str, object], ident: str) -> bool:
        """Send a message and wait until it is taken; what else is shown before belongs to what went on before."""
        await self.link.send(message)
        async for event in self.shown:
            match event:
                case Accepted(taken) if taken == ident:
                    return True
                case Note(note):
                    self._tell(note)
                    return False
        raise ZerobotError("the bot stopped before it took the message")

    def _write(self, message: Message) -> None:
        if message.text:
            self.streams.out.write(f"{escape(message.text)}\n")
        if message.file:
            self.streams.out.write(f"[file] {escape(message.file)}\n")
        self.streams.out.flush()

    def _tell(self, text: str) -> None:
        self.streams.err.write(f"{escape(text)}\n")
        self.streams.err.flush()

    async def _answer(self, asked: Asked) -> None:
        """Show a prompt and send the person's answer; one prompt after the other."""
        async with self.one_question:
            if asked.id not in self.transcript.asked:
                return
            for _, label, line in asked.lines:
                self._tell(f"{label}: {line}" if label else line)
            if asked.whole:
                self._tell(asked.whole)
            decision = await self.decide(asked) if self.decide is not None else None
            if decision is None:
                self._tell(f"denied: {LEFT}")
                decision = ("deny", LEFT)
            await self.link.send(new_press(asked.approval, *decision))
