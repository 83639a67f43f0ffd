"""A token endpoint on the loopback: it refreshes access tokens (RFC 6749, section 6)."""

from __future__ import annotations

from itertools import count
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from tests.platforms.signals import Hold

REFRESH_TOKEN = "1//TEST-ONLY"


class TokenServer:
    """Gives `access-1`, `access-2`, ... for a refresh token that is good."""

    def __init__(self) -> None:
        self.good = {REFRESH_TOKEN}
        """Refresh tokens that are good."""
        self.rotates = False
        """Whether a refresh token is good once and another one comes with each answer."""
        self.lasts: object = 3600
        """`expires_in`."""
        self.answer: web.Response | None = None
        """Given in place of any other."""
        self.hold: Hold | None = None
        """Keeps requests waiting."""
        self.forms: list[dict[str, Any]] = []
        self.url = ""
        self._numbers = count(1)
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/token", self._token)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/token"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _token(self, request: web.Request) -> web.Response:
        form = dict(await request.post())
        self.forms.append(form)
        if self.hold is not None:
            await self.hold.keep()
        if self.answer is not None:
            return self.answer
        if form.get("grant_type") != "refresh_token" or form.get("refresh_token") not in self.good:
            return web.json_response({"error": "invalid_grant"}, status=400)
        number = next(self._numbers)
        answer = {"access_token": f"access-{number}", "token_type": "Bearer", "expires_in": self.lasts}
        if self.rotates:
            self.good = {f"refresh-{number}"}
            answer["refresh_token"] = f"refresh-{number}"
        return web.json_response(answer)
