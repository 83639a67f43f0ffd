"""A small HTTP/1.1 server for the Bot API's double: form, multipart and JSON bodies, kept connections, broken ones."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit

MAX_BODY = 60_000_000
_OPTION = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Upload:
    """A file in a multipart body."""

    name: str
    mime: str
    data: bytes


@dataclass(slots=True)
class Request:
    """One request."""

    verb: str
    path: str
    params: dict[str, Any] = field(default_factory=dict)
    files: dict[str, Upload] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer."""

    status: int
    body: bytes
    mime: str = "application/json"


Handler = Callable[[Request], Awaitable[Answer | None]]
"""Answers a request; None breaks the connection without a word."""


class HttpServer:
    """Listens on a loopback port until it is stopped."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        """Listen, and return the port."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        """Close everything; requests under way are dropped."""
        if self._server is not None:
            self._server.close()
        self.drop_connections()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def drop_connections(self) -> None:
        """Break each open connection, as a failing network does."""
        for task in list(self._connections):
            task.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while (request := await _read(reader)) is not None:
                answer = await self._handler(request)
                if answer is None:
                    break
                await _write(writer, answer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # The loop's own callback would report a cancelled connection; here it is how one is broken on purpose.
            pass
        finally:
            self._connections.discard(task)
            writer.transport.abort()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def _write(writer: asyncio.StreamWriter, answer: Answer) -> None:
    head = (
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\n"
        f"Content-Type: {answer.mime}\r\nContent-Length: {len(answer.body)}\r\n\r\n"
    )
    writer.write(head.encode() + answer.body)
    await writer.drain()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    """Read one request; None when the other side has closed."""
    line = await reader.readline()
    if not line:
        return None
    verb, target, _ = line.decode("latin-1").split(" ", 2)
    headers: dict[str, str] = {}
    while (header := (await reader.readline()).decode("latin-1").strip()) != "":
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    body = await _body(reader, headers)
    split = urlsplit(target)
    request = Request(verb, split.path, dict(parse_qsl(split.query, keep_blank_values=True)))
    _read_params(request, headers.get("content-type", ""), body)
    return request


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(min(int(headers.get("content-length", "0")), MAX_BODY))
    pieces = []
    while (size := int((await reader.readline()).split(b";")[0], 16)) > 0:
        pieces.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(pieces)


def _read_params(request: Request, content_type: str, body: bytes) -> None:
    kind, _, options = content_type.partition(";")
    if kind == "application/x-www-form-urlencoded":
        request.params.update(parse_qsl(body.decode(), keep_blank_values=True))
    elif kind == "application/json" and body:
        request.params.update(json.loads(body))
    elif kind == "multipart/form-data":
        boundary = options.partition("boundary=")[2].strip().strip('"')
        for part in body.split(b"--" + boundary.encode())[1:-1]:
            _read_part(request, part)


def _read_part(request: Request, part: bytes) -> None:
    head, _, data = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
    data = data.removesuffix(b"\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
    options = dict(_OPTION.findall(headers["Content-Disposition"]))
    name = options["name"]
    if "filename" in options:
        mime = headers.get("Content-Type", "application/octet-stream")
        request.files[name] = Upload(options["filename"], mime, data)
    else:
        request.params[name] = data.decode()
