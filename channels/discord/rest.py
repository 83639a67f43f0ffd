"""The REST side: the library's calls, made to our address, with answers that say what became of a request.

The library's own client waits inside of a call whenever a limit is near or met, and repeats what failed. Here delivery
paces and repeats, so that an old draft never arrives late; a call is made once, and its failure is told at once.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import aiohttp
from discord import File
from discord.gateway import DiscordClientWebSocketResponse
from discord.http import HTTPClient, Route

Payload = Mapping[str, Any]
"""A JSON object as Discord writes it."""

OFFICIAL_GATEWAY = "gateway.discord.gg"
"""What the library connects to unless it resumes a session; here the API is asked instead."""
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 20.0
UPLOAD_SECONDS = 120.0
_CLOSE_SECONDS = 2.0
_CONNECTIONS = 32
# Nothing of the request went out.
_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ServerTimeoutError, aiohttp.InvalidURL)


class RestError(Exception):
    """Discord refused a call; see https://discord.com/developers/docs/topics/opcodes-and-status-codes.

    Attributes:
        status: HTTP.
        code: Of the body; 0: it has none.
        retry_after: Seconds, for 429.
        whole_bot: Whether that limit holds for every call.
    """

    def __init__(
        self, status: int, code: int, text: str, *, retry_after: float | None = None, whole_bot: bool = False
    ) -> None:
        super().__init__(f"{status} ({code}): {text}")
        self.status = status
        self.code = code
        self.retry_after = retry_after
        self.whole_bot = whole_bot


class LinkError(Exception):
    """The connection broke. Only the kind of fault is told: an address may hold an interaction's token.

    Attributes:
        never_sent: Surely nothing was carried out.
    """

    def __init__(self, error: BaseException, *, never_sent: bool) -> None:
        super().__init__(type(error).__name__)
        self.never_sent = never_sent


class Rest(HTTPClient):
    """The library's calls over connections of our own.

    Args:
        base: The address of the API, its version included.
        token: The bot's.
    """

    def __init__(self, base: str, token: str) -> None:
        super().__init__(asyncio.get_running_loop())
        self.token = token
        self._base = base.rstrip("/")
        self._connections: aiohttp.ClientSession | None = None

    async def request(
        self,
        route: Route,
        *,
        files: Sequence[File] | None = None,
        form: Iterable[dict[str, Any]] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Make one call, once.

        Raises:
            RestError: It was refused.
            LinkError: There was no answer, or one that cannot be read.
        """
        headers = {"User-Agent": self.user_agent, "Authorization": f"Bot {self.token}"}
        seconds = ANSWER_SECONDS
        del files  # they are in the form
        kwargs.pop("reason", None)  # of the library's calls; it would be for a server's audit log
        if form is not None:
            kwargs["data"] = _form(form)
            seconds = UPLOAD_SECONDS
        url = self._base + route.url.removeprefix(Route.BASE)
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS)
        try:
            async with self._open().request(route.method, url, headers=headers, timeout=timeout, **kwargs) as answer:
                text = await answer.text(encoding="utf-8", errors="replace")
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise LinkError(error, never_sent=isinstance(error, _NEVER_SENT)) from None
        if 200 <= answer.status < 300:
            return _read(text) if text else None
        raise _refusal(answer, text)

    async def ws_connect(self, url: str, *, compress: int = 0) -> aiohttp.ClientWebSocketResponse:
        """Connect to the gateway; the library's default address stands for the one that our API names.

        Raises:
            RestError, LinkError: The API did not name it.
            aiohttp.ClientError, OSError: It did not let us in.
        """
        parts = url.partition("?")
        if OFFICIAL_GATEWAY in parts[0]:
            url = f"{(await self._gateway()).rstrip('/')}/?{parts[2]}"
        return await self._open().ws_connect(
            url,
            max_msg_size=0,
            timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_SECONDS),
            autoclose=False,
            headers={"User-Agent": self.user_agent},
            compress=compress,
        )

    async def close(self) -> None:
        """Close the connections."""
        if self._connections is not None:
            await self._connections.close()

    async def _gateway(self) -> str:
        """Ask where the gateway is, and whether a session may be begun: one too many, and Discord resets the token."""
        found = await self.request(Route("GET", "/gateway/bot"))
        limit = found.get("session_start_limit", {})
        if limit.get("remaining", 1) <= 0:
            seconds = limit.get("reset_after", 60_000) / 1000
            raise RestError(429, 0, "too many sessions were begun", retry_after=seconds, whole_bot=True)
        return str(found["url"])

    def _open(self) -> aiohttp.ClientSession:
        if self._connections is None:
            self._connections = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=_CONNECTIONS),
                ws_response_class=DiscordClientWebSocketResponse,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._connections


def _form(fields: Iterable[dict[str, Any]]) -> aiohttp.FormData:
    form = aiohttp.FormData(quote_fields=False)  # Discord does not read `files%5B0%5D`
    for each in fields:
        form.add_field(**each)
    return form


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise LinkError(error, never_sent=False) from None


def _refusal(answer: aiohttp.ClientResponse, text: str) -> RestError:
    """Read a refusal; one of a gateway before Discord is no JSON."""
    try:
        body = json.loads(text)
        code, words = int(body.get("code", 0)), str(body.get("message", ""))
        after, everywhere = body.get("retry_after"), bool(body.get("global", False))
    except (ValueError, TypeError, AttributeError):
        code, words, after, everywhere = 0, answer.reason or "", None, True
    if answer.status != 429:
        return RestError(answer.status, code, words)
    seconds = float(after if after is not None else answer.headers.get("Retry-After", 1.0))
    return RestError(429, code, words, retry_after=max(seconds, 0.0), whole_bot=everywhere)


def quiet_loggers() -> None:
    """Keep the library from logging what people wrote, and from asking for parts that are not used.

    At debug it logs all it receives; its warnings are about voice, about intents that we leave out on purpose and
    about waits that we don't leave to it. What matters of these comes to us as exceptions.
    """
    logger = logging.getLogger("discord")
    logger.setLevel(max(logger.level, logging.CRITICAL + 1))
