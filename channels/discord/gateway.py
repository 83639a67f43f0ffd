"""The gateway: one session, resumed whenever it can be, and alive only while its heartbeats are acknowledged.

https://discord.com/developers/docs/events/gateway. The library speaks the protocol; when to connect again and what a
close means is decided here, because its own loop waits up to a quarter of an hour between tries.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
import discord
from discord.gateway import DiscordWebSocket, ReconnectWebSocket
from yarl import URL

from channels._wire.backoff import Backoff
from channels.discord.rest import LinkError, Payload, Rest, RestError
from zerobot.core.channel import ChannelServices, Intake
from zerobot.core.errors import ChannelFaultError

HANDSHAKE_SECONDS = 30.0
BEATS = 2.2
"""Heartbeats that may stay without acknowledgement, and some slack for the way."""
_SMALL_FRAME = 1024
_NO_SESSION = frozenset({1000, 1001, 4007, 4009})
"""Closed by Discord with one of these, a session cannot be resumed."""
_PORTAL = "https://discord.com/developers/applications"
_FATAL = {
    4004: ("Discord refuses the bot's token", "put the token of its Bot page into [channels.{name}] bot_token"),
    4010: ("Discord refuses the shard", "report this: the bot asks for none"),
    4011: ("the bot is in too many servers for one connection", "leave some of them, or run it as several bots"),
    4012: ("Discord no longer speaks this version of its gateway", "update zerobot"),
    4013: ("Discord does not know the intents that the bot asks for", "update zerobot"),
    4014: (
        "Discord does not let the bot read messages: an intent is switched off",
        f"switch on MESSAGE CONTENT INTENT on the Bot page of the application, {_PORTAL}, and start the bot again",
    ),
}  # fmt: skip

INTENTS = discord.Intents(guild_messages=True, dm_messages=True, message_content=True)
"""The least: no guilds, no members, no presences, so that the library keeps no copy of any server."""


@dataclass(frozen=True, slots=True)
class Session:
    """What it takes to go on with a session, also in the next process."""

    id: str
    sequence: int
    gateway: str
    """Where it is taken up; empty: wherever the API says."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of the gateway."""

    name: str
    data: Payload
    session: Session
    """As it stands once this event is done with."""


class _Socket(DiscordWebSocket):
    """The library's connection, which also keeps when its heartbeats were acknowledged."""

    beat_seconds: float = 60.0
    alive_at: float = 0.0
    closed_by_us: bool = False

    async def close(self, code: int = 4000) -> None:
        """Close it from this side; 4000 leaves the session to be resumed."""
        self.closed_by_us = True
        await super().close(code)

    def log_receive(self, data: Any, /) -> None:
        """The library calls this with each frame, unpacked; those that matter here are small."""
        if len(data) > _SMALL_FRAME:
            return
        frame = json.loads(data)
        if frame.get("op") == self.HELLO:
            self.beat_seconds = frame["d"]["heartbeat_interval"] / 1000
        if frame.get("op") in {self.HELLO, self.HEARTBEAT_ACK}:
            self.alive_at = self.loop.time()

    @property
    def dead_at(self) -> float:
        """When it counts as dead, in the loop's time, unless a heartbeat is acknowledged before."""
        return self.alive_at + BEATS * self.beat_seconds


class _Client(discord.Client):
    """What the library's socket wants to know of a client; it keeps nothing and dispatches nothing."""

    def __init__(self, rest: Rest) -> None:
        super().__init__(
            intents=INTENTS,
            max_messages=None,
            chunk_guilds_at_startup=False,
            member_cache_flags=discord.MemberCacheFlags.none(),
        )
        self.http = rest
        self.loop = asyncio.get_running_loop()

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        """Nobody listens: events are taken from the socket."""


