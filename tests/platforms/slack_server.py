"""A strict loopback double of Slack, Web API and Socket Mode, with people who write, press and leave.

A test runs it in its own process, and the daemon is another one:

    async with SlackServer() as slack:       # slack.api_base and the two tokens go into the configuration
        ann = slack.user("U1", name="Ann")
        ann.says("hello")
        reply = await ann.chat.reply("hello")    # the newest reply that contains it, as soon as there is one
        await ann.chat.wait_for(lambda chat: chat.prompt)
        ann.presses(ann.chat.prompt, "Approve")

It refuses what the real one refuses, keeps what each channel shows, and records every call.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from tests.platforms.signals import PATIENCE, Hold, Signal
from tests.platforms.slack_api import Api
from tests.platforms.slack_limits import Call, Fault, Traffic, too_many
from tests.platforms.slack_people import Person, Press, Presses
from tests.platforms.slack_sockets import Sockets
from tests.platforms.slack_world import (
    CHANNEL,
    DIRECT,
    Channel,
    Json,
    Message,
    RefusalError,
    Stamps,
    StoredFile,
)

__all__ = ["Person", "Press", "SlackServer"]

BOT_TOKEN = "xoxb-TEST-ONLY-1"
APP_TOKEN = "xapp-TEST-ONLY-1"
TEAM = "T0TEAM"
BOT = "U0BOT"
_JSON = frozenset({"blocks", "files", "metadata", "view"})


class SlackServer:
    """Slack, as one app in one workspace sees it."""

    def __init__(self, *, bot_token: str = BOT_TOKEN, app_token: str = APP_TOKEN) -> None:
        self.bot_token = bot_token
        self.app_token = app_token
        self.team = TEAM
        self.bot = BOT
        self.signal = Signal()
        self.stamps = Stamps()
        self.calls: list[Call] = []
        self.people: dict[str, Person] = {}
        self.channels: dict[str, Channel] = {}
        self.files: dict[str, StoredFile] = {}
        self.astray: list[str] = []
        """Messages that were to be in a thread that does not exist: Slack shows them at top level."""
        self.traffic = Traffic()
        self.presses = Presses(self)
        self.sockets = Sockets(self.signal)
        self.api = Api(self)
        self._numbers = count(1)
        self._address = ""
        self._faults: list[Fault] = []
        self._pump: asyncio.Task[None] | None = None
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_get("/link/", self.sockets.handle)
        app.router.add_get("/files/{file}/{name}", self._download)
        app.router.add_post("/upload/{file}", self._upload)
        app.router.add_post("/respond/{press}", self._respond)
        app.router.add_route("*", "/api/{method}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._address = f"127.0.0.1:{self._runner.addresses[0][1]}"
        self.sockets.base = f"ws://{self._address}"
        self._pump = asyncio.create_task(self.sockets.pump())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._pump is not None, "it was started"
        assert self._runner is not None, "it was started"
        self._pump.cancel()
        with suppress(asyncio.CancelledError):
            await self._pump
        await self.sockets.close()
        await self._runner.cleanup()

    @property
    def api_base(self) -> str:
        """For the configuration."""
        return f"http://{self._address}/api/"

    def response_url(self, press: Press) -> str:
        """Where a press can be answered."""
        return f"http://{self._address}/respond/{press.ident}"

    def upload_url(self, file: StoredFile) -> str:
        """Where a file's bytes are brought."""
        return f"http://{self._address}/upload/{file.id}"

    # What is there, and what a test adds to it.

    def user(self, ident: str, *, name: str = "Ann", team: str = TEAM) -> Person:
        """Add a person."""
        chat = Channel(f"D{ident[1:]}", DIRECT, "directmessage", team, self.signal, person=ident)
        self.channels[chat.id] = chat
        person = self.people[ident] = Person(self, ident, name, chat, team)
        return person

    def channel(self, name: str = "general", *, kind: str = CHANNEL) -> Channel:
        """Add a channel that the bot is in."""
        ident = f"C{next(self._numbers):04d}"
        channel = self.channels[ident] = Channel(ident, kind, name, self.team, self.signal)
        return channel

    def new_message(self, channel: Channel, user: str, raw: str, *, age: float = 0.0, **more: Any) -> Message:
        """Put a message into a channel; nobody is told."""
        message = Message(self.stamps.next(age), channel, user, raw, **more)
        message.history.append(message.text)
        channel.messages.append(message)
        self.signal.fire()
        return message

    def new_file(self, name: str, mime: str, data: bytes) -> StoredFile:
        """Store a file."""
        ident = f"F{next(self._numbers):04d}"
        file = self.files[ident] = StoredFile(ident, name, mime, data, size=len(data))
        file.url = f"http://{self._address}/files/{ident}/file"
        return file

    # Telling the bot.

    def tell(self, kind: str, message: Message) -> None:
        """Tell of a message, as the event `message` or `app_mention`."""
        event = message.as_json() | {"type": kind, "channel": message.channel.id}
        event.pop("reply_count", None)
        if message.thread_ts is None:
            event.pop("thread_ts", None)
        if kind == "message":
            event |= {"channel_type": message.channel.kind, "event_ts": message.ts}
        self.emit(event)

    def tell_changed(self, message: Message, before: Json | None = None) -> None:
        """Tell that a message is another one now."""
        self.emit(
            {
                "type": "message",
                "subtype": "message_changed",
                "hidden": True,
                "channel": message.channel.id,
                "channel_type": message.channel.kind,
                "message": message.as_json(),
                "previous_message": before or {"text": message.history[-2], "ts": message.ts},
                "ts": self.stamps.next(),
            }
        )

    def tell_deleted(self, message: Message) -> None:
        """Tell that a message is gone."""
        self.emit(
            {
                "type": "message",
                "subtype": "message_deleted",
                "hidden": True,
                "channel": message.channel.id,
                "channel_type": message.channel.kind,
                "deleted_ts": message.ts,
                "previous_message": message.as_json(),
                "ts": self.stamps.next(),
            }
        )

    def emit(self, event: Json) -> None:
        """Something happens in the workspace."""
        ident = f"Ev{next(self._numbers):06d}"
        self.sockets.emit(
            "events_api",
            {"type": "event_callback", "team_id": self.team, "api_app_id": "A0APP", "event_id": ident, "event": event},
        )

    # What goes wrong, on demand.

    def fail_next(
        self,
        name: str,
        code: str,
        status: int = 200,
        *,
        retry_after: float | None = None,
        times: int = 1,
        channel: Channel | None = None,
    ) -> None:
        """Refuse the next calls of a method (`*`: of any).

        Args:
            name: The method.
            code: Slack's word; `ratelimited` comes with status 429.
            status: HTTP status.
            retry_after: For `ratelimited`, seconds; calls about the channel inside of them are violations.
            times: How many calls.
            channel: Only calls about this channel.
        """
        error = too_many(retry_after or 1.0) if code == "ratelimited" else RefusalError(code, status)
        self._faults.append(Fault(name, channel.id if channel else None, times, error=error))

    def break_next(
        self, name: str, *, carried_out: bool = True, times: int = 1, channel: Channel | None = None
    ) -> None:
        """Break the connection after the next request of a method, before any answer."""
        ident = channel.id if channel else None
        self._faults.append(Fault(name, ident, times, breaks=True, carried_out=carried_out))

    def hold_next(self, name: str, *, carried_out: bool = False, channel: Channel | None = None) -> Hold:
        """Keep the next call of a method waiting until it is released, before or after it is carried out."""
        hold = Hold()
        self._faults.append(Fault(name, channel.id if channel else None, 1, carried_out=carried_out, hold=hold))
        return hold

    # What has happened.

    @property
    def violations(self) -> list[Any]:
        """Calls about a channel that was to be left alone, messages that went astray, forms that came too late."""
        return [*self.traffic.violations, *self.astray, *self.presses.late, *self.sockets.late]

    def of(self, *names: str, channel: Channel | None = None) -> list[Call]:
        """The calls of some methods (all, when none is given), about one channel or any."""
        return [
            call
            for call in self.calls
            if (not names or call.name in names) and (channel is None or call.channel == channel.id)
        ]

    async def wait_for(self, condition: Callable[[], Any], patience: float = PATIENCE) -> None:
        """Wait until something holds; looked at after each call and each thing that a person does."""
        await self.signal.until(
            condition,
            lambda: [(call.name, call.channel, call.outcome, call.code) for call in self.calls[-20:]],
            patience,
        )

    # The way of a request.

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        call = Call(request.match_info["method"], {}, time.monotonic())
        try:
            call.params = await _arguments(request)
            call.channel = str(call.params.get("channel") or call.params.get("channel_id") or "")
            self.calls.append(call)
            self._let_in(request, call.name)
            handler = self.api.find(call.name, call.params)
            self.traffic.check(call)
            fault = next((fault for fault in self._faults if fault.fits(call)), None)
            if fault is not None:
                fault.times -= 1
            if fault is not None and not fault.carried_out:
                await self._go_wrong(call, fault, request)
            call.result = await handler(call.params)
            self.signal.fire()
            if fault is not None and fault.carried_out:
                await self._go_wrong(call, fault, request)
        except KeyError:
            call.outcome, call.code = "refused", "invalid_arguments"
            return web.json_response({"ok": False, "error": "invalid_arguments"})
        except RefusalError as error:
            call.outcome, call.code = "refused", error.code
            headers = {"Retry-After": f"{error.retry_after:.0f}"} if error.retry_after is not None else {}
            if error.status >= 500:
                return web.Response(status=error.status, text="<html>upstream</html>", content_type="text/html")
            return web.json_response({"ok": False, "error": error.code}, status=error.status, headers=headers)
        finally:
            self.signal.fire()
        call.outcome = "ok"
        self.signal.fire()
        return web.json_response({"ok": True, **call.result}, headers={"X-OAuth-Scopes": self.api.scopes})

    def _let_in(self, request: web.Request, method: str) -> None:
        wanted = self.app_token if method == "apps.connections.open" else self.bot_token
        given = request.headers.get("Authorization", "")
        if not given:
            raise RefusalError("not_authed")
        if given != f"Bearer {wanted}":
            known = {f"Bearer {self.app_token}", f"Bearer {self.bot_token}"}
            raise RefusalError("not_allowed_token_type" if given in known else "invalid_auth")

    async def _go_wrong(self, call: Call, fault: Fault, request: web.Request) -> None:
        if fault.hold is not None:
            await fault.hold.keep()
        if fault.breaks:
            call.outcome = "broken"
            assert request.transport is not None, "the request came by it"
            request.transport.abort()
            raise asyncio.CancelledError
        if fault.error is not None:
            if fault.error.retry_after is not None and call.channel:
                self.traffic.punish(call.channel, fault.error.retry_after)
            raise fault.error

    async def _download(self, request: web.Request) -> web.StreamResponse:
        file = self.files.get(request.match_info["file"])
        if file is None or file.status != 200:
            return web.Response(status=404 if file is None else file.status)
        if request.headers.get("Authorization") != f"Bearer {self.bot_token}":
            return web.Response(text="<html>log in</html>", content_type="text/html")
        return web.Response(body=file.data, content_type="application/octet-stream")

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        file = self.files.get(request.match_info["file"])
        if file is None or request.headers.get("Authorization"):
            return web.Response(status=400)
        file.data = await request.read()
        return web.Response(text=f"OK - {len(file.data)}")

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        try:
            self.presses.respond(request.match_info["press"], await request.json())
        except RefusalError as error:
            return web.json_response({"ok": False, "error": error.code}, status=error.status)
        return web.Response(text="ok")


async def _arguments(request: web.Request) -> Json:
    """The arguments of a call, from the address or a form; what is a list or a table there is JSON."""
    given: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json":
        given |= await request.json()
    else:
        given |= dict(await request.post())
    given.pop("token", None)
    return {name: _read(name, value) for name, value in given.items()}


def _read(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if name in _JSON:
        return json.loads(value)
    return {"true": True, "false": False}.get(value, value)
