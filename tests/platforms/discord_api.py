"""The REST API of Discord's double: what it does, and what it refuses in which words."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.platforms.discord_checks import change, checked_commands, checked_message, pings
from tests.platforms.discord_limits import Call
from tests.platforms.discord_world import Channel, Json, Message, RefusalError, StoredFile, bad_form

if TYPE_CHECKING:
    from tests.platforms.discord_server import DiscordServer

NONCE_SECONDS = 300.0
"""Discord says “the past few minutes”."""
FILE_BYTES = 10 * 1024 * 1024
"""https://discord.com/developers/docs/reference#uploading-files"""
_SUPPRESS_EMBEDS, _QUIET = 1 << 2, 1 << 12


@dataclass(slots=True)
class Body:
    """What a request brought."""

    payload: Any = None
    files: list[StoredFile] = field(default_factory=list)
    query: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Call, Body], Awaitable[Any]]


class Api:
    """The calls."""

    def __init__(self, server: DiscordServer) -> None:
        self._server = server
        self.file_bytes = FILE_BYTES
        self._nonces: dict[tuple[str, str], tuple[float, Message]] = {}
        self.history_has_nonces = True
        self._routes: Sequence[tuple[str, str, str, Handler]] = (
            ("GET", "/gateway", "gateway", self._gateway),
            ("GET", "/gateway/bot", "gateway_bot", self._gateway_bot),
            ("GET", "/users/@me", "me", self._me),
            ("GET", "/users/@me/guilds", "guilds", self._guilds),
            ("GET", "/oauth2/applications/@me", "application", self._application),
            ("POST", "/users/@me/channels", "open_direct", self._open_direct),
            ("GET", "/channels/{channel}", "get_channel", self._get_channel),
            ("GET", "/channels/{channel}/messages", "history", self._history),
            ("POST", "/channels/{channel}/messages", "create_message", self._create),
            ("PATCH", "/channels/{channel}/messages/{message}", "edit_message", self._edit),
            ("DELETE", "/channels/{channel}/messages/{message}", "delete_message", self._delete),
            ("POST", "/channels/{channel}/typing", "typing", self._typing),
            ("GET", "/guilds/{guild}/members/{user}", "member", self._member),
            ("PUT", "/applications/{app}/commands", "commands", self._commands),
            ("PUT", "/applications/{app}/guilds/{guild}/commands", "guild_commands", self._guild_commands),
            ("POST", "/interactions/{id}/{token}/callback", "callback", server.interactions.callback),
            ("PATCH", "/webhooks/{app}/{token}/messages/@original", "original", server.interactions.edit_original),
            ("DELETE", "/webhooks/{app}/{token}/messages/@original", "original", server.interactions.delete_original),
            ("POST", "/webhooks/{app}/{token}", "followup", server.interactions.followup),
        )

    def find(self, method: str, path: str) -> tuple[str, Handler, Json]:
        """What is called, and the parameters in its path.

        Raises:
            RefusalError: There is no such call.
        """
        for wanted, pattern, name, handler in self._routes:
            match = re.fullmatch(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", pattern), path)
            if match and wanted == method:
                return name, handler, dict(match.groupdict())
        raise RefusalError(404, 0, "404: Not Found")

    # Who and where.

    async def _gateway(self, call: Call, body: Body) -> Json:
        return {"url": self._server.gateway_url}

    async def _gateway_bot(self, call: Call, body: Body) -> Json:
        limit = {"total": 1000, "remaining": self._server.sessions_left, "reset_after": 2_000, "max_concurrency": 1}
        return {"url": self._server.gateway_url, "shards": 1, "session_start_limit": limit}

    async def _me(self, call: Call, body: Body) -> Json:
        return self._server.me

    async def _guilds(self, call: Call, body: Body) -> list[Json]:
        return [{"id": guild.id, "name": guild.name} for guild in self._server.guilds.values()]

    async def _application(self, call: Call, body: Body) -> Json:
        return {"id": self._server.application, "name": "Zero", "flags": self._server.application_flags}

    async def _open_direct(self, call: Call, body: Body) -> Json:
        person = self._server.people.get(str(body.payload.get("recipient_id")))
        if person is None:
            raise RefusalError(400, 50033, "Invalid Recipient(s)")
        return person.chat.as_json()

    async def _get_channel(self, call: Call, body: Body) -> Json:
        return self._channel(call).as_json()

    async def _member(self, call: Call, body: Body) -> Json:
        guild = self._server.guilds.get(call.params["guild"])
        if guild is None:
            raise RefusalError(404, 10004, "Unknown Guild")
        return {"user": self._server.me, "roles": guild.bot_roles, "nick": None}

    def _channel(self, call: Call) -> Channel:
        channel = self._server.channels.get(call.channel)
        if channel is None:
            raise RefusalError(404, 10003, "Unknown Channel")
        return channel

    def _own(self, call: Call) -> Message:
        message = self._channel(call).message(call.params["message"])
        if message is None:
            raise RefusalError(404, 10008, "Unknown Message")
        if not message.from_bot:
            raise RefusalError(403, 50005, "Cannot edit a message authored by another user")
        return message

    # Messages.

    async def _history(self, call: Call, body: Body) -> list[Json]:
        channel = self._channel(call)
        if channel.refuses is not None and channel.refuses.body["code"] == 50001:
            raise channel.refuses
        limit = int(body.query.get("limit", 50))
        if not 1 <= limit <= 100:
            raise bad_form("limit")
        seen = [one for one in channel.messages if not (one.deleted or one.is_ephemeral)]
        if "after" in body.query:
            seen = [one for one in seen if int(one.id) > int(body.query["after"])][:limit]
        return [self._as_history(one) for one in reversed(seen[-limit:])]

    def _as_history(self, message: Message) -> Json:
        nonce = {"nonce": message.nonce} if message.nonce and self.history_has_nonces else {}
        return message.as_json() | nonce

    async def _create(self, call: Call, body: Body) -> Json:
        channel = self._channel(call)
        if channel.refuses is not None:
            raise channel.refuses
        payload = body.payload
        checked_message(payload, body.files, allowed_flags=_SUPPRESS_EMBEDS | _QUIET)
        if sum(file.size for file in body.files) > self.file_bytes:
            raise RefusalError(413, 40005, "Request entity too large")
        nonce = payload.get("nonce")
        if nonce is not None and payload.get("enforce_nonce"):
            at, known = self._nonces.get((channel.id, str(nonce)), (0.0, None))
            if known is not None and time.monotonic() - at < NONCE_SECONDS:
                return known.as_json() | {"nonce": nonce}
        message = self._server.new_message(
            channel,
            self._server.me,
            payload.get("content") or "",
            reply_to=self._answered(channel, payload),
            components=payload.get("components", []),
            files=body.files,
            nonce=str(nonce) if nonce is not None else None,
            flags=payload.get("flags", 0),
            pings=pings(payload),
        )
        if message.reply_to is not None:
            message.kind = 19
        if nonce is not None:
            self._nonces[(channel.id, str(nonce))] = (time.monotonic(), message)
        self._server.tell("MESSAGE_CREATE", message, nonce=nonce)
        return message.as_json() | ({"nonce": nonce} if nonce is not None else {})

    def _answered(self, channel: Channel, payload: Json) -> Message | None:
        reference = payload.get("message_reference")
        if reference is None:
            return None
        found = channel.message(str(reference.get("message_id")))
        if found is None and reference.get("fail_if_not_exists", True):
            raise bad_form("message_reference: Unknown message")
        return found

    async def _edit(self, call: Call, body: Body) -> Json:
        message, payload = self._own(call), body.payload
        if message.channel.refuses is not None:
            raise message.channel.refuses
        checked_message(
            payload, body.files, allowed_flags=_SUPPRESS_EMBEDS, is_edit=True, has_files=bool(message.files)
        )
        change(message, payload)
        self._server.tell("MESSAGE_UPDATE", message)
        return message.as_json()

    async def _delete(self, call: Call, body: Body) -> None:
        message = self._own(call)
        message.deleted = True
        self._server.tell_deleted(message)

    async def _typing(self, call: Call, body: Body) -> None:
        self._channel(call).typing.append(time.monotonic())

    # Slash commands.

    async def _commands(self, call: Call, body: Body) -> list[Json]:
        self._server.commands = checked_commands(body.payload)
        return self._server.commands

    async def _guild_commands(self, call: Call, body: Body) -> list[Json]:
        guild = self._server.guilds.get(call.params["guild"])
        if guild is None:
            raise RefusalError(403, 50001, "Missing Access")
        guild.commands = checked_commands(body.payload)
        return guild.commands


def read_json(text: str) -> Any:
    """Read a body.

    Raises:
        RefusalError: It is no JSON.
    """
    try:
        return json.loads(text) if text else None
    except ValueError:
        raise RefusalError(400, 50109, "The request body contains invalid JSON.") from None
