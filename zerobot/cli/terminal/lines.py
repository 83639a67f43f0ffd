"""Lines from stdin, read on a thread of their own: a read that never returns must not keep the process alive."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator

from zerobot.cli.terminal.transcript import Asked


class StdinLines:
    """The lines of stdin."""

    async def lines(self) -> AsyncIterator[str]:
        """Each line with its line feed, until the end."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[str] = asyncio.Queue()

        def read() -> None:
            line = "more"
            while line:
                line = sys.stdin.readline()
                try:
                    loop.call_soon_threadsafe(queue.put_nowait, line)
                except RuntimeError:
                    # The loop is closed: nobody waits any more.
                    return

        threading.Thread(target=read, name="stdin", daemon=True).start()
        while line := await queue.get():
            yield line


async def nobody_to_ask(asked: Asked) -> tuple[str, str] | None:  # noqa: ARG001 - a `Decide`
    """A `Decide` for when stdin is no terminal."""
    return None


class LineAnswers:
    """Asks on stderr, and reads the answers from stdin, a line each."""

    def __init__(self) -> None:
        self._lines: AsyncIterator[str] | None = None

    async def decide(self, asked: Asked) -> tuple[str, str] | None:
        """A `Decide`: a, A, or d with a reason behind it; None at the end of stdin."""
        self._lines = self._lines or StdinLines().lines()
        always = ", [A]lways in this chat" if asked.grantable else ""
        question = f"[a]pprove{always}, [d]eny (a reason may follow)? "
        _write(question)
        async for line in self._lines:
            word, _, rest = line.strip().partition(" ")
            if word == "a":
                return "approve", ""
            if word == "A" and asked.grantable:
                return "always", ""
            if word == "d":
                return "deny", rest
            _write(question)
        return None


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
