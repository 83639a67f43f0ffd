"""Slack's rate limits, and what a test makes go wrong: refusals, broken and held calls.

https://docs.slack.dev/apis/web-api/rate-limits
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.platforms.signals import Hold
from tests.platforms.slack_world import Json, RefusalError

TIER_2, TIER_3, TIER_4, SPECIAL = (20, 60.0), (50, 60.0), (100, 60.0), (600, 60.0)
# Calls of a method in the workspace; those that are not here are not limited.
METHODS: dict[str, tuple[int, float]] = {
    "apps.connections.open": TIER_2,
    "assistant.threads.setStatus": SPECIAL,
    "chat.appendStream": TIER_4,
    "chat.delete": TIER_3,
    "chat.postEphemeral": TIER_4,
    "chat.postMessage": SPECIAL,
    "chat.startStream": TIER_2,
    "chat.stopStream": TIER_2,
    "chat.update": TIER_3,
    "conversations.history": TIER_3,
    "conversations.open": TIER_3,
    "conversations.replies": TIER_3,
    "files.completeUploadExternal": TIER_4,
    "files.getUploadURLExternal": TIER_4,
    "files.info": TIER_4,
    "users.info": TIER_4,
    "views.open": TIER_4,
}
POSTS = (10, 10.0)
"""New messages in one channel: one a second, with short bursts."""


@dataclass(slots=True)
class Call:
    """One call, and what became of it."""

    name: str
    params: Json
    at: float
    """Monotonic seconds at which it arrived."""
    channel: str = ""
    outcome: str = "open"
    """`ok`, `refused`, `broken` (the connection, before or after it was carried out), or `open` still."""
    code: str = ""
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
class Traffic:
    """Who called how often, who was limited until when, and who called nevertheless."""

    methods: dict[str, tuple[int, float]] = field(default_factory=lambda: dict(METHODS))
    posts: tuple[int, float] = POSTS
    violations: list[Call] = field(default_factory=list)
    """Calls about a channel that was to be left alone."""
    refused: list[Call] = field(default_factory=list)
    """Calls that were one too many."""
    clock: Callable[[], float] = time.monotonic
    _times: dict[tuple[str, str], deque[float]] = field(default_factory=lambda: defaultdict(deque))
    _limited_until: dict[str, float] = field(default_factory=dict)

    def punish(self, channel: str, seconds: float) -> None:
        """Begin a window without calls about a channel."""
        self._limited_until[channel] = max(self._limited_until.get(channel, 0.0), self.clock() + seconds)

    def check(self, call: Call) -> None:
        """Count a call.

        Raises:
            RefusalError: 429.
        """
        wait = self._limited_until.get(call.channel, 0.0) - self.clock() if call.channel else 0.0
        if wait > 0:
            self.violations.append(call)
            raise too_many(wait)
        if call.name in self.methods:
            self._count(call, (call.name, ""), *self.methods[call.name])
        if call.name in {"chat.postMessage", "chat.startStream"}:
            self._count(call, ("posts", call.channel), *self.posts)

    def _count(self, call: Call, key: tuple[str, str], calls: int, seconds: float) -> None:
        now, times = self.clock(), self._times[key]
        while times and times[0] <= now - seconds:
            times.popleft()
        if len(times) >= calls:
            self.refused.append(call)
            raise too_many(times[0] + seconds - now)
        times.append(now)


def too_many(seconds: float) -> RefusalError:
    """The refusal with status 429; the header is a whole number."""
    return RefusalError("ratelimited", 429, retry_after=float(-(-seconds // 1)))
