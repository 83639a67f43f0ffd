"""Real servers on loopback for what fetches, and a guard that lets a test reach them and nothing else."""

import asyncio
import contextlib
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from zerobot.security.addresses import IPAddress, closed
from zerobot.security.connections import GuardedConnections

Say = Callable[[str, asyncio.StreamWriter], Awaitable[None]]
"""Answers a request, given as its head."""


@dataclass
class Served:
    """A server that runs.

    Attributes:
        requests: Heads of the requests that came.
        gone: Set when a client has left.
    """

    port: int
    requests: list[str] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    def url(self, path: str = "/", host: str = "site.test") -> str:
        """A URL on this server; any name leads to it."""
        return f"http://{host}:{self.port}{path}"


@asynccontextmanager
async def served(say: Say) -> AsyncIterator[Served]:
    """A server that answers each connection once."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            server.requests.append(head)
            server.asked.set()
            await say(head, writer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            server.gone.set()
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    listening = await asyncio.start_server(connected, "127.0.0.1", 0)
    server = Served(listening.sockets[0].getsockname()[1])
    async with listening:
        yield server


def answers(body: bytes, kind: str = "text/plain; charset=utf-8", status: str = "200 OK", *headers: str) -> Say:
    """Says always the same; the body ends with the connection."""

    async def say(_head: str, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status}", *([f"Content-Type: {kind}"] if kind else []), *headers, "", ""]
        writer.write("\r\n".join(lines).encode() + body)

    return say


async def leads_here(_host: str, _port: int) -> Sequence[IPAddress]:
    """Every name is this machine."""
    return (ipaddress.IPv4Address("127.0.0.1"),)


def only_here(address: IPAddress) -> str:
    """Loopback is open, beside what always is."""
    return "" if address.is_loopback else closed(address)


def guard_for_tests() -> GuardedConnections:
    """Lets every name lead to the servers of a test."""
    return GuardedConnections(only_here, leads_here)
