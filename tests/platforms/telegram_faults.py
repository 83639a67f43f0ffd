"""What a test makes go wrong at the Bot API's double: refusals, broken and held connections, rate limits."""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.platforms.signals import Hold
from tests.platforms.telegram_text import ApiError

_SENDS = ("send", "edit")
# What reaches us a moment early because the one before was slow on its way is not a fault of the caller's.
_TOLERANCE = 0.9


@dataclass(slots=True)
class Call:
    """One call, and what became of it."""

    method: str
    params: dict[str, Any]
    at: float
    """Monotonic seconds at which it arrived."""
    chat: str = ""
    outcome: str = "open"
    """`ok`, `refused`, `broken` (the connection, before or after it was carried out), or `open` still."""
    status: int = 0
    description: str = ""
    result: Any = None


@dataclass(slots=True)
class Fault:
    """Something that happens to the next calls that fit."""

    method: str
    chat: str | None
    times: int
    error: ApiError | None = None
    breaks: bool = False
    carried_out: bool = False
    """For a broken or held call: whether the Bot API has done it before."""
    hold: Hold | None = None

    def fits(self, call: Call) -> bool:
        """Whether it is for this call."""
        return self.times > 0 and self.method in {"*", call.method} and self.chat in {None, call.chat}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Rates as (calls, seconds): Telegram's own by default."""

    private: tuple[int, float] = (1, 1.0)
    group: tuple[int, float] = (20, 60.0)
    bot: tuple[int, float] = (30, 1.0)


@dataclass(slots=True)
class Traffic:
    """Who was limited until when, and who called nevertheless."""

    limits: Limits | None = None
    violations: list[Call] = field(default_factory=list)
    """Calls about a chat inside a window in which it was to be left alone."""
    clock: Callable[[], float] = time.monotonic
    _limited_until: dict[str, float] = field(default_factory=dict)
    _sent: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))

    def punish(self, chat: str, seconds: float) -> None:
        """Begin a window."""
        self._limited_until[chat] = max(self._limited_until.get(chat, 0.0), self.clock() + seconds)

    def check(self, call: Call) -> None:
        """Count a call.

        Raises:
            ApiError: 429, with `retry_after`.
        """
        if not call.chat:
            return
        wait = self._limited_until.get(call.chat, 0.0) - self.clock()
        if wait > 0:
            self.violations.append(call)
            raise too_many(wait)
        if self.limits is None or not call.method.startswith(_SENDS) or call.method == "sendChatAction":
            return
        of_chat = self.limits.group if call.chat.startswith("-") else self.limits.private
        for key, (count, seconds) in ((call.chat, of_chat), ("", self.limits.bot)):
            wait = self._excess(key, count, seconds * _TOLERANCE)
            if wait > 0:
                self.punish(call.chat, math.ceil(wait))
                raise too_many(wait)
        for key in (call.chat, ""):
            self._sent[key].append(self.clock())

    def _excess(self, key: str, count: int, seconds: float) -> float:
        """Seconds until one more call is free; 0 when it is."""
        sent = self._sent[key]
        while sent and sent[0] <= self.clock() - seconds:
            sent.popleft()
        return 0.0 if len(sent) < count else sent[0] + seconds - self.clock()


def too_many(seconds: float) -> ApiError:
    """The refusal with status 429."""
    wait = max(1, math.ceil(seconds))
    return ApiError(429, f"Too Many Requests: retry after {wait}", {"retry_after": wait})
