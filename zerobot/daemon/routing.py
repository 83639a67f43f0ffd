"""Who may decide an approval, and where the question is put. Pure, but for what a channel is asked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from zerobot.core.channel import AsksApproval, Channel, HasHome
from zerobot.core.places import Identity, Place, at_home
from zerobot.delivery.delivery import Delivery

CLI = Identity("cli", "local")
"""Whoever types commands in the daemon's own account: what they decide counts as an operator's."""


Homes = Callable[[str], Sequence[str]]
"""Gives the own scopes of the bots on a platform, by the platform's name: see `HasHome`."""


def no_homes(platform: str) -> Sequence[str]:
    """No platform has scopes."""
    del platform
    return ()


def home_of(channel: Channel) -> Sequence[str]:
    """A channel's own scope, if there is one and it is known."""
    return (channel.home,) if isinstance(channel, HasHome) and channel.home else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRules:
    """The table `[operators]`, and what else says who is one."""

    users: tuple[Identity, ...]
    """The operators, in the order of the file; ids are compared as texts, everywhere by this one record."""
    notify: str = "auto"
    """`auto`, `here` or `direct`."""
    self_approval: str = "always"
    """`always`, `direct` or `never`."""
    local: Identity | None = None
    """The person at the terminal: an operator of the conversations on that platform, and of no others."""
    platforms: Mapping[str, str] = field(default_factory=dict)
    """The kind of each open channel, by the name of its table."""
    timeout: timedelta = timedelta(hours=1)
    """How long operators have."""
    timeouts: Mapping[str, timedelta] = field(default_factory=dict)
    """The same for channels that say otherwise."""
    homes: Homes = no_homes

    def operators_at(self, place: Place) -> tuple[Identity, ...]:
        """Who is an operator for what happens in a place."""
        users = tuple(full for user in self.users for full in at_home(user, self.homes(user.platform)))
        if self.local is not None and self.platforms.get(place.channel) == self.local.platform:
            return (self.local, *(user for user in users if user != self.local))
        return users

    def is_operator(self, person: Identity, place: Place) -> bool:
        """Whether somebody is an operator for what happens in a place."""
        return person in self.operators_at(place)

    def may_decide_own(self, *, direct: bool) -> bool:
        """Whether an operator may decide what they asked for themselves.

        Args:
            direct: Whether it is decided in their direct chat.
        """
        return self.self_approval == "always" or (self.self_approval == "direct" and direct)

    def deciders(self, asker: Identity, place: Place, *, direct: bool) -> tuple[Identity, ...]:
        """The operators who may decide what somebody asks for in a place; `direct`: whether it is a direct chat."""
        own = self.may_decide_own(direct=direct)
        return tuple(operator for operator in self.operators_at(place) if own or operator != asker)

    def still_counts(self, decider: Identity, asker: Identity, place: Place) -> bool:
        """Whether a decision that was taken earlier counts by the rules of now: it was taken by other ones, maybe.

        Args:
            decider: Who took it.
            asker: Who had asked for it.
            place: Where.
        """
        if decider == CLI:
            return True
        # Where an own request was decided is not on record, so a rule about that place counts when it is decided.
        return self.is_operator(decider, place) and (decider != asker or self.may_decide_own(direct=True))

    def time_for(self, place: Place, shown: Sequence[Place] = ()) -> timedelta:
        """How long operators have for what is asked in a place.

        Args:
            place: Its channel's own time counts, if it has one.
            shown: Where they are asked; a channel there whose own time is longer gives them that.
        """
        if (own := self.timeouts.get(place.channel)) is not None:
            return own
        return max(self.timeout, *(self.timeouts.get(each.channel, self.timeout) for each in (place, *shown)))


def direct_places(delivery: Delivery, people: Sequence[Identity]) -> tuple[Place, ...]:
    """Where each of these people is reached alone, by the first open channel that can; who cannot be is left out."""
    places = (_direct_place(delivery, person) for person in people)
    return tuple(dict.fromkeys(place for place in places if place is not None))


def _direct_place(delivery: Delivery, person: Identity) -> Place | None:
    for line in delivery.lines():
        if isinstance(line.channel, AsksApproval) and (place := line.channel.direct_place(person)) is not None:
            return place
    return None
