"""The client's side of the control socket: how commands and terminals speak to a running daemon."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from io import BufferedReader
from pathlib import Path

from zerobot.core.errors import ZerobotError
from zerobot.daemon.control_wire import (
    ANSWER_LIMIT,
    ControlError,
    Lines,
    Params,
    Result,
    line_of,
    object_of,
    socket_address,
)


class NoDaemonError(ZerobotError):
    """Nobody listens on the control socket."""


class Conversing:
    """The client's side of one request under way. Made by `converse`."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self.result: Result = {}
        """What the request came to; set when `items` has ended."""

    async def send(self, value: Mapping[str, object]) -> None:
        """Send an input.

        Raises:
            ControlError: The daemon is gone.
        """
        try:
            await self._lines.write({"input": value})
        except OSError:
            raise ControlError("broken", "the daemon hung up") from None

    async def items(self) -> AsyncGenerator[Mapping[str, object], None]:
        """The items as they come, until the result.

        Raises:
            ControlError: The daemon refused, failed, or is gone.
        """
        while True:
            line = await self._lines.read()
            item = line.get("item") if line is not None else None
            if not isinstance(item, dict):
                self.result = _outcome(line)
                return
            yield item


@asynccontextmanager
async def converse(path: Path, method: str, params: Params) -> AsyncIterator[Conversing]:
    """Begin a request that goes on in both directions; leaving the block hangs up.

    Raises:
        NoDaemonError: Nobody listens.
        ControlError: From what is done inside.
    """
    # A blocking connect: on a socket of this machine it waits for nothing but room in the backlog.
    reader, writer = await asyncio.open_unix_connection(sock=_connect(path), limit=ANSWER_LIMIT)
    lines = Lines(reader, writer)
    try:
        with contextlib.suppress(OSError):
            await lines.write({"method": method, "params": params})
        yield Conversing(lines)
    finally:
        writer.transport.abort()


OnItem = Callable[[Mapping[str, object]], None]


def call(path: Path, method: str, params: Params, on_item: OnItem | None = None, *, timeout: float = 60.0) -> Result:
    """Ask the daemon one thing and wait for the result.

    Args:
        path: The socket.
        method: The name of the operation.
        params: What it takes.
        on_item: Gets the items that come before the result; None: they are not wanted.
        timeout: Seconds without a sign of life after which the daemon is given up.

    Raises:
        NoDaemonError: Nobody listens.
        ControlError: The daemon refused, failed, or does not answer.
    """
    with _connect(path) as connection:
        connection.settimeout(timeout)
        try:
            # A refused client is told why even if he has not been read: his own write may fail before he reads it.
            with contextlib.suppress(BrokenPipeError):
                connection.sendall(line_of({"method": method, "params": params}))
            with connection.makefile("rb") as stream:
                return _outcome(_last_line(stream, on_item))
        except TimeoutError:
            raise ControlError("broken", f"the daemon does not answer within {timeout:.0f} s") from None
        except OSError as error:
            raise ControlError("broken", f"the daemon hung up: {error.strerror or error}") from error


def _last_line(stream: BufferedReader, on_item: OnItem | None) -> dict[str, object] | None:
    """Read to the line that ends a request; None when there is none."""
    while text := stream.readline(ANSWER_LIMIT):
        line = object_of(text)
        item = line.get("item")
        if not isinstance(item, dict):
            return line
        if on_item is not None:
            on_item(item)
    return None


def _connect(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket_address(path) as address:
            connection.connect(address)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        connection.close()
        raise NoDaemonError(f"no daemon listens on {path}") from None
    except OSError as error:
        connection.close()
        raise ControlError("broken", f"cannot reach the daemon at {path}: {error.strerror or error}") from error
    return connection


def _outcome(line: dict[str, object] | None) -> Result:
    """The result that a last line carries.

    Raises:
        ControlError: It carries an error, or the connection broke before it.
    """
    if line is None:
        raise ControlError("broken", "the daemon hung up before it answered; look into its log")
    match line:
        case {"result": dict(result)}:
            return result
        case {"error": {"code": str(code), "text": str(text)}}:
            raise ControlError(code, text)
    raise ControlError("broken", "the daemon answered something that is no answer; is it another version?")
