"""What has to be asked about a place before a message from it can be read: its parent, its title, the bot's roles."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from channels.discord.content import Payload
from channels.discord.rest import LinkError, Rest, RestError
from channels.discord.settings import DiscordSettings
from zerobot.core.clock import Clock

_MOST = 500
_ROLES_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel or a thread of a server."""

    parent: str = ""
    """Of a thread: the channel that it belongs to."""
    name: str = ""


@dataclass(frozen=True, slots=True)
class _Roles:
    ids: frozenset[str]
    until: float


class Surroundings:
    """Asks once, and remembers within bounds. What cannot be had now counts as not there, and is asked again.

    Args:
        rest: Makes the calls.
        settings: Where the bot listens.
        clock: For how long roles are remembered.
    """

    def __init__(self, rest: Rest, settings: DiscordSettings, clock: Clock) -> None:
        self._rest = rest
        self._guilds = frozenset(settings.allowed_guilds)
        self._listed = frozenset(settings.allowed_channels)
        self._clock = clock
        self._channels: OrderedDict[str, Channel] = OrderedDict()
        self._roles: dict[str, _Roles] = {}

    async def listens(self, guild: str, channel: str, parent: str | None = None) -> bool:
        """Whether the bot listens in a channel of a server; in a thread it does as in its channel.

        Args:
            guild: The server.
            channel: The channel or thread.
            parent: Of a thread; None: not known.
        """
        if self._guilds and guild not in self._guilds:
            return False
        if not self._listed or channel in self._listed:
            return True
        if parent is None:
            parent = (await self.channel(channel)).parent
        return parent in self._listed

    async def title(self, message: Payload) -> str:
        """The title of the post that a message opens in a forum; empty: it opens none."""
        if message["id"] != message["channel_id"]:
            return ""
        return (await self.channel(str(message["channel_id"]))).name

    async def channel(self, ident: str) -> Channel:
        """A channel."""
        known = self._channels.get(ident)
        if known is not None:
            return known
        try:
            found: Payload = await self._rest.get_channel(ident)
        except (RestError, LinkError):
            return Channel()
        channel = Channel(str(found.get("parent_id") or ""), str(found.get("name") or ""))
        self._channels[ident] = channel
        while len(self._channels) > _MOST:
            self._channels.popitem(last=False)
        return channel

    async def roles(self, guild: str, bot: str) -> frozenset[str]:
        """The bot's roles in a server."""
        now = self._clock.monotonic()
        known = self._roles.get(guild)
        if known is not None and known.until > now:
            return known.ids
        try:
            member: Payload = await self._rest.get_member(guild, bot)
        except (RestError, LinkError):
            return frozenset()
        ids = frozenset(str(role) for role in member.get("roles", ()))
        self._roles[guild] = _Roles(ids, now + _ROLES_SECONDS)
        return ids
