"""The daemon's side of the control socket: who may ask, and how a request is answered. See `control_wire`."""

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from zerobot.core.errors import StorageError, ZerobotError
from zerobot.core.log import EventLog
from zerobot.daemon.ancestry import ancestors
from zerobot.daemon.control_wire import LINE_LIMIT, ControlError, HungUpError, Lines, Params, Result, socket_address

CONNECTIONS = 64
"""Open at once; one more is told so and closed."""
REQUEST_SECONDS = 10.0
"""How long a client may take to write its request."""
_BACKLOG = 16


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
        with socket_address(path) as address:
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
    line = Lines(reader, writer)
    try:
        await line.finish(await _answer(line, handlers, log, refusal))
    except HungUpError:
        # There is nobody to tell.
        return
    finally:
        writer.transport.abort()


async def _answer(lines: Lines, handlers: Mapping[str, Handler], log: EventLog, refusal: str) -> dict[str, object]:
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
    except HungUpError:
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


async def _work(lines: Lines, handlers: Mapping[str, Handler]) -> Result:
    """Read the request and let its handler work."""
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            request = await lines.read()
    except TimeoutError:
        raise HungUpError from None
    if request is None:
        raise HungUpError
    method, params = request.get("method"), request.get("params", {})
    if not isinstance(method, str) or not isinstance(params, dict):
        raise ControlError("bad_request", 'a request is {"method": "NAME", "params": {…}}')
    handler = handlers.get(method)
    if handler is None:
        raise ControlError("unknown_method", f"the running daemon has no operation {method!r}; is it an older version?")
    return await handler(params, lines)
