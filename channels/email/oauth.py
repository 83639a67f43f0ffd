"""Access tokens for both servers of a mailbox, from a refresh token (RFC 6749, section 6), and how one is shown."""

from __future__ import annotations

import asyncio
import hashlib
import json
from base64 import b64encode
from dataclasses import dataclass

import httpx

from channels.email.settings import OAuth2Settings
from zerobot.core.channel import ChannelServices
from zerobot.core.errors import ChannelFaultError, ZerobotError

EARLY_SECONDS = 120.0
"""A token is replaced so long before it expires: a login, or the sending of a mail, fits in between."""
_ASSUMED_SECONDS = 3600.0  # Where `expires_in` is missing, an hour is what the large providers give.
_LONGEST_SECONDS = 86_400.0
_ANSWER_SECONDS = 30.0
_LONGEST_ANSWER = 64 * 1024
_KEY = "oauth2"
# RFC 6749, section 5.2: what no further try mends.
_FATAL = {
    "invalid_grant": (
        "the provider does not accept the refresh token any more: it has expired, was revoked, or the password changed",
        "let the account's owner grant access again and put the new token into [channels.{name}.oauth2] refresh_token",
    ),
    "invalid_client": (
        "the provider does not know the app, or refuses its secret",
        "check client_id and client_secret in [channels.{name}.oauth2]; a secret may have expired",
    ),
    "unauthorized_client": (
        "the provider does not let the app refresh tokens",
        "allow it where the app is registered, and check client_id in [channels.{name}.oauth2]",
    ),
    "unsupported_grant_type": (
        "the token endpoint takes no refresh tokens",
        "check token_url in [channels.{name}.oauth2]",
    ),
    "invalid_scope": (
        "the provider refuses the scope",
        "let scope in [channels.{name}.oauth2] be one that was granted, or leave it out",
    ),
}


class TokenError(ZerobotError):
    """There is no access token at the moment; trying again later is right."""


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    good_until: float
    """Monotonic seconds."""


class AccessTokens:
    """Gives the access token that is good now; one refresh at a time.

    A refresh token that the provider hands out in place of the old one is stored before its access token is used:
    after a restart it is the only one that is good. It is kept together with a digest of the configured one, so that
    a new token in the configuration wins over what was kept.

    Args:
        settings: How tokens are got.
        services: The guarded HTTP client, the clock and the place where a newer refresh token is kept.
    """

    def __init__(self, settings: OAuth2Settings, services: ChannelServices) -> None:
        self._settings = settings
        self._services = services
        self._turn = asyncio.Lock()
        self._token: _Token | None = None

    async def token(self) -> str:
        """The access token, a new one if need be.

        Raises:
            ChannelFaultError: The provider will not give one before somebody mends something.
            TokenError: There is none now.
            StorageError: A newer refresh token could not be kept.
        """
        async with self._turn:
            if self._token is None or self._services.clock.monotonic() >= self._token.good_until:
                self._token = await self._refreshed()
            return self._token.text

    def reject(self, token: str) -> None:
        """A server has refused this token: the next call gets a new one."""
        if self._token is not None and self._token.text == token:
            self._token = None

    async def _refreshed(self) -> _Token:
        now = self._services.clock.monotonic()
        refresh_token = await self._kept()
        answer = await self._asked(refresh_token)
        text = answer.get("access_token")
        if not isinstance(text, str) or not text or not text.isascii() or not text.isprintable():
            raise TokenError("the token endpoint's answer has no access token")
        newer = answer.get("refresh_token")
        if isinstance(newer, str) and newer and newer != refresh_token:
            await self._services.state.set(_KEY, json.dumps({"of": self._digest(), "token": newer}))
        lasts = _lifetime(answer.get("expires_in"))
        return _Token(text, now + max(lasts - EARLY_SECONDS, lasts / 2))

    async def _asked(self, refresh_token: str) -> dict[str, object]:
        settings = self._settings
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": settings.client_id}
        if settings.client_secret is not None:
            form["client_secret"] = settings.client_secret.get_secret_value()
        if settings.scope:
            form["scope"] = settings.scope
        try:
            async with (
                asyncio.timeout(_ANSWER_SECONDS),
                self._services.http().stream("POST", settings.token_url, data=form) as response,
            ):
                status, body = response.status_code, bytearray()
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > _LONGEST_ANSWER:
                        raise TokenError("the token endpoint answers without end")
        except (httpx.HTTPError, OSError) as error:
            # Its text may have the request in it.
            raise TokenError(f"the token endpoint cannot be reached ({type(error).__name__})") from None
        return self._read(status, bytes(body))

    def _read(self, status: int, body: bytes) -> dict[str, object]:
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise TokenError(f"the token endpoint answers HTTP {status} without JSON")
        if status == httpx.codes.OK:
            return answer
        code = str(answer.get("error", ""))
        if code in _FATAL:
            fault, advice = _FATAL[code]
            raise ChannelFaultError(f"{fault} ({code})", advice=advice.format(name=self._services.name))
        raise TokenError(f"the token endpoint answers HTTP {status}")

    async def _kept(self) -> str:
        configured = self._settings.refresh_token.get_secret_value()
        try:
            kept = json.loads(await self._services.state.get(_KEY) or "{}")
            return str(kept["token"]) if kept["of"] == self._digest() else configured
        except (ValueError, KeyError, TypeError):
            return configured

    def _digest(self) -> str:
        return hashlib.sha256(self._settings.refresh_token.get_secret_value().encode()).hexdigest()


def _lifetime(value: object) -> float:
    """Seconds that a token is good; what says nothing of it counts as an hour."""
    try:
        seconds = float(str(value))
    except ValueError:
        return _ASSUMED_SECONDS
    return min(seconds, _LONGEST_SECONDS) if seconds > 0 else _ASSUMED_SECONDS


def xoauth2(user: str, token: str) -> bytes:
    """What IMAP and SMTP are told in place of a password, in base64.

    https://developers.google.com/gmail/imap/xoauth2-protocol
    """
    return b64encode(f"user={user}\1auth=Bearer {token}\1\1".encode())
