"""The control socket: how commands and attached terminals speak to a running daemon.

One request a connection, everything a JSON object on a line of its own. The client sends
`{"method": …, "params": {…}}` and, for methods that converse, any number of `{"input": {…}}`; the daemon answers any
number of `{"item": {…}}` and at last `{"result": {…}}` or `{"error": {"code": …, "text": …}}`.
"""

import asyncio
import contextlib
import json
import os
import socket
import struct
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Protocol

from zerobot.core.errors import StorageError, ZerobotError
from zerobot.core.log import EventLog
from zerobot.daemon.ancestry import ancestors

LINE_LIMIT = 1024 * 1024
"""Bytes of the longest line that a client may send."""
ANSWER_LIMIT = 64 * LINE_LIMIT
"""Bytes of the longest line that a client reads: it is his own daemon that writes them."""
CONNECTIONS = 64
"""Open at once; one more is told so and closed."""
REQUEST_SECONDS = 10.0
"""How long a client may take to write its request."""
WRITE_SECONDS = 10.0
"""How long a client may leave a line unread before it is cut off."""

# sockaddr_un(7): sun_path has 108 bytes, and the last one is a zero. macOS has 104.
_PATH_BYTES = 107 if sys.platform == "linux" else 103
_BACKLOG = 16

Params = Mapping[str, object]
"""What a request carries; plain JSON values."""
Result = Mapping[str, object]
"""What an operation answers; plain JSON values."""


class Exchange(Protocol):
    """The other side, while a request is worked on."""

    async def send(self, item: Mapping[str, object]) -> None:
        """Send one item ahead of the result; a client that does not read is cut off."""
        ...

    def inputs(self) -> AsyncIterator[Mapping[str, object]]:
        """What the client sends after its request; ends when the client hangs up."""
        ...


Handler = Callable[[Params, Exchange], Awaitable[Result]]
"""One method. A `ZerobotError` that it raises reaches the client as a `ControlError`; anything else is our fault."""


class ControlError(ZerobotError):
    """The daemon refused a request, or did not answer it; `str(error)` is for the person who asked.

    Attributes:
        code: A short stable word: `unknown_method`, `bad_request`, `refused`, `failed`, `broken`.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class NoDaemonError(ZerobotError):
    """Nobody listens on the control socket."""


class _HungUpError(OSError):
    """The client is gone, or does not read or write. An `OSError`, as `Terminal.send` promises; no operation's own."""


@asynccontextmanager
async def control_socket(path: Path, handlers: Mapping[str, Handler], log: EventLog) -> AsyncIterator[None]:
    """Listen on the control socket while the block runs; leaving it ends every open request.

    Args:
        path: Who calls this holds the lock of its directory: a socket that is there already is a dead daemon's.
        handlers: The methods by name.
        log: Gets `control.refused` and `control.failed`.

    Raises:
        StorageError: The socket cannot be made.
    """
    listener = _listen(path)
    serving = asyncio.create_task(_accept(listener, handlers, log), name="control socket")
    try:
        yield
    finally:
        serving.cancel()
        await asyncio.wait((serving,))
        listener.close()
        _remove(path)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _listen(path: Path) -> socket.socket:
    """Bind the socket, private before anybody can connect."""
    if path.exists() and not path.is_socket():
        raise StorageError(f"{path} is in the way of the control socket; move it away")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove(path)
        with _address(path) as address:
            listener.bind(address)
        path.chmod(0o600)
        listener.listen(_BACKLOG)
        listener.settimeout(0.0)
    except OSError as error:
        listener.close()
        raise StorageError(f"cannot make the control socket {path}: {error.strerror or error}") from error
    except StorageError:
        listener.close()
        raise
    return listener


@contextmanager
def _address(path: Path) -> Iterator[str]:
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


async def _accept(listener: socket.socket, handlers: Mapping[str, Handler], log: EventLog) -> None:
    """Give each client a task of its own."""
    clients: dict[asyncio.Task[None], socket.socket] = {}

    def forget(task: asyncio.Task[None]) -> None:
        # Closed here, because a task that is cancelled before its first step never runs.
        clients.pop(task).close()

    async with asyncio.TaskGroup() as group:
        while True:
            await _readable(listener)
            try:
                client, _ = listener.accept()
            except BlockingIOError:
                continue
            except OSError as error:
                # Out of file handles: who waits in the backlog is served when some are free again.
                log("control.failed", level="warning", error=error)
                await asyncio.sleep(1.0)
                continue
            task = group.create_task(_serve(client, handlers, log, busy=len(clients) >= CONNECTIONS))
            clients[task] = client
            task.add_done_callback(forget)


