"""The gateway of Discord's double: sessions, heartbeats, intents, and what it closes a connection for.

https://discord.com/developers/docs/events/gateway
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from aiohttp import WSMsgType, web

from tests.platforms.discord_world import Json
from tests.platforms.signals import Signal

GUILD_MESSAGES, DIRECT_MESSAGES, MESSAGE_CONTENT = 1 << 9, 1 << 12, 1 << 15
_ALL_INTENTS = (1 << 27) - 1
_DISPATCH, _HEARTBEAT, _IDENTIFY, _RESUME, _RECONNECT, _INVALID, _HELLO, _ACK = 0, 1, 2, 6, 7, 9, 10, 11
_BUFFER = 1000


@dataclass(slots=True, eq=False)
class Session:
    """What Discord keeps for a bot that is away."""

    id: str
    intents: int
    sequence: int = 0
    buffer: deque[tuple[int, Json]] = field(default_factory=lambda: deque(maxlen=_BUFFER))
    link: Link | None = None
    """The connection that it has at the moment."""


class Link:
    """One connection."""

    def __init__(self, socket: web.WebSocketResponse, *, compressed: bool) -> None:
        self.socket = socket
        self.session: Session | None = None
        self.dropped = False
        """Whether Discord ended it, and not the bot."""
        self._pack = zlib.compressobj() if compressed else None

    async def send(self, op: int, data: Any, *, sequence: int | None = None, name: str | None = None) -> None:
        """Send a frame; to a connection that is gone nothing is sent."""
        if self.socket.closed:
            return
        text = json.dumps({"op": op, "d": data, "s": sequence, "t": name})
        with contextlib.suppress(ConnectionError):
            if self._pack is None:
                await self.socket.send_str(text)
            else:
                await self.socket.send_bytes(self._pack.compress(text.encode()) + self._pack.flush(zlib.Z_SYNC_FLUSH))


class Gateway:
    """All connections of one bot.

    Args:
        token: The bot's.
        ready: What READY says beside the session.
        signal: Fired when something happens.
    """

    def __init__(self, token: str, ready: Callable[[], Json], signal: Signal) -> None:
        self.sessions: dict[str, Session] = {}
        self.links: list[Link] = []
        self.frames: list[Json] = []
        """All that the bot sent, in order."""
        self.beat_seconds = 5.0
        self.acknowledges = True
        """Whether heartbeats are acknowledged."""
        self.refuses: int | None = None
        """Close a connection that identifies with this code."""
        self.lets_in = True
        """Whether connections are taken at all."""
        self._token = token
        self._ready = ready
        self._signal = signal
        self._numbers = count(1)

    @property
    def connected(self) -> bool:
        """Whether a session has a connection."""
        return any(session.link is not None for session in self.sessions.values())

    def ops(self, op: int) -> list[Json]:
        """The frames of a kind that the bot sent."""
        return [frame for frame in self.frames if frame.get("op") == op]

    @property
    def identifies(self) -> int:
        """How often the bot began a session."""
        return len(self.ops(_IDENTIFY))

    @property
    def resumes(self) -> int:
        """How often the bot took a session up again."""
        return len(self.ops(_RESUME))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serve one connection."""
        if not self.lets_in:
            return web.Response(status=503)
        socket = web.WebSocketResponse(max_msg_size=4096)
        await socket.prepare(request)
        link = Link(socket, compressed=request.query.get("compress") == "zlib-stream")
        self.links.append(link)
        try:
            await link.send(_HELLO, {"heartbeat_interval": int(self.beat_seconds * 1000), "_trace": []})
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    await self._take(link, json.loads(message.data))
                    self._signal.fire()
        finally:
            self.links.remove(link)
            if link.session is not None and link.session.link is link:
                link.session.link = None
            if link.session is not None and not link.dropped and socket.close_code in {1000, 1001}:
                self.sessions.pop(link.session.id, None)
            self._signal.fire()
        return socket

    async def _take(self, link: Link, frame: Json) -> None:
        self.frames.append(frame)
        match frame.get("op"):
            case 1:
                if self.acknowledges:
                    await link.send(_ACK, None)
            case 2:
                await self._identify(link, frame["d"])
            case 6:
                await self._resume(link, frame["d"])
            case _:
                await link.socket.close(code=4001)

    async def _identify(self, link: Link, data: Json) -> None:
        if link.session is not None:
            await link.socket.close(code=4005)
        elif data.get("token") != self._token:
            await link.socket.close(code=4004)
        elif self.refuses is not None:
            await link.socket.close(code=self.refuses)
        elif not 0 < data.get("intents", 0) <= _ALL_INTENTS:
            await link.socket.close(code=4013)
        else:
            session = Session(f"session-{next(self._numbers)}", data["intents"], link=link)
            self.sessions[session.id] = link.session = session
            await self._dispatch(session, "READY", self._ready() | {"session_id": session.id})

    async def _resume(self, link: Link, data: Json) -> None:
        session = self.sessions.get(data.get("session_id", ""))
        if data.get("token") != self._token:
            await link.socket.close(code=4004)
            return
        if session is None:
            await link.send(_INVALID, False)  # noqa: FBT003 -- the payload
            return
        session.link = link
        link.session = session
        for sequence, frame in list(session.buffer):
            if sequence > data["seq"]:
                await link.send(_DISPATCH, frame["d"], sequence=sequence, name=frame["t"])
        await self._dispatch(session, "RESUMED", {})

    async def emit(self, name: str, data: Json, *, intent: int = 0, says_content: bool = True) -> None:
        """Tell each session that wants it of something that happened.

        Args:
            name: Of the event.
            data: What it says.
            intent: What a session must have asked for; 0: everybody gets it.
            says_content: Whether the text may be read without the intent for it.
        """
        for session in list(self.sessions.values()):
            if intent and not session.intents & intent:
                continue
            shown = data
            if not (says_content or session.intents & MESSAGE_CONTENT):
                shown = {**data, "content": "", "attachments": [], "embeds": [], "components": []}
            await self._dispatch(session, name, shown)
        self._signal.fire()

    async def _dispatch(self, session: Session, name: str, data: Json) -> None:
        session.sequence += 1
        session.buffer.append((session.sequence, {"t": name, "d": data}))
        if session.link is not None:
            await session.link.send(_DISPATCH, data, sequence=session.sequence, name=name)

    # What goes wrong, on demand.

    async def drop(self, *, code: int | None = None) -> None:
        """Break every connection, by a close code or (None) without a word."""
        for link in list(self.links):
            link.dropped = True
            transport = link.socket._req.transport if link.socket._req is not None else None
            if code is not None:
                await link.socket.close(code=code)
            elif transport is not None:
                transport.abort()

    async def ask_to_reconnect(self) -> None:
        """Ask every connection to come again."""
        for link in list(self.links):
            await link.send(_RECONNECT, None)

    def forget_sessions(self) -> None:
        """No session can be taken up again."""
        self.sessions.clear()

    async def close(self) -> None:
        """End all connections."""
        async with asyncio.TaskGroup() as group:
            for link in list(self.links):
                group.create_task(link.socket.close(code=1012))
