"""Lines from stdin, read on a thread of their own: a read that never returns must not keep the process alive."""

import asyncio
import sys
import termios
import threading
from collections.abc import AsyncIterator

from zerobot.cli.terminal.question import TIME_TO_READ, Decision, choices, read_answer
from zerobot.cli.terminal.transcript import Asked


class StdinLines:
    """The lines of stdin; whoever wants one takes the next."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._reading = False
        self._ended = False

    async def next(self) -> str:
        """The next line with its line feed; empty at the end, and ever after."""
        if not self._reading:
            self._reading = True
            threading.Thread(target=self._read, args=(asyncio.get_running_loop(),), name="stdin", daemon=True).start()
        if self._ended:
            return ""
        line = await self._queue.get()
        self._ended = not line
        return line

    async def lines(self) -> AsyncIterator[str]:
        """Each line, until the end."""
        while line := await self.next():
            yield line

    def forget(self) -> None:
        """Drop what was typed and not taken yet, also on a terminal's own side."""
        try:
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        except (OSError, ValueError, termios.error):
            # No terminal, or closed: what is there was not typed.
            return
        while not self._queue.empty():
            self._ended = not self._queue.get_nowait() or self._ended

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        line = "more"
        while line:
            try:
                line = sys.stdin.readline()
            except (OSError, ValueError):
                line = ""
            try:
                loop.call_soon_threadsafe(self._queue.put_nowait, line)
            except RuntimeError:
                # The loop is closed: nobody waits any more.
                return


class LineAnswers:
    """Asks on stderr, and reads the answers from stdin, a line each."""

    def __init__(self, lines: StdinLines) -> None:
        self._lines = lines

    async def decide(self, asked: Asked) -> tuple[str, str] | None:
        """A `Decide`: a, A, or d with a reason behind it; None at the end of stdin."""
        # Whatever was typed before the request could be read was meant for something else.
        await asyncio.sleep(TIME_TO_READ)
        self._lines.forget()
        question = f"{choices(asked)}? "
        _write(question)
        async for line in self._lines.lines():
            answer = read_answer(line, asked)
            if isinstance(answer, Decision):
                return answer.button, answer.reason
            _write(f"{answer.why if line.strip() else ''}\n{question}".lstrip("\n"))
        return None


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
