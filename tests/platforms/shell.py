"""The program as people run it: commands, a daemon of its own process, a terminal with a person at it."""

import asyncio
import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

PROGRAM = str(Path(sys.executable).with_name("zerobot"))
PATIENCE = 30.0
"""Seconds after which a test gives up; nothing takes so long."""


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended."""

    status: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Shell:
    """A user with a home of his own, in which nothing is configured."""

    home: Path
    kept: Path | None = None
    """His state directory, if it is not in his home."""

    @property
    def state(self) -> Path:
        """The state directory."""
        return self.kept or self.home / "state"

    @property
    def environ(self) -> dict[str, str]:
        """The environment of whatever he starts."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "ZEROBOT_STATE_DIR": str(self.state),
            # What is asked must not depend on what this machine can do.
            "ZEROBOT__SECURITY__SANDBOX": "off",
        }

    async def run(self, *arguments: str, stdin: str = "", environ: Mapping[str, str] | None = None) -> Done:
        """Run `zerobot` with these arguments to its end."""
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            *arguments,
            cwd=self.home,
            env={**self.environ, **(environ or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate(stdin.encode())
        assert process.returncode is not None
        return Done(process.returncode, out.decode(), err.decode())

    @asynccontextmanager
    async def daemon(self, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """Run `zerobot run` while the block runs; it is ready when the block begins."""
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            "run",
            *arguments,
            cwd=self.home,
            env={**self.environ, "ZEROBOT__DAEMON__LOG_FORMAT": "json"},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None
        try:
            async with asyncio.timeout(PATIENCE):
                while b"daemon.ready" not in (line := await process.stderr.readline()):
                    assert line, "the daemon ended before it was ready"
            draining = asyncio.create_task(process.stderr.read())
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            async with asyncio.timeout(PATIENCE):
                await process.wait()
                await draining


class Person:
    """Somebody at a terminal in which `zerobot` runs."""

    def __init__(self, terminal: int, pid: int) -> None:
        self._terminal = terminal
        self._pid = pid
        self._seen = ""
        self._mark = 0
        self._arrived = asyncio.Event()
        self._closed = False
        asyncio.get_running_loop().add_reader(terminal, self._read)

    def types(self, keys: str) -> None:
        """Press keys."""
        os.write(self._terminal, keys.encode())

    async def sees(self, pattern: str) -> str:
        """Wait until the screen has shown this since the last time; what matched."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not (match := re.search(pattern, self._seen[self._mark :], re.DOTALL)) and not self._closed:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            match = None
        assert match, f"{pattern!r} never came; the screen showed:\n{self._seen}"
        self._mark += match.end()
        return match[0]

    async def sees_at_rest(self, pattern: str) -> str:
        """Wait until the screen has shown this and then the prompt, with nothing under way in between."""
        return await self.sees(rf"{pattern}(?:(?!working).)*›")

    async def sees_the_end(self) -> int:
        """Wait until the program has ended; its exit status."""
        async with asyncio.timeout(PATIENCE):
            while not self._closed:
                self._arrived.clear()
                await self._arrived.wait()
        _, status = await asyncio.to_thread(os.waitpid, self._pid, 0)
        self._pid = 0
        return os.waitstatus_to_exitcode(status)

    def leaves(self) -> None:
        """Close the terminal, and end what still runs in it."""
        if not self._closed:
            asyncio.get_running_loop().remove_reader(self._terminal)
        os.close(self._terminal)
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, 9)
            os.waitpid(self._pid, 0)

    def _read(self) -> None:
        try:
            output = os.read(self._terminal, 65536)
        except OSError:
            # How Linux says that the other end is closed.
            output = b""
        if not output:
            self._closed = True
            asyncio.get_running_loop().remove_reader(self._terminal)
        # What only moves the cursor or colours is left out, so that words are found.
        self._seen += re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", output.decode("utf-8", "replace"))
        self._arrived.set()


@asynccontextmanager
async def at_a_terminal(shell: Shell, *arguments: str) -> AsyncIterator[Person]:
    """Run `zerobot` in a pseudo terminal of 100 columns."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(shell.home)
        os.execve(PROGRAM, [PROGRAM, *arguments], shell.environ)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    person = Person(terminal, pid)
    try:
        yield person
    finally:
        person.leaves()
