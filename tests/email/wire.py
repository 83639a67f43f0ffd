"""A port between the daemon and a real server, where lines can go dead: they pass nothing any more, and don't end."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Self

PIECE = 65_536


@dataclass(eq=False)
class _Line:
    """One connection, and what it does."""

    is_dead: bool = False
    tails: dict[str, bytes] = field(default_factory=dict)
    """The last bytes that have passed in each direction: what a test waits for may come in two pieces."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A line goes dead when some bytes come by; they do not arrive."""

    words: bytes
    sender: str
    """`client` or `server`."""
    reached: asyncio.Event


class Wire:
    """Passes connections on to a port of this machine.

    Args:
        target: The port.
    """

    def __init__(self, target: int) -> None:
        self.port = 0
        self._target = target
        self._lines: list[_Line] = []
        self._holds: list[Hold] = []
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None, "it was started"
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()

    def goes_dead(self) -> None:
        """No connection of now passes anything any more; later ones do."""
        for line in self._lines:
            line.is_dead = True

    def hold(self, words: bytes, *, sender: str) -> asyncio.Event:
        """The connection on which these words come by next goes dead before they arrive; returns what tells of it."""
        hold = Hold(words, sender, asyncio.Event())
        self._holds.append(hold)
        return hold.reached

    def cut(self) -> None:
        """End all connections."""
        for writer in self._writers:
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a connection is served by a task"
        self._tasks.add(task)
        self._writers.append(writer)
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                their_reader, their_writer = await asyncio.open_connection("127.0.0.1", self._target)
                self._writers.append(their_writer)
                line = _Line()
                self._lines.append(line)
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._pass_on(line, "client", reader, their_writer))
                    group.create_task(self._pass_on(line, "server", their_reader, writer))
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _pass_on(
        self, line: _Line, sender: str, source: asyncio.StreamReader, target: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(PIECE):
                self._look(line, sender, data)
                if not line.is_dead:
                    target.write(data)
                    await target.drain()
        target.close()

    def _look(self, line: _Line, sender: str, data: bytes) -> None:
        seen = line.tails.get(sender, b"") + data
        for hold in self._holds:
            if hold.sender == sender and hold.words in seen and not line.is_dead:
                line.is_dead = True
                self._holds.remove(hold)
                hold.reached.set()
                break
        line.tails[sender] = seen[-64:]
