"""The Web API: the library's client over connections of our own, each call made once, its failure told at once.

The library would repeat a call after a broken connection, and the message would stand there twice; here delivery knows
what may be repeated. https://docs.slack.dev/apis/web-api
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

Payload = Mapping[str, Any]
"""A JSON object as Slack writes it."""

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 20.0
UPLOAD_SECONDS = 120.0
_CONNECTIONS = 32
_MANY_REQUESTS = 429
_UNNAMED = {_MANY_REQUESTS: "ratelimited"}
# Nothing of the request went out.
_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ServerTimeoutError, aiohttp.InvalidURL)


class WebError(Exception):
    """Slack refused a call.

    Attributes:
        code: Slack's word for it, such as `channel_not_found`; `status_502` when the answer held none.
        status: HTTP.
        retry_after: Seconds, when a limit was met.
    """

    def __init__(self, code: str, status: int, *, retry_after: float | None = None) -> None:
        super().__init__(f"{code} ({status})")
        self.code = code
        self.status = status
        self.retry_after = retry_after


class LinkError(Exception):
    """The connection broke. Only the kind of fault is told: an address may hold a ticket.

    Attributes:
        never_sent: Surely nothing was carried out.
    """

    def __init__(self, error: BaseException, *, never_sent: bool) -> None:
        super().__init__(type(error).__name__)
        self.never_sent = never_sent


class Web:
    """Makes calls.

    Args:
        base: The address of the Web API.
        bot_token: For all calls but the one that opens a socket.
        app_token: For that one.
    """

    def __init__(self, base: str, bot_token: str, app_token: str) -> None:
        self._client = AsyncWebClient(token=bot_token, base_url=base, retry_handlers=[])
        self._client.proxy = None  # the library would take one from the environment
        self._bot_token = bot_token
        self._app_token = app_token
        self._session: aiohttp.ClientSession | None = None

    @property
    def session(self) -> aiohttp.ClientSession:
        """The connections; opened when they are first used."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=_CONNECTIONS),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS, sock_connect=CONNECT_SECONDS),
            )
        return self._session

    async def call(self, method: str, **arguments: Any) -> Payload:
        """Make one call, once.

        Args:
            method: As Slack names it: `chat.postMessage`.
            arguments: Those that are None are left out; lists and tables are written as JSON.

        Raises:
            WebError: It was refused.
            LinkError: There was no answer, or one that cannot be read.
        """
        form = {name: _written(value) for name, value in arguments.items() if value is not None}
        return _data(await self._told(lambda client: client.api_call(method, data=form)))

    async def open_socket(self) -> str:
        """The address of a socket; it is good for one connection.

        Raises:
            WebError, LinkError: As for `call`.
        """
        answer = await self._told(lambda client: client.apps_connections_open(app_token=self._app_token))
        return str(_data(answer).get("url", ""))

    async def identify(self) -> tuple[Payload, frozenset[str]]:
        """Who the bot is, and the scopes of its token.

        Raises:
            WebError, LinkError: As for `call`.
        """
        answer = await self._told(lambda client: client.auth_test())
        scopes = str(answer.headers.get("X-OAuth-Scopes", ""))
        return _data(answer), frozenset(scope.strip() for scope in scopes.split(",") if scope.strip())

    async def _told(self, make: Callable[[AsyncWebClient], Awaitable[AsyncSlackResponse]]) -> AsyncSlackResponse:
        """Make a call of the library's, and tell its failure in our words."""
        self._client.session = self.session
        try:
            return await make(self._client)
        except SlackApiError as error:
            raise _refusal(error.response) from None
        except (aiohttp.ClientError, OSError, TimeoutError, SlackClientError, ValueError) as error:
            raise LinkError(error, never_sent=isinstance(error, _NEVER_SENT)) from None

    async def post(self, address: str, value: Payload | bytes) -> None:
        """Send something to an address that Slack gave us: an answer to a `response_url`, a file to its place.

        Raises:
            WebError: It was refused.
            LinkError: There was no answer.
        """
        is_file = isinstance(value, bytes)
        timeout = aiohttp.ClientTimeout(
            total=UPLOAD_SECONDS if is_file else ANSWER_SECONDS, sock_connect=CONNECT_SECONDS
        )
        try:
            async with self.session.post(
                address, data=value if is_file else None, json=None if is_file else value, timeout=timeout
            ) as answer:
                await answer.read()
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise LinkError(error, never_sent=isinstance(error, _NEVER_SENT)) from None
        if answer.status != 200:
            raise WebError(f"status_{answer.status}", answer.status, retry_after=_retry_after(answer))

    @property
    def authorization(self) -> Mapping[str, str]:
        """The header by which Slack lets files be read."""
        return {"Authorization": f"Bearer {self._bot_token}"}

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


def _data(answer: AsyncSlackResponse) -> Payload:
    return answer.data if isinstance(answer.data, dict) else {}


def _written(value: Any) -> str:
    """A form takes texts only."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | tuple | Mapping) else str(value)


def _refusal(answer: Any) -> WebError:
    """Read a refusal; one of a gateway before Slack is no JSON."""
    status = int(getattr(answer, "status_code", None) or getattr(answer, "status", 0) or 0)
    data = getattr(answer, "data", None)
    code = data.get("error") if isinstance(data, dict) else None
    code = str(code or _UNNAMED.get(status) or f"status_{status}")
    limited = status == _MANY_REQUESTS or code in {"ratelimited", "rate_limited"}
    return WebError(code, status, retry_after=(_retry_after(answer) or 1.0) if limited else None)


def _retry_after(answer: Any) -> float | None:
    """Seconds of the header `Retry-After`."""
    try:
        return max(float(answer.headers["Retry-After"]), 0.0)
    except (KeyError, ValueError, TypeError, AttributeError):
        return None


def quiet_loggers() -> None:
    """Keep the library from logging what people wrote: all that matters of it comes to us as exceptions."""
    logger = logging.getLogger("slack_sdk")
    logger.setLevel(max(logger.level, logging.CRITICAL + 1))
