"""Socket Mode: one connection, replaced before it goes, and alive only while something is heard from it.

The library's own client closes the old connection before it opens the next, handles each event in a task of its own,
so that their order is lost, and owns tasks that nobody ends; so the protocol is spoken here. It is small: an address, a
greeting, envelopes, an acknowledgement for each. https://docs.slack.dev/apis/events-api/using-socket-mode
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field

import aiohttp
from aiohttp import ClientWebSocketResponse, WSMsgType

from channels._wire.backoff import Backoff
from channels.slack.faults import BAD_TOKEN
from channels.slack.web import LinkError, Payload, Web, WebError
from zerobot.core.channel import ChannelServices, Intake
from zerobot.core.errors import ChannelFaultError

GREETING_SECONDS = 15.0
"""How long Slack may take to greet."""
QUIET_SECONDS = 20.0
"""After so long without a sign we ask for one; after as long again it counts as dead. Slack pings oftener."""
REPLACED_SECONDS = 30.0
"""How long a connection that Slack wants to end is still read beside the next one."""
SHORTEST_SECONDS = 5.0
"""Of a connection that Slack replaced sooner the next one is not hurried: it must not become a storm of them."""
_CLOSE_SECONDS = 1.0
# What no further try mends: https://docs.slack.dev/reference/methods/apps.connections.open#errors
_FATAL = BAD_TOKEN | {"missing_scope", "no_permission", "access_denied", "not_allowed", "org_login_required"}
_REFRESH = frozenset({"refresh_requested", "warning"})


@dataclass(frozen=True, slots=True)
class Envelope:
    """Something that Slack delivers, and wants to be told that we have it."""

    kind: str
    """`events_api`, `interactive` or `slash_commands`."""
    id: str
    payload: Payload
    socket: ClientWebSocketResponse

    async def acknowledge(self, reply: Payload | None = None) -> None:
        """Say that we have it, over the connection that it came by; if that is gone, events come again.

        Args:
            reply: What whoever did it is told privately, for commands.
        """
        frame: dict[str, object] = {"envelope_id": self.id}
        if reply is not None:
            frame["payload"] = reply
        with contextlib.suppress(aiohttp.ClientError, OSError):
            await self.socket.send_str(json.dumps(frame))


@dataclass(slots=True)
class _Link:
    """One connection."""

    replaces: bool
    """Another one is still read when it begins."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the next one is wanted."""
    greeted: bool = False
    why: str = ""
    """Why it ended by itself; empty: Slack asked for the next one."""
    at_least: float = 0.0
    fault: ChannelFaultError | None = None


class Sockets:
    """Receives envelopes, over as many connections as it takes.

    Args:
        web: Gives addresses and connections.
        services: Name, clock and log.
        take: Gets each envelope, in order; it must not wait.
        greeted: Called at each greeting, with whether anything may have been missed before it.
    """

    def __init__(
        self,
        web: Web,
        services: ChannelServices,
        take: Callable[[Envelope], None],
        greeted: Callable[[bool], None],
    ) -> None:
        self._web = web
        self._services = services
        self._take = take
        self._greeted = greeted

    async def run(self, intake: Intake) -> None:
        """Receive until cancelled.

        Args:
            intake: Told how the connection is.

        Raises:
            ChannelFaultError: Slack refuses the app as it is configured.
        """
        backoff = Backoff(self._services.clock)
        fault: ChannelFaultError | None = None
        async with asyncio.TaskGroup() as group:
            replaces = False
            while fault is None:
                link, began = _Link(replaces), self._services.clock.monotonic()
                group.create_task(self._connection(link, intake), name="slack socket")
                await link.over.wait()
                fault, replaces = link.fault, not link.why
                if link.why and fault is None:
                    intake.disconnected(link.why)
                    await backoff.wait(link.at_least)
                elif self._services.clock.monotonic() - began < SHORTEST_SECONDS:
                    await backoff.wait()
        if fault is not None:
            raise fault

    async def _connection(self, link: _Link, intake: Intake) -> None:
        """Be connected once."""
        try:
            link.why = await self._connected(link, intake) or link.why
        except WebError as error:
            link.why, link.at_least = f"the socket's address: {error.code}", error.retry_after or 0.0
            if error.code in _FATAL:
                link.fault = refused_app_token(self._services.name)
        except LinkError as error:
            link.why = f"the socket's address: {error}"
        except TimeoutError:
            link.why = "nothing is heard from it" if link.greeted else "no answer"
        except (aiohttp.ClientError, OSError) as error:
            link.why = type(error).__name__
        finally:
            link.over.set()

    async def _connected(self, link: _Link, intake: Intake) -> str:
        """Read a connection to its end; returns why it ended unless Slack had asked for the next one."""
        async with asyncio.timeout(GREETING_SECONDS):
            socket = await self._web.session.ws_connect(
                await self._web.open_socket(),
                autoping=False,
                timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_SECONDS),
            )
        try:
            return await self._listen(socket, link, intake)
        finally:
            await socket.close()

    async def _listen(self, socket: ClientWebSocketResponse, link: _Link, intake: Intake) -> str:
        asked, clock = False, asyncio.get_running_loop()
        ends = float("inf")
        while clock.time() < ends:
            try:
                frame = await socket.receive(timeout=GREETING_SECONDS if not link.greeted else QUIET_SECONDS)
            except TimeoutError:
                if asked or not link.greeted:
                    raise
                asked = True
                await socket.ping()
                continue
            asked = False
            if frame.type is WSMsgType.PING:
                await socket.pong(frame.data)
            elif frame.type is not WSMsgType.TEXT and frame.type is not WSMsgType.PONG:
                return "" if link.over.is_set() else f"closed with {socket.close_code}"
            if link.greeted:
                intake.connected()
            if frame.type is WSMsgType.TEXT and self._read(frame.data, socket, link, intake):
                ends = min(ends, clock.time() + REPLACED_SECONDS)
                if link.why:
                    return link.why
        return ""

    def _read(self, text: str, socket: ClientWebSocketResponse, link: _Link, intake: Intake) -> bool:
        """Take one message; returns whether the connection is about to end."""
        try:
            message = json.loads(text)
        except ValueError:
            return False
        kind = str(message.get("type", ""))
        if kind == "hello":
            link.greeted = True
            intake.connected()
            self._greeted(not link.replaces)
        elif kind == "disconnect":
            self._asked_to_leave(str(message.get("reason", "")), link)
            return True
        elif message.get("envelope_id"):
            self._take(Envelope(kind, str(message["envelope_id"]), message.get("payload") or {}, socket))
        return False

    def _asked_to_leave(self, reason: str, link: _Link) -> None:
        if reason == "link_disabled":
            link.fault = ChannelFaultError(
                "Socket Mode is switched off for the app",
                advice="switch it on, on the app's page Socket Mode at https://api.slack.com/apps",
            )
        if reason in _REFRESH:
            link.over.set()
        else:
            link.why = f"Slack says: {reason}"


def refused_app_token(channel: str) -> ChannelFaultError:
    """What is wrong when no socket is opened for us."""
    return ChannelFaultError(
        "Slack refuses the app's token",
        advice="put an app-level token (xapp-...) with the scope connections:write into "
        f"[channels.{channel}] app_token",
    )


def refused_bot_token(channel: str) -> ChannelFaultError:
    """What is wrong when Slack does not know the bot."""
    return ChannelFaultError(
        "Slack refuses the bot's token",
        advice="put the Bot User OAuth Token (xoxb-...) of the app's page OAuth & Permissions into "
        f"[channels.{channel}] bot_token",
    )
