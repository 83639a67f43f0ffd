"""Socket Mode of Slack's double: greetings, envelopes, acknowledgements, redelivery.

https://docs.slack.dev/apis/events-api/using-socket-mode
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from tests.platforms.signals import Signal
from tests.platforms.slack_world import Json

ACK_SECONDS = 3.0
"""After so long without an acknowledgement an event is sent again, at most three times; a press has failed."""
_MOST_TRIES = 3


@dataclass(slots=True, eq=False)
class Sent:
    """An envelope that was sent, perhaps several times."""

    kind: str
    payload: Json
    on_ack: Callable[[Json | None], None] | None = None
    tries: int = 0
    acknowledged: bool = False
    late: bool = False
    """Whether it was not acknowledged in time, once at least."""


@dataclass(slots=True, eq=False)
class _Socket:
    """One connection, and what was sent over it and is not acknowledged."""

    ws: web.WebSocketResponse
    open: dict[str, Sent] = field(default_factory=dict)
    leaving: bool = False


class Sockets:
    """All connections of the app."""

    def __init__(self, signal: Signal) -> None:
        self.base = ""
        self.greets = True
        """Whether a connection is greeted; one that is not is of no use."""
        self.ack_seconds = ACK_SECONDS
        self.late: list[Sent] = []
        """Envelopes that were not acknowledged in time."""
        self.lost: list[Json] = []
        """Events that happened while there was no connection."""
        self.sent: list[Sent] = []
        self.connects = 0
        self._signal = signal
        self._tickets: set[str] = set()
        self._sockets: list[_Socket] = []
        self._again: list[Sent] = []
        self._numbers = count(1)
        self._outbox: asyncio.Queue[Sent] = asyncio.Queue()
        self._timers: set[asyncio.Task[None]] = set()

    @property
    def open(self) -> int:
        """How many connections there are."""
        return len([each for each in self._sockets if not each.ws.closed])

    def address(self) -> str:
        """An address that is good for one connection."""
        ticket = f"ticket-{next(self._numbers)}"
        self._tickets.add(ticket)
        return f"{self.base}/link/?ticket={ticket}&app_id=A0APP"

    def emit(self, kind: str, payload: Json, on_ack: Callable[[Json | None], None] | None = None) -> Sent:
        """Something happens; it is sent over one connection."""
        sent = Sent(kind, payload, on_ack)
        self._outbox.put_nowait(sent)
        return sent

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serve one connection."""
        if request.query.get("ticket", "") not in self._tickets:
            return web.Response(status=403)
        self._tickets.discard(request.query["ticket"])
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        socket = _Socket(ws)
        if self.greets:
            await ws.send_json(
                {
                    "type": "hello",
                    "num_connections": self.open + 1,
                    "debug_info": {"host": "applink-1", "approximate_connection_time": 18060},
                    "connection_info": {"app_id": "A0APP"},
                }
            )
            self._sockets.append(socket)
            again, self._again = self._again, []
            for sent in again:
                self._outbox.put_nowait(sent)
        self.connects += 1
        self._signal.fire()
        try:
            async for frame in ws:
                if frame.type is WSMsgType.TEXT:
                    self._answered(socket, json.loads(frame.data))
        finally:
            if socket in self._sockets:
                self._sockets.remove(socket)
            self._again += [sent for sent in socket.open.values() if sent.kind == "events_api"]
            self._signal.fire()
        return ws

    async def pump(self) -> None:
        """Send what happens, in order."""
        while True:
            sent = await self._outbox.get()
            open_ = [each for each in self._sockets if not each.ws.closed]
            socket = max(open_, key=lambda each: not each.leaving, default=None)
            if socket is None:
                self._dropped(sent)
                continue
            ident = f"envelope-{next(self._numbers)}"
            socket.open[ident] = sent
            self.sent.append(sent)
            frame: Json = {
                "envelope_id": ident,
                "type": sent.kind,
                "payload": sent.payload,
                "accepts_response_payload": sent.kind != "events_api",
            }
            if sent.kind == "events_api":
                frame |= {"retry_attempt": sent.tries, "retry_reason": "timeout" if sent.tries else ""}
            sent.tries += 1
            with suppress(ConnectionError):
                await socket.ws.send_json(frame)
            timer = asyncio.create_task(self._watch(socket, ident, sent))
            self._timers.add(timer)
            timer.add_done_callback(self._timers.discard)

    def _dropped(self, sent: Sent) -> None:
        if sent.tries:
            self._again.append(sent)
        else:
            self.lost.append(sent.payload)
        self._signal.fire()

    async def _watch(self, socket: _Socket, ident: str, sent: Sent) -> None:
        """Give an envelope its time."""
        await asyncio.sleep(self.ack_seconds)
        if socket.open.pop(ident, None) is None:
            return
        if sent.kind != "events_api":
            self.late.append(sent)
        elif sent.tries <= _MOST_TRIES:
            sent.late = True
            self._outbox.put_nowait(sent)
        self._signal.fire()

    def _answered(self, socket: _Socket, frame: Any) -> None:
        sent = socket.open.pop(frame.get("envelope_id", ""), None)
        if sent is None:
            return
        sent.acknowledged = True
        if sent.on_ack is not None:
            sent.on_ack(frame.get("payload"))
        self._signal.fire()

    # What goes wrong, on demand.

    async def say(self, message: Json) -> None:
        """Send something to all connections, such as a `disconnect`."""
        for socket in list(self._sockets):
            socket.leaving = message.get("type") == "disconnect"
            await socket.ws.send_json(message)

    async def refresh(self, reason: str = "refresh_requested") -> None:
        """Ask for the next connection; the old ones are closed once it is there."""
        old, connects = list(self._sockets), self.connects
        await self.say({"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-1"}})
        if await self._signal.within(lambda: self.connects > connects, 10.0):
            await self._signal.within(lambda: not any(socket.open for socket in old), 2.0)
            for socket in old:
                await socket.ws.close()

    async def drop(self) -> None:
        """Break all connections without a word."""
        for socket in list(self._sockets):
            await socket.ws.close(code=WSCloseCode.GOING_AWAY)

    async def close(self) -> None:
        """End everything."""
        for timer in list(self._timers):
            timer.cancel()
        await self.drop()