class Gateway:
    """Receives events, over as many connections as it takes.

    Args:
        rest: Makes the connections.
        services: Name, clock and log.
        take: Gets each event, in order; it must not wait.
    """

    def __init__(self, rest: Rest, services: ChannelServices, take: Callable[[Event], None]) -> None:
        self._rest = rest
        self._services = services
        self._take = take
        self._session: Session | None = None

    async def run(self, intake: Intake, session: Session | None, wanted: Collection[str]) -> None:
        """Receive until cancelled.

        Args:
            intake: Told how the connection is.
            session: Of an earlier process, to be resumed if it still can be.
            wanted: The names of the events.

        Raises:
            ChannelFaultError: Discord refuses the bot as it is configured.
        """
        self._session = session
        client = _Client(self._rest)
        backoff = Backoff(self._services.clock)
        while True:
            why, at_least = await self._connection(client, intake, wanted)
            intake.disconnected(why)
            await backoff.wait(at_least)

    async def _connection(self, client: _Client, intake: Intake, wanted: Collection[str]) -> tuple[str, float]:
        """Be connected once; returns why that ended, and the seconds to wait at least."""
        socket: _Socket | None = None
        try:
            socket = await self._connect(client)
            self._listen(socket, intake, wanted)
            while True:
                async with asyncio.timeout_at(socket.dead_at):
                    await socket.poll_event()
        except ReconnectWebSocket as again:
            return self._ended(socket, resume=again.resume)
        except discord.ConnectionClosed as closed:
            raise_fatal(closed.code, self._services.name)
            return f"closed with {closed.code}", 0.0
        except RestError as error:
            raise_fatal(4004 if error.status == 401 else None, self._services.name)
            return f"the gateway's address: {error}", error.retry_after or 0.0
        except LinkError as error:
            return f"the gateway's address: {error}", 0.0
        except TimeoutError:
            return "its heartbeats are not acknowledged" if socket else "no answer", 0.0
        except (aiohttp.ClientError, OSError) as error:
            return type(error).__name__, 0.0
        finally:
            if socket is not None:
                await socket.close()  # by code 4000, so that the session can be resumed
            elif self._session is not None:
                # Where it was to be taken up nobody answers: the next try asks the API where else.
                self._session = replace(self._session, gateway="")

    async def _connect(self, client: _Client) -> _Socket:
        session = self._session
        async with asyncio.timeout(HANDSHAKE_SECONDS):
            return await _Socket.from_client(
                client,
                initial=True,  # else the library waits for five seconds
                gateway=URL(session.gateway) if session and session.gateway else None,
                session=session.id if session else None,
                sequence=session.sequence if session else None,
                resume=session is not None,
            )

    def _listen(self, socket: _Socket, intake: Intake, wanted: Collection[str]) -> None:
        """Take events as they are, before the library makes its own objects of them."""

        def taker(name: str) -> Callable[[Any], None]:
            def take(data: Any) -> None:
                if name in {"READY", "RESUMED"}:
                    intake.connected()
                assert socket.session_id is not None, "READY and RESUME know the session"
                assert socket.sequence is not None, "every event has its number"
                self._session = Session(socket.session_id, socket.sequence, str(socket.gateway))
                self._take(Event(name, data, self._session))

            return take

        socket._discord_parsers = {name: taker(name) for name in ("READY", "RESUMED", *wanted)}  # noqa: SLF001

    def _ended(self, socket: _Socket | None, *, resume: bool) -> tuple[str, float]:
        code = socket.socket.close_code if socket is not None and not socket.closed_by_us else None
        if not resume or code in _NO_SESSION:
            self._session = None
        # After "invalid session": https://discord.com/developers/docs/events/gateway#resuming
        return f"closed with {code}" if code else "asked to connect again", 0.0 if resume else 1.0


def raise_fatal(code: int | None, channel: str) -> None:
    """Raise what a close code means for a channel that cannot go on; do nothing when it can.

    Raises:
        ChannelFaultError: A person has to do something.
    """
    if code in _FATAL:
        why, advice = _FATAL[code]
        raise ChannelFaultError(why, advice=advice.format(name=channel)) from None
