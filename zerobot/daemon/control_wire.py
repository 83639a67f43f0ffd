"""The form of what goes over the control socket.

One request a connection, everything a JSON object on a line of its own. The client sends
`{"method": …, "params": {…}}` and, for methods that converse, any number of `{"input": {…}}`; the daemon answers any
number of `{"item": {…}}` and at last `{"result": {…}}` or `{"error": {"code": …, "text": …}}`.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from zerobot.core.errors import StorageError, ZerobotError

LINE_LIMIT = 1024 * 1024
"""Bytes of the longest line that a client may send."""
ANSWER_LIMIT = 64 * LINE_LIMIT
"""Bytes of the longest line that a client reads: it is his own daemon that writes them."""
WRITE_SECONDS = 10.0
"""How long a client may leave a line unread before it is cut off."""

# sockaddr_un(7): sun_path has 108 bytes, and the last one is a zero. macOS has 104.
_PATH_BYTES = 107 if sys.platform == "linux" else 103

Params = Mapping[str, object]
"""What a request carries; plain JSON values."""
Result = Mapping[str, object]
"""What an operation answers; plain JSON values."""


class ControlError(ZerobotError):
    """The daemon refused a request, or did not answer it; `str(error)` is for the person who asked.

    Attributes:
        code: A short stable word: `unknown_method`, `bad_request`, `refused`, `failed`, `broken`.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class HungUpError(OSError):
    """The client is gone, or does not read or write. An `OSError`, as `Terminal.send` promises; no operation's own."""


@contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """The path as the system takes it: a long one goes by an open handle of its directory."""
    if len(os.fsencode(path)) <= _PATH_BYTES:
        yield str(path)
        return
    if sys.platform != "linux":
        raise StorageError(
            f"the path of the control socket has more than {_PATH_BYTES} bytes; choose a shorter daemon.state_dir"
        )
    handle = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{handle}/{path.name}"
    finally:
        os.close(handle)


class Lines:
    """JSON objects, a line each, over one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> dict[str, object] | None:
        """The next object; None when the other side has hung up."""
        try:
            text = await self._reader.readline()
        except ValueError:
            raise ControlError("bad_request", f"a line has at most {LINE_LIMIT} bytes") from None
        except OSError:
            return None
        if not text.endswith(b"\n"):
            return None
        return object_of(text)

    async def send(self, item: Mapping[str, object]) -> None:
        """Send one item."""
        await self.write({"item": item})

    async def inputs(self) -> AsyncIterator[Mapping[str, object]]:
        """What comes after the request."""
        while (line := await self.read()) is not None:
            value = line.get("input")
            if not isinstance(value, dict):
                raise ControlError("bad_request", 'an input is {"input": {…}}')
            yield value

    async def write(self, value: Mapping[str, object]) -> None:
        """Write one object.

        Raises:
            OSError: The other side is gone, or does not read.
        """
        self._writer.write(line_of(value))
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self._writer.drain()
        except (OSError, TimeoutError):
            raise HungUpError from None

    async def finish(self, value: Mapping[str, object]) -> None:
        """Write the last object and hang up.

        Raises:
            OSError: The other side is gone, or does not read.
        """
        await self.write(value)
        self._writer.close()
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            raise HungUpError from None


def line_of(value: Mapping[str, object]) -> bytes:
    """An object as the line that carries it."""
    # ASCII only: no text can then hold what some reader takes for the end of a line.
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"


def object_of(text: bytes) -> dict[str, object]:
    """The object that a line carries.

    Raises:
        ControlError: It carries none.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ControlError("bad_request", "each line is one JSON object")
    return value
