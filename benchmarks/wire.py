"""The least of an HTTP/1.1 server that keeps connections: no routing, no objects a request, nothing to wait for.

A double must not be what a benchmark measures, so it does as little as the clients that are measured can bear.
"""

import asyncio
from collections.abc import Callable
from typing import cast

Handler = Callable[[str, bytes, "Connection"], bytes | None]
"""(path, body, connection) -> the whole answer, or None: the handler answers later, by `Connection.answer`."""


def answer_json(body: bytes, status: bytes = b"200 OK") -> bytes:
    """A whole answer with a JSON body."""
    return b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body)


class Connection(asyncio.Protocol):
    """One client's connection; requests come one after another."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where answers go."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take bytes, and handle the request once it is whole."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._received[:end])
            stop = end + 4 + _content_length(head)
            if len(self._received) < stop:
                return
            body = bytes(self._received[end + 4 : stop])
            del self._received[:stop]
            answer = self._handler(head.split(b" ", 2)[1].decode(), body, self)
            if answer is not None:
                self.answer(answer)

    def answer(self, data: bytes) -> None:
        """Write bytes to the client, if it is still there."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Write nothing more."""
        del exc
        self._transport = None

    @property
    def is_open(self) -> bool:
        """Whether the client is still there."""
        return self._transport is not None


def _content_length(head: bytes) -> int:
    lowered = head.lower()
    begin = lowered.find(b"content-length:")
    if begin < 0:
        return 0
    return int(lowered[begin + 15 :].split(b"\r\n", 1)[0])
