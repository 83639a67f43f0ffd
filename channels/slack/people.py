"""People's names, asked for once and remembered within bounds; a message never waits long for one."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from channels.slack.web import LinkError, Web, WebError
from zerobot.core.clock import Clock

_MOST = 1000
_SECONDS = 6 * 3600.0
_AGAIN_SECONDS = 60.0
"""Before somebody is asked for again whose name could not be had."""
_PATIENCE = 1.0
_ASKS, _ASKS_SECONDS = 80, 60.0
"""So often names are asked for: `users.info` is of tier 4, 100 a minute and some more in bursts; the rest is left free.
https://docs.slack.dev/apis/web-api/rate-limits"""


@dataclass(frozen=True, slots=True)
class _Known:
    name: str
    until: float


class People:
    """Knows names by ids.

    Args:
        web: Asked for them.
        clock: For how long they are remembered.
    """

    def __init__(self, web: Web, clock: Clock) -> None:
        self._web = web
        self._clock = clock
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._asked: deque[float] = deque()
        """When somebody was asked for, within the window."""
        self._not_before = 0.0
        """Slack has asked us to wait until then."""

    async def names(self, users: Iterable[str]) -> Mapping[str, str]:
        """The names of some people; who cannot be had soon is left out."""
        wanted = set(users)
        now = self._clock.monotonic()
        unknown = [user for user in wanted if user not in self._known or self._known[user].until <= now]
        async with asyncio.TaskGroup() as group:
            for user in unknown:
                if not self._may_ask(now):
                    break
                group.create_task(self._learn(user), name="slack name")
        return {user: self._known[user].name for user in wanted if user in self._known and self._known[user].name}

    def _may_ask(self, now: float) -> bool:
        """Whether one more may be asked for, and count it. Who may not be now is asked for when he is met again."""
        while self._asked and self._asked[0] <= now - _ASKS_SECONDS:
            self._asked.popleft()
        if now < self._not_before or len(self._asked) >= _ASKS:
            return False
        self._asked.append(now)
        return True

    async def _learn(self, user: str) -> None:
        name, seconds = "", _AGAIN_SECONDS
        try:
            async with asyncio.timeout(_PATIENCE):
                found = (await self._web.call("users.info", user=user)).get("user") or {}
        except WebError as error:
            self._not_before = self._clock.monotonic() + (error.retry_after or 0.0)
        except (LinkError, TimeoutError):
            pass
        else:
            profile = found.get("profile") or {}
            name = profile.get("display_name") or profile.get("real_name") or found.get("name") or ""
            name, seconds = " ".join(str(name).split()), _SECONDS
        self._known[user] = _Known(name, self._clock.monotonic() + seconds)
        self._known.move_to_end(user)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
