"""The HTTP side of the library's bot: tuned connections, and the answers that the library would blur."""

from __future__ import annotations

import json
import logging
from ssl import SSLContext
from typing import Any

import httpx
from telegram.error import BadRequest, NetworkError, TelegramError
from telegram.request import BaseRequest, HTTPXRequest, RequestData

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 20.0
"""How long the Bot API may think about one call. Sends seldom take more than one."""
_KEPT_SECONDS = 30.0
_MANY_REQUESTS = 429
# A gateway's words about the server behind it, which may well have gone on with the request.
_GATEWAY = frozenset({502, 504})
# Refusals that the library has a name for; it takes others (413, a file too large) for broken connections.
_NAMED = frozenset({400, 401, 403, 404, 409})


class FloodError(TelegramError):
    """Telegram wants a pause; in seconds, and without the library's deprecated two forms of saying so."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"too many requests, retry after {retry_after:g} s")
        self.retry_after = retry_after


class GatewayError(NetworkError):
    """A gateway answered in place of the Bot API: the request may have been carried out."""


class BotRequest(HTTPXRequest):
    """HTTP/1.1 with a pool of kept connections, no proxies from the environment, no redirects."""

    def __init__(self, tls: SSLContext, connections: int, answer_seconds: float = ANSWER_SECONDS) -> None:
        """Make a client; it connects when it is first used.

        Args:
            tls: What is trusted; one serves several clients, since it takes 17 ms to make.
            connections: The most that may be open at once.
            answer_seconds: How long an answer may take; a long poll adds its own time.
        """
        limits = httpx.Limits(
            max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=_KEPT_SECONDS
        )
        super().__init__(
            read_timeout=answer_seconds,
            write_timeout=ANSWER_SECONDS,
            connect_timeout=CONNECT_SECONDS,
            pool_timeout=ANSWER_SECONDS,
            media_write_timeout=60.0,
            httpx_kwargs={"limits": limits, "trust_env": False, "verify": tls},
        )
        self.last_payload = b"{}"

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: Any = BaseRequest.DEFAULT_NONE,
        write_timeout: Any = BaseRequest.DEFAULT_NONE,
        connect_timeout: Any = BaseRequest.DEFAULT_NONE,
        pool_timeout: Any = BaseRequest.DEFAULT_NONE,
    ) -> tuple[int, bytes]:
        """Make a call; see the library's own.

        Raises:
            FloodError: 429.
            GatewayError: 502 or 504.
            BadRequest: A refusal that the library has no name for.
        """
        code, payload = await super().do_request(
            url, method, request_data, read_timeout, write_timeout, connect_timeout, pool_timeout
        )
        if code == _MANY_REQUESTS:
            raise FloodError(_retry_after(payload))
        if code in _GATEWAY:
            raise GatewayError(f"gateway answered {code}")
        if 400 <= code < 500 and code not in _NAMED:
            raise BadRequest(f"refused with status {code}")
        self.last_payload = payload
        return code, payload


def _retry_after(payload: bytes) -> float:
    """Seconds from an answer's https://core.telegram.org/bots/api#responseparameters; 1 when it names none."""
    try:
        return max(float(json.loads(payload)["parameters"]["retry_after"]), 0.0)
    except (ValueError, KeyError, TypeError):
        return 1.0


def quiet_loggers() -> None:
    """Keep the libraries from logging addresses, which hold the bot's token, and what people wrote.

    The HTTP libraries log each address at info; the bot's library logs its address at debug, and updates that it
    cannot read at critical. All that matters of these comes to us as exceptions.
    """
    for name, level in (("httpx", logging.WARNING), ("httpcore", logging.WARNING), ("telegram", logging.CRITICAL + 1)):
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, level))