async def _readable(listener: socket.socket) -> None:
    """Wait for a client. The loop's own `sock_accept` loses one who comes just as it is cancelled."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(listener, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(listener)


async def _serve(client: socket.socket, handlers: Mapping[str, Handler], log: EventLog, *, busy: bool) -> None:
    """Answer one client. Whatever is wrong with him stays in here."""
    try:
        refusal = "the daemon serves too many commands at once; try again" if busy else _refusal(client)
        reader, writer = await asyncio.open_unix_connection(sock=client, limit=LINE_LIMIT)
    except OSError:
        client.close()
        return
    line = _Lines(reader, writer)
    try:
        await line.finish(await _answer(line, handlers, log, refusal))
    except _HungUpError:
        # There is nobody to tell.
        return
    finally:
        writer.transport.abort()


async def _answer(lines: "_Lines", handlers: Mapping[str, Handler], log: EventLog, refusal: str) -> dict[str, object]:
    """The last line for a client: his result, or what went wrong."""
    if refusal:
        log("control.refused", level="warning", reason=refusal)
        return _error("refused", refusal)
    try:
        return {"result": await _work(lines, handlers)}
    except ControlError as error:
        return _error(error.code, str(error))
    except ZerobotError as error:
        return _error("failed", str(error))
    except _HungUpError:
        raise
    except Exception as error:  # noqa: BLE001 - a boundary: a fault in one operation must not end the daemon
        log("control.failed", level="error", error=error)
        return _error("failed", "the daemon failed at this; its log has the reason")


def _error(code: str, text: str) -> dict[str, object]:
    return {"error": {"code": code, "text": text}}


def _refusal(client: socket.socket) -> str:
    """Why this peer may not ask anything; empty when he may.

    Only our own user may (and root, who could anyway), and no process that this daemon started: a tool that got hold
    of the socket must not decide its own approvals (security spec R06).
    """
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        # No such question on this system; the state directory's own mode (0700) keeps others away.
        return ""
    pid, uid, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    if uid not in (os.geteuid(), 0):
        return "this daemon belongs to another user"
    if os.getpid() in ancestors(pid):
        return "a tool may not operate the daemon that runs it"
    return ""


async def _work(lines: "_Lines", handlers: Mapping[str, Handler]) -> Result:
    """Read the request and let its handler work."""
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            request = await lines.read()
    except TimeoutError:
        raise _HungUpError from None
    if request is None:
        raise _HungUpError
    method, params = request.get("method"), request.get("params", {})
    if not isinstance(method, str) or not isinstance(params, dict):
        raise ControlError("bad_request", 'a request is {"method": "NAME", "params": {…}}')
    handler = handlers.get(method)
    if handler is None:
        raise ControlError("unknown_method", f"the running daemon has no operation {method!r}; is it an older version?")
    return await handler(params, lines)


class _Lines:
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
        return _object(text)

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
        self._writer.write(_line(value))
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self._writer.drain()
        except (OSError, TimeoutError):
            raise _HungUpError from None

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
            raise _HungUpError from None


def _line(value: Mapping[str, object]) -> bytes:
    # ASCII only: no text can then hold what some reader takes for the end of a line.
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"


def _object(text: bytes) -> dict[str, object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ControlError("bad_request", "each line is one JSON object")
    return value


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


class Conversing:
    """The client's side of one request under way. Made by `converse`."""

    def __init__(self, lines: _Lines) -> None:
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
    lines = _Lines(reader, writer)
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
                connection.sendall(_line({"method": method, "params": params}))
            with connection.makefile("rb") as stream:
                return _outcome(_last_line(stream, on_item))
        except TimeoutError:
            raise ControlError("broken", f"the daemon does not answer within {timeout:.0f} s") from None
        except OSError as error:
            raise ControlError("broken", f"the daemon hung up: {error.strerror or error}") from error


def _last_line(stream: BufferedReader, on_item: OnItem | None) -> dict[str, object] | None:
    """Read to the line that ends a request; None when there is none."""
    while text := stream.readline(ANSWER_LIMIT):
        line = _object(text)
        item = line.get("item")
        if not isinstance(item, dict):
            return line
        if on_item is not None:
            on_item(item)
    return None


def _connect(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _address(path) as address:
            connection.connect(address)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        connection.close()
        raise NoDaemonError(f"no daemon listens on {path}") from None
    except OSError as error:
        connection.close()
        raise ControlError("broken", f"cannot reach the daemon at {path}: {error.strerror or error}") from error
    return connection
