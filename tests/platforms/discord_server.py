"""A strict loopback double of Discord, REST API and gateway, with people who write, press and leave.

A test runs it in its own process, and the daemon is another one:

    async with DiscordServer() as discord:       # discord.api_base and discord.token go into the configuration
        ann = discord.user("1001", name="Ann", username="ann")
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
from types import TracebackType
from typing import Any, Self

from aiohttp import BodyPartReader, web

from tests.platforms.discord_api import Api, Body, read_json
from tests.platforms.discord_gateway import DIRECT_MESSAGES, GUILD_MESSAGES, Gateway
from tests.platforms.discord_interactions import Interaction, Interactions
from tests.platforms.discord_limits import Call, Fault, Traffic, too_many
from tests.platforms.discord_people import Person
from tests.platforms.discord_world import (
    DIRECT,
    FORUM,
    TEXT,
    THREAD,
    Channel,
    Guild,
    Json,
    Message,
    RefusalError,
    Snowflakes,
    StoredFile,
)
from tests.platforms.signals import PATIENCE, Hold, Signal

__all__ = ["DiscordServer", "Interaction", "Person"]

TOKEN = "TEST-ONLY.token.of-the-double"
APPLICATION = "900000000000000001"
BOT = "900000000000000002"
_MESSAGE_CONTENT_LIMITED = 1 << 19


class DiscordServer:
    """Discord, as one bot sees it."""

    def __init__(self, *, token: str = TOKEN, username: str = "zero") -> None:
        self.token = token
        self.me: Json = {"id": BOT, "username": username, "discriminator": "0", "bot": True, "global_name": None}
        self.application = APPLICATION
        self.application_flags = _MESSAGE_CONTENT_LIMITED
        self.sessions_left = 1000
        self.signal = Signal()
        self.ids = Snowflakes()
        self.calls: list[Call] = []
        self.people: dict[str, Person] = {}
        self.guilds: dict[str, Guild] = {}
        self.channels: dict[str, Channel] = {}
        self.files: dict[str, StoredFile] = {}
        self.commands: list[Json] = []
        self.traffic = Traffic()
        self.interactions = Interactions(self)
        self.api = Api(self)
        self.gateway = Gateway(token, self._ready, self.signal)
        self._address = ""
        self._faults: list[Fault] = []
        self._happenings: asyncio.Queue[tuple[str, Json, int, bool]] = asyncio.Queue()
        self._pump: asyncio.Task[None] | None = None
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_get("/ws/", self.gateway.handle)
        app.router.add_get("/cdn/{file}/{name}", self._download)
        app.router.add_route("*", "/api/v10/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self._address = f"127.0.0.1:{port}"
        self._pump = asyncio.create_task(self._tell_all())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._pump is not None, "it was started"
        assert self._runner is not None, "it was started"
        self._pump.cancel()
        with suppress(asyncio.CancelledError):
            await self._pump
        await self.gateway.close()
        await self._runner.cleanup()

    @property
    def api_base(self) -> str:
        """For the configuration."""
        return f"http://{self._address}/api/v10"

    @property
    def gateway_url(self) -> str:
        """What the API says where the gateway is."""
        return f"ws://{self._address}/ws/"

    def _ready(self) -> Json:
        return {
            "v": 10,
            "user": self.me,
            "guilds": [{"id": guild.id, "unavailable": True} for guild in self.guilds.values()],
            "resume_gateway_url": self.gateway_url,
            "application": {"id": self.application, "flags": self.application_flags},
        }

    # What is there, and what a test adds to it.

    def user(self, ident: str, *, name: str = "Ann", username: str = "", is_bot: bool = False) -> Person:
        """Add a person."""
        chat = self._add(Channel(self.ids.next(), DIRECT, "", self.signal))
        person = Person(self, ident, name, username or name.lower(), chat, is_bot=is_bot)
        chat.person = person.account
        self.people[ident] = person
        return person

    def guild(self, name: str = "Team") -> Guild:
        """Add a server that the bot is in."""
        guild = Guild(self.ids.next(), name)
        self.guilds[guild.id] = guild
        return guild

    def channel(self, name: str = "general", *, guild: Guild | None = None, forum: bool = False) -> Channel:
        """Add a channel, in a new server unless one is named."""
        kind = FORUM if forum else TEXT
        return self._add(Channel(self.ids.next(), kind, name, self.signal, guild=guild or self.guild()))

    def thread(self, parent: Channel, name: str = "a thread") -> Channel:
        """Add a thread to a channel, or a post to a forum (its first message has the same id)."""
        return self._add(Channel(self.ids.next(), THREAD, name, self.signal, guild=parent.guild, parent=parent))

    def _add(self, channel: Channel) -> Channel:
        self.channels[channel.id] = channel
        return channel

    def new_message(self, channel: Channel, author: Json, text: str, *, ident: str = "", **more: Any) -> Message:
        """Put a message into a channel; nobody is told."""
        message = Message(ident or self.ids.next(), channel, author, text, **more)
        message.history.append(text)
        channel.messages.append(message)
        self.signal.fire()
        return message

    def new_file(self, name: str, mime: str, data: bytes, size: int | None = None) -> StoredFile:
        """Store a file."""
        file = StoredFile(self.ids.next(), name, mime, data, len(data) if size is None else size)
        file.url = f"http://{self._address}/cdn/{file.id}/file"
        self.files[file.id] = file
        return file

    # Telling the bot.

    def emit(self, name: str, data: Json, *, intent: int = 0, says_content: bool = True) -> None:
        """Something happens; sessions are told in order."""
        self._happenings.put_nowait((name, data, intent, says_content))

    def tell(self, name: str, message: Message, *, nonce: Any = None) -> None:
        """Tell of a message."""
        channel, data = message.channel, message.as_json()
        if nonce is not None:
            data["nonce"] = nonce
        if channel.guild is not None:
            data |= {"guild_id": channel.guild.id, "member": {"nick": None, "roles": []}}
        to_bot = any(each["id"] == self.me["id"] for each in message.mentions)
        self.emit(
            name,
            data,
            intent=GUILD_MESSAGES if channel.guild else DIRECT_MESSAGES,
            says_content=to_bot or message.from_bot or channel.guild is None,
        )

    def tell_deleted(self, message: Message) -> None:
        """Tell that a message is gone; nothing says whose it was."""
        data: Json = {"id": message.id, "channel_id": message.channel.id}
        if message.channel.guild is not None:
            data["guild_id"] = message.channel.guild.id
        self.emit("MESSAGE_DELETE", data, intent=GUILD_MESSAGES if message.channel.guild else DIRECT_MESSAGES)

    async def _tell_all(self) -> None:
        while True:
            name, data, intent, says_content = await self._happenings.get()
            await self.gateway.emit(name, data, intent=intent, says_content=says_content)

    # What goes wrong, on demand.

    def fail_next(
        self,
        name: str,
        status: int,
        code: int = 0,
        message: str = "",
        *,
        retry_after: float | None = None,
        everywhere: bool = False,
        times: int = 1,
        channel: Channel | None = None,
    ) -> None:
        """Refuse the next calls of a name (`*`: of any).

        Args:
            name: As in `Call.name`.
            status: HTTP status.
            code: Discord's.
            message: Discord's words.
            retry_after: For 429, seconds; calls inside of them are violations.
            everywhere: Whether that holds for all calls.
            times: How many calls.
            channel: Only calls about this channel.
        """
        if status == 429:
            error = too_many(1.0 if retry_after is None else retry_after, everywhere=everywhere)
        else:
            error = RefusalError(status, code, message or f"status {status}")
        self._faults.append(Fault(name, channel.id if channel else None, times, error=error))

    def break_next(
        self, name: str, *, carried_out: bool = True, times: int = 1, channel: Channel | None = None
    ) -> None:
        """Break the connection after the next request of a name, before any answer."""
        ident = channel.id if channel else None
        self._faults.append(Fault(name, ident, times, breaks=True, carried_out=carried_out))

    def hold_next(self, name: str, *, carried_out: bool = False, channel: Channel | None = None) -> Hold:
        """Keep the next call of a name waiting until it is released, before or after it is carried out."""
        hold = Hold()
        self._faults.append(Fault(name, channel.id if channel else None, 1, carried_out=carried_out, hold=hold))
        return hold

    # What has happened.

    @property
    def violations(self) -> list[Call]:
        """Calls about a channel that was to be left alone."""
        return self.traffic.violations

    def of(self, *names: str, channel: Channel | None = None) -> list[Call]:
        """The calls of some names (all, when none is given), about one channel or any."""
        return [
            call
            for call in self.calls
            if (not names or call.name in names) and (channel is None or call.channel == channel.id)
        ]

    async def wait_for(self, condition: Callable[[], Any], patience: float = PATIENCE) -> None:
        """Wait until something holds; looked at after each call and each thing that a person does."""
        await self.signal.until(
            condition,
            lambda: [(call.name, call.channel, call.outcome, call.status) for call in self.calls[-20:]],
            patience,
        )

    # The way of a request.

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        headers: dict[str, str] = {}
        call: Call | None = None
        try:
            self._let_in(request)
            name, handler, params = self.api.find(request.method, "/" + request.match_info["path"])
            body = await self._body(request)
            call = Call(name, {**params, "body": body.payload}, time.monotonic(), str(params.get("channel", "")))
            self.calls.append(call)
            self.signal.fire()
            headers = self.traffic.check(call)
            fault = next((fault for fault in self._faults if fault.fits(call)), None)
            if fault is not None:
                fault.times -= 1
            if fault is not None and not fault.carried_out:
                await self._go_wrong(call, fault, request)
            call.result = await handler(call, body)
            self.signal.fire()
            if fault is not None and fault.carried_out:
                await self._go_wrong(call, fault, request)
        except RefusalError as error:
            if call is not None:
                call.outcome, call.status = "refused", error.status
            return _json(error.status, error.body, headers | error.headers)
        finally:
            self.signal.fire()
        call.outcome, call.status = "ok", 204 if call.result is None else 200
        self.signal.fire()
        return _json(call.status, call.result, headers)

    def _let_in(self, request: web.Request) -> None:
        if not request.headers.get("User-Agent", "").startswith("DiscordBot ("):
            raise RefusalError(403, 40333, "internal network error")
        if request.headers.get("Authorization") != f"Bot {self.token}":
            raise RefusalError(401, 0, "401: Unauthorized")

    async def _go_wrong(self, call: Call, fault: Fault, request: web.Request) -> None:
        if fault.hold is not None:
            await fault.hold.keep()
        if fault.breaks:
            call.outcome = "broken"
            assert request.transport is not None, "the request came by it"
            request.transport.abort()
            raise asyncio.CancelledError
        if fault.error is not None:
            if fault.error.status == 429:
                everywhere = fault.error.body["global"]
                self.traffic.punish("" if everywhere else call.channel, fault.error.body["retry_after"])
            raise fault.error

    async def _body(self, request: web.Request) -> Body:
        if not request.content_type.startswith("multipart/"):
            return Body(read_json(await request.text()), query=dict(request.query))
        body = Body({}, query=dict(request.query))
        async for part in await request.multipart():
            assert isinstance(part, BodyPartReader), "no part has parts"
            if part.name == "payload_json":
                body.payload = read_json(await part.text())
            elif part.name is not None and part.name.startswith("files["):
                data = bytes(await part.read())
                body.files.append(self.new_file(part.filename or "", "application/octet-stream", data))
        return body

    async def _download(self, request: web.Request) -> web.StreamResponse:
        file = self.files.get(request.match_info["file"])
        if file is None or file.status != 200:
            return web.Response(status=404 if file is None else file.status)
        return web.Response(body=file.data, content_type="application/octet-stream")


def _json(status: int, value: Any, headers: dict[str, str]) -> web.Response:
    if value is None:
        return web.Response(status=status, headers=headers)
    return web.Response(status=status, text=json.dumps(value), content_type="application/json", headers=headers)
