"""The conversation of a person at a screen: a prompt that is always there, with what still changes drawn above it."""

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText, merge_formatted_text
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.console import Console
from rich.text import Text

from zerobot.cli.terminal.link import Link, new_message, new_press
from zerobot.cli.terminal.paint import asked_text, message_text, note_text, to_ansi
from zerobot.cli.terminal.question import TIME_TO_READ, Decision, Nothing, Say, choices, read_line
from zerobot.cli.terminal.transcript import Asked, Ended, Message, Note, Shown, Transcript
from zerobot.daemon.chat_commands import is_command

LEAVE = frozenset({"/quit", "/exit"})
HELP_HERE = (
    "Here at the terminal: /quit or Ctrl-D leaves, Ctrl-C stops what works, /say TEXT writes while a request waits."
)
ROOM_BELOW = 4
"""Lines of the screen that the draft leaves free: the prompt, and what is typed."""


def open_history(path: Path | None) -> History:
    """The lines that were typed before, kept private; in memory only when there is no file or it can't be used."""
    if path is None:
        return InMemoryHistory()
    try:
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def _output() -> Output:
    """The screen, without questions for the cursor's place: what knows it would draw down to the last line."""
    output = create_output()
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
    return output


class Talk:
    """One person's conversation."""

    def __init__(
        self,
        link: Link,
        history: History,
        *,
        console: Console | None = None,
        input: Input | None = None,  # noqa: A002 - the library's word
        output: Output | None = None,
    ) -> None:
        self._link = link
        self._console = console or Console(highlight=False, markup=False, emoji=False)
        self._transcript = Transcript()
        self._seen: dict[str, float] = {}
        """The requests that were shown, and from when on a key can begin an answer, by the loop's clock."""
        self._begun: float | None = None
        """When the first key of what is typed now was pressed."""
        self._stopping = False
        self._session: PromptSession[str] = PromptSession(
            history=history,
            key_bindings=self._keys(),
            input=input,
            output=output or _output(),
            erase_when_done=True,
            reserve_space_for_menu=0,
        )
        self._session.default_buffer.on_text_changed += lambda buffer: self._typed(buffer.text)

    async def run(self, welcome: str) -> None:
        """Talk until the person leaves or the bot is gone.

        Raises:
            ControlError: The daemon is gone.
        """
        self._print(Text(welcome, style="dim"))
        watching = asyncio.create_task(self._watch(), name="terminal watch")
        reading = asyncio.create_task(self._read(), name="terminal read")
        try:
            await asyncio.wait((watching, reading), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (watching, reading):
                task.cancel()
            await asyncio.wait((watching, reading))
            self._print(*(text for shown in self._transcript.flush() if (text := self._text_of(shown)) is not None))
        for task in (reading, watching):
            if not task.cancelled():
                task.result()

    # -- what comes ---------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        async with contextlib.aclosing(self._link.items()) as items:
            async for item in items:
                await self._show(self._transcript.take(item))
        await self._show([*self._transcript.flush(), Note("The bot has stopped.")])

    async def _show(self, settled: list[Shown]) -> None:
        texts = [text for shown in settled if (text := self._text_of(shown)) is not None]
        if texts:
            await self._print_above(partial(self._print, *texts))
        await self._ask()
        self._session.app.invalidate()

    async def _ask(self) -> None:
        """Show the request that is to be answered now; the next one is shown when that is settled."""
        asked = self._current
        if asked is None or asked.id in self._seen:
            return
        loop = asyncio.get_running_loop()
        self._seen[asked.id] = float("inf")
        await self._print_above(partial(self._print, asked_text(asked).append("\n")))
        self._seen[asked.id] = loop.time() + TIME_TO_READ
        loop.call_later(TIME_TO_READ, self._session.app.invalidate)

    def _text_of(self, shown: Shown) -> Text | None:
        match shown:
            case Message():
                return message_text(shown).append("\n")
            case Asked() if not shown.open:
                return asked_text(shown, seen=shown.id in self._seen).append("\n")
            case Note():
                return note_text(shown)
            case Ended():
                self._stopping = False
        return None

    async def _print_above(self, write: Callable[[], None]) -> None:
        if self._session.app.is_running:
            await run_in_terminal(write)
        else:
            write()

    def _print(self, *texts: Text) -> None:
        for text in texts:
            self._console.print(text)

    # -- what is typed ------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        while True:
            try:
                line = await self._session.prompt_async(self._message)
            except EOFError:
                return
            begun, self._begun = self._begun, None
            if line.strip() in LEAVE:
                return
            if line.strip():
                await self._take(line, begun)

    async def _take(self, line: str, begun: float | None) -> None:
        """Do what a line says.

        Args:
            line: As it was typed.
            begun: When its first key was pressed, by the loop's clock.
        """
        asked = self._current
        read = read_line(line, asked, in_time=asked is not None and self._in_time(asked, begun))
        match read:
            case Say(text):
                await self._say(text)
            case Nothing(why):
                self._print(note_text(Note(why)))
            case Decision(button, reason) if asked is not None:
                await self._press(asked, button, reason)

    def _in_time(self, asked: Asked, begun: float | None) -> bool:
        return begun is not None and asked.id in self._seen and begun >= self._seen[asked.id]

    async def _say(self, line: str) -> None:
        self._print(Text(f"› {line}", style="bold"))
        if line.strip() == "/help":
            self._print(Text(HELP_HERE, style="dim"))
        await self._send(line)

    async def _send(self, text: str) -> None:
        message = new_message(text)
        if is_command(text):
            self._transcript.commands.add(str(message["id"]))
        else:
            self._transcript.working = True
        await self._link.send(message)

    async def _press(self, asked: Asked, button: str, reason: str = "") -> None:
        self._transcript.answered(asked.id)
        await self._link.send(new_press(asked.approval, button, reason))
        await self._ask()
        self._session.app.invalidate()

    @property
    def _current(self) -> Asked | None:
        return next(iter(self._transcript.asked.values()), None)

    def _message(self) -> AnyFormattedText:
        """The draft, what goes on, and the prompt itself."""
        parts: list[AnyFormattedText] = []
        live = [message_text(message) for message in self._transcript.live.values()]
        if live:
            rows = max(self._session.app.output.get_size().rows - ROOM_BELOW, 3)
            parts += [ANSI(to_ansi(Text("\n").join(live), self._console, rows)), "\n"]
        if self._transcript.working:
            parts.append([("ansibrightblack", "… working (Ctrl-C stops it)\n")])
        parts.append([("bold", self._question())])
        return merge_formatted_text(parts)

    def _question(self) -> str:
        asked = self._current
        if asked is None:
            return "› "
        if not self._in_time(asked, asyncio.get_running_loop().time()):
            return "read the request above … › "
        more = len(self._transcript.asked) - 1
        return f"{choices(asked)}{f' ({more} more after this)' if more else ''} › "

    # -- keys ---------------------------------------------------------------------------------------------------------

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        keys.add("c-c")(self._interrupt)
        # The same key while something is printed, when the terminal itself makes a signal of it.
        keys.add("<sigint>")(self._interrupt)
        keys.add("c-d", filter=Condition(lambda: not self._session.default_buffer.text))(
            lambda event: event.app.exit(exception=EOFError)
        )
        return keys

    def _typed(self, text: str) -> None:
        """The line has changed: note when it was begun."""
        if not text:
            self._begun = None
        elif self._begun is None:
            self._begun = asyncio.get_running_loop().time()

    def _interrupt(self, event: KeyPressEvent) -> None:
        """Ctrl-C: clear what is typed; stop what works; the second time, or with nothing to stop, leave."""
        if event.current_buffer.text:
            event.current_buffer.reset()
            self._begun = None
        elif self._transcript.working and not self._stopping:
            self._stopping = True
            event.app.create_background_task(self._send("/stop"))
        else:
            event.app.exit(exception=EOFError)
