"""Who may talk to the bot now: asked when somebody writes, and again whenever work for somebody begins or goes on."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from zerobot.config.schema import Settings
from zerobot.core.admission import Admission, fold_handle
from zerobot.core.channel import Channel, ChannelKind, HasHome
from zerobot.core.channel_settings import ChannelSettings
from zerobot.core.ids import ConversationId
from zerobot.core.places import Identity
from zerobot.daemon.routing import Homes, home_of
from zerobot.store.conversations import Conversations
from zerobot.store.inbox import Inbox
from zerobot.store.pairing import Pairings


def admission_of(settings: Settings, name: str, kind: ChannelKind, local: Identity | None) -> Admission:
    """Who may talk on a channel, as it is configured.

    Args:
        settings: All of them.
        name: The channel's table; one that there is not (the terminal's) has the usual settings.
        kind: The channel's kind.
        local: The person at the terminal, who is an operator there.
    """
    table = settings.channels.get(name, ChannelSettings())
    addresses = kind.capabilities.addresses
    listed = [user.lower() if addresses else user for user in table.allowed_users if user != "*"]
    named = frozenset(fold_handle(user) for user in listed if user.startswith("@"))
    return Admission(
        identities=frozenset(Identity(kind.name, user) for user in listed if not user.startswith("@")),
        handles=frozenset() if addresses else named,
        domains=named if addresses else frozenset(),
        everyone="*" in table.allowed_users,
        pairing=table.pairing,
        operators=frozenset(settings.operators.identities) | ({local} if local else set()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Knows who may talk, and ends what goes on for somebody who may not any more."""

    admissions: Mapping[str, Admission]
    """Of each open channel, as it is written."""
    channels: Mapping[str, Channel]
    homes: Homes
    pairings: Pairings
    inbox: Inbox
    conversations: Conversations
    stop: Callable[[ConversationId], Awaitable[bool]]
    """Stops the turn of a conversation, running or paused, with its approvals."""

    def admission(self, channel: str) -> Admission:
        """Who may talk on an open channel, by full ids as far as its own scope is known."""
        return self.admissions[channel].at_home(home_of(self.channels[channel]), self.homes)

    async def welcome(self, person: Identity, channel: str) -> bool:
        """Whether somebody whose message was accepted may still talk on a channel.

        While a channel does not know its own scope, ids that are written without one mean nobody yet: until then what
        was judged when the message was accepted holds.
        """
        opened = self.channels.get(channel)
        if opened is None or (isinstance(opened, HasHome) and not opened.home):
            return True
        return await self.pairings.may_talk(person, channel, self.admission(channel))

    async def shut_out(self, person: Identity, channels: Iterable[str]) -> list[str]:
        """Somebody was shut out: what he wrote and nobody has begun is refused, what is worked on for him stops.

        Returns:
            The channels on which the settings let him in all the same.
        """
        still = []
        for channel in channels:
            # As far as is known: who is let in by a scope that nobody knows yet only has to ask again.
            if channel in self.admissions and await self.pairings.may_talk(person, channel, self.admission(channel)):
                still.append(channel)
                continue
            await self.inbox.refuse(person, channel)
            for conversation in await self.conversations.at_work_for(person, channel):
                await self.stop(conversation)
        return still
