"""People's names, asked for once and remembered within bounds; a message never waits long for one."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from channels.slack.web import LinkError, Web, WebError
from zerobot.core.clock import Clock

_MOST = 1000
_SECONDS = 6 * 3600.0
_AGAIN_SECONDS = 60.0
"""Before somebody is asked for again whose name could not be had."""
_PATIENCE = 1.0


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

    async def names(self, users: Iterable[str]) -> Mapping[str, str]:
        """The names of some people; who cannot be had soon is left out."""
        wanted = set(users)
        now = self._clock.monotonic()
        unknown = [user for user in wanted if user not in self._known or self._known[user].until <= now]
        async with asyncio.TaskGroup() as group:
            for user in unknown:
                group.create_task(self._learn(user), name="slack name")
        return {user: self._known[user].name for user in wanted if user in self._known and self._known[user].name}

    async def _learn(self, user: str) -> None:
        name, seconds = "", _AGAIN_SECONDS
        try:
            async with asyncio.timeout(_PATIENCE):
                found = (await self._web.call("users.info", user=user)).get("user") or {}
        except (WebError, LinkError, TimeoutError):
            pass
        else:
            profile = found.get("profile") or {}
            name = profile.get("display_name") or profile.get("real_name") or found.get("name") or ""
            name, seconds = " ".join(str(name).split()), _SECONDS
        self._known[user] = _Known(name, self._clock.monotonic() + seconds)
        self._known.move_to_end(user)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
