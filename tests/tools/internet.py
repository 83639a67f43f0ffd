"""An Internet of paper: names, addresses and servers as a test says them, below the guard of connections."""

import asyncio
import ipaddress
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpcore

from zerobot.security.addresses import IPAddress, closed
from zerobot.security.connections import GuardedConnections, Judge

PAGE = b"a page"


@dataclass
class Reply:
    """What a server says; `body` may be without end."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/plain"})
    body: Iterable[bytes] = (PAGE,)

    def pieces(self) -> Iterator[bytes]:
        """The bytes on the wire; the body ends with the connection."""
        head = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        yield f"HTTP/1.1 {self.status} Said\r\n{head}\r\n".encode()
        yield from self.body


class Internet:
    """See the module.

    Attributes:
        connected: (address, port) of each connection, in order.
        requests: What was sent, in order.
    """

    def __init__(self, dns: Mapping[str, Sequence[Sequence[str]]] | None = None, judge: Judge = closed) -> None:
        self.connected: list[tuple[str, int]] = []
        self.requests: list[str] = []
        self.looked_up: list[str] = []
        self.replies: dict[str, Reply] = {}
        self.dead: set[str] = set()
        self._dns = {host: list(answers) for host, answers in (dns or {}).items()}
        self.guard = GuardedConnections(judge, self._resolve, sockets=_Sockets(self))

    async def _resolve(self, host: str, port: int) -> Sequence[IPAddress]:
        self.looked_up.append(host)
        try:
            return (ipaddress.ip_address(host),)
        except ValueError:
            pass
        answers = self._dns.get(host)
        if not answers or not answers[0]:
            raise OSError("no such name")
        answer = answers[0] if len(answers) == 1 else answers.pop(0)
        return [ipaddress.ip_address(each) for each in answer]


class _Sockets(httpcore.AsyncNetworkBackend):
    def __init__(self, internet: Internet) -> None:
        self._internet = internet

    async def connect_tcp(self, host: str, port: int, *more: Any, **others: Any) -> httpcore.AsyncNetworkStream:
        self._internet.connected.append((host, port))
        if host in self._internet.dead:
            raise httpcore.ConnectError("nobody there")
        return _Stream(self._internet, "https" if port in (443, 8443) else "http")


class _Stream(httpcore.AsyncNetworkStream):
    def __init__(self, internet: Internet, scheme: str) -> None:
        self._internet = internet
        self._scheme = scheme
        self._written = b""
        self._pieces: Iterator[bytes] = iter(())

    async def write(self, buffer: bytes, *more: Any, **others: Any) -> None:
        self._written += buffer
        if not buffer or not self._written.endswith(b"\r\n\r\n"):
            return
        request = self._written.decode()
        self._internet.requests.append(request)
        target = request.split(" ")[1]
        host = next(line for line in request.split("\r\n") if line.lower().startswith("host:")).split(": ", 1)[1]
        url = f"{self._scheme}://{host}{target}"
        self._pieces = self._internet.replies.get(url, Reply()).pieces()

    async def read(self, max_bytes: int, *more: Any, **others: Any) -> bytes:
        await asyncio.sleep(0)
        return next(self._pieces, b"")

    async def start_tls(self, *more: Any, **others: Any) -> httpcore.AsyncNetworkStream:
        return self

    def get_extra_info(self, info: str) -> Any:
        return None

    async def aclose(self) -> None:
        return None


def counted(size: int, piece: int = 65_536) -> Callable[[], Iterator[bytes]]:
    """A body of so many bytes, made as it is read."""

    def body() -> Iterator[bytes]:
        for _ in range(size // piece):
            yield b"x" * piece

    return body
