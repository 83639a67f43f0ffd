"""Discord's rate limits, and what a test makes go wrong: refusals, broken and held calls.

https://discord.com/developers/docs/topics/rate-limits
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.platforms.discord_world import Json, RefusalError
from tests.platforms.signals import Hold

# What the X-RateLimit headers of these calls say in practice: (calls, seconds) for each channel.
BUCKETS: dict[str, tuple[int, float]] = {
    "create_message": (5, 5.0),
    "edit_message": (5, 5.0),
    "delete_message": (5, 5.0),
    "typing": (5, 5.0),
}
GLOBAL = (50, 1.0)
"""Calls of a bot, but for those about interactions."""


@dataclass(slots=True)
class Call:
    """One call, and what became of it."""

    name: str
    """Of what is called: `create_message`, ..."""
    params: Json
    at: float
    """Monotonic seconds at which it arrived."""
    channel: str = ""
    outcome: str = "open"
    """`ok`, `refused`, `broken` (the connection, before or after it was carried out), or `open` still."""
    status: int = 0
    result: Any = None


@dataclass(slots=True)
class Fault:
    """Something that happens to the next calls that fit."""

    name: str
    channel: str | None
    times: int
    error: RefusalError | None = None
    breaks: bool = False
    carried_out: bool = False
    """For a broken or held call: whether it is done before."""
    hold: Hold | None = None

    def fits(self, call: Call) -> bool:
        """Whether it is for this call."""
        return self.times > 0 and self.name in {"*", call.name} and self.channel in {None, call.channel}


@dataclass(slots=True)
class _Window:
    ends: float = 0.0
    left: int = 0


@dataclass(slots=True)
class Traffic:
    """Who called how often, who was limited until when, and who called nevertheless."""

    buckets: dict[str, tuple[int, float]] = field(default_factory=lambda: dict(BUCKETS))
    violations: list[Call] = field(default_factory=list)
    """Calls inside a window in which there should have been none."""
    refused: list[Call] = field(default_factory=list)
    """Calls that were one too many."""
    clock: Callable[[], float] = time.monotonic
    _windows: dict[tuple[str, str], _Window] = field(default_factory=dict)
    _limited_until: dict[str, float] = field(default_factory=dict)

    def punish(self, channel: str, seconds: float) -> None:
        """Begin a window without calls, in a channel or (empty) everywhere."""
        self._limited_until[channel] = max(self._limited_until.get(channel, 0.0), self.clock() + seconds)

    def check(self, call: Call) -> dict[str, str]:
        """Count a call; returns the headers of its answer.

        Raises:
            RefusalError: 429.
        """
        if call.name in {"callback", "original", "followup"}:
            return {}
        for key in {"", call.channel}:
            wait = self._limited_until.get(key, 0.0) - self.clock()
            if wait > 0:
                self.violations.append(call)
                raise too_many(wait, everywhere=not key)
        self._count(call, ("", ""), GLOBAL)
        limit = self.buckets.get(call.name)
        if limit is None:
            return {}
        window = self._count(call, (call.name, call.channel), limit)
        return _headers(call, limit, window, self.clock())

    def _count(self, call: Call, key: tuple[str, str], limit: tuple[int, float]) -> _Window:
        now = self.clock()
        window = self._windows.setdefault(key, _Window())
        if window.ends <= now:
            window.ends, window.left = now + limit[1], limit[0]
        if window.left <= 0:
            self.refused.append(call)
            self.punish(key[1], window.ends - now)
            raise too_many(window.ends - now, everywhere=not key[0])
        window.left -= 1
        return window


def _headers(call: Call, limit: tuple[int, float], window: _Window, now: float) -> dict[str, str]:
    return {
        "X-RateLimit-Limit": str(limit[0]),
        "X-RateLimit-Remaining": str(window.left),
        "X-RateLimit-Reset": f"{time.time() + window.ends - now:.3f}",
        "X-RateLimit-Reset-After": f"{window.ends - now:.3f}",
        "X-RateLimit-Bucket": f"bucket-{call.name}",
    }


def too_many(seconds: float, *, everywhere: bool = False) -> RefusalError:
    """The refusal with status 429; `retry_after` is a number with a fraction, the header a whole one."""
    error = RefusalError(429, 0, "You are being rate limited.")
    error.body |= {"retry_after": round(seconds, 3), "global": everywhere}
    error.headers = {"Retry-After": str(int(seconds) + 1), "Via": "1.1 google"}
    error.headers["X-RateLimit-Scope"] = "global" if everywhere else "user"
    if everywhere:
        error.headers["X-RateLimit-Global"] = "true"
    return error
