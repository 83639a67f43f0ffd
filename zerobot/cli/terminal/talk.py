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
from zerobot.cli.terminal.transcript import Asked, Ended, Message, Note, Shown, Transcript
from zerobot.daemon.chat_commands import is_command

LEAVE = frozenset({"/quit", "/exit"})
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
        self._reason: Asked | None = None
        """The prompt whose denial waits for its reason."""
        self._stopping = False
        self._session: PromptSession[str] = PromptSession(
            history=history,
            key_bindings=self._keys(),
            input=input,
            output=output or _output(),
            erase_when_done=True,
            reserve_space_for_menu=0,
        )

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
        self._session.app.invalidate()

    def _text_of(self, shown: Shown) -> Text | None:
        match shown:
            case Message():
                return message_text(shown).append("\n")
            case Asked():
                if self._reason is not None and self._reason.id == shown.id and not shown.open:
                    self._reason = None
                return asked_text(shown).append("\n")
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
            if self._reason is not None:
                await self._press(self._reason, "deny", line.strip())
                self._reason = None
            elif line.strip() in LEAVE:
                return
            elif line.strip():
                await self._say(line)

    async def _say(self, line: str) -> None:
        self._print(Text(f"› {line}", style="bold"))
        self._transcript.working = self._transcript.working or not is_command(line)
        await self._link.send(new_message(line))

    async def _press(self, asked: Asked, button: str, reason: str = "") -> None:
        self._transcript.answered(asked.id)
        await self._link.send(new_press(asked.approval, button, reason))
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
        if self._reason is not None:
            return "why not? (Enter: no reason) › "
        if asked is not None:
            return f"[a]pprove, {'[A]lways in this chat, ' if asked.grantable else ''}[d]eny › "
        return "› "

    # -- keys ---------------------------------------------------------------------------------------------------------

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        deciding = Condition(self._is_deciding)
        grantable = Condition(lambda: self._is_deciding() and self._current is not None and self._current.grantable)

        def decide(button: str) -> Callable[[KeyPressEvent], None]:
            def pressed(event: KeyPressEvent) -> None:
                asked = self._current
                if asked is not None:
                    event.app.create_background_task(self._press(asked, button))

            return pressed

        keys.add("a", filter=deciding)(decide("approve"))
        keys.add("A", filter=grantable)(decide("always"))
        keys.add("d", filter=deciding)(self._ask_reason)
        keys.add("c-c")(self._interrupt)
        # The same key while something is printed, when the terminal itself makes a signal of it.
        keys.add("<sigint>")(self._interrupt)
        keys.add("c-d", filter=Condition(lambda: not self._session.default_buffer.text))(
            lambda event: event.app.exit(exception=EOFError)
        )
        return keys

    def _is_deciding(self) -> bool:
        return self._current is not None and self._reason is None and not self._session.default_buffer.text

    def _ask_reason(self, event: KeyPressEvent) -> None:
        self._reason = self._current
        event.app.invalidate()

    def _interrupt(self, event: KeyPressEvent) -> None:
        """Ctrl-C: clear what is typed; stop what works; the second time, or with nothing to stop, leave."""
        if self._reason is not None:
            self._reason = None
            event.current_buffer.reset()
        elif event.current_buffer.text:
            event.current_buffer.reset()
        elif self._transcript.working and not self._stopping:
            self._stopping = True
            event.app.create_background_task(self._link.send(new_message("/stop")))
        else:
            event.app.exit(exception=EOFError)
