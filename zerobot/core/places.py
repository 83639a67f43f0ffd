"""Who and where: identities, places, conversations."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """A person, by the platform's immutable id. Two bots on one platform see the same identity."""

    platform: str
    """The kind of a channel (`console`), not the name of its table."""
    id: str

    def __str__(self) -> str:
        return f"{self.platform}:{self.id}"

    @classmethod
    def parse(cls, text: str) -> "Identity":
        """Read `PLATFORM:ID`.

        Raises:
            ValueError: There is no colon, or nothing on one side of it.
        """
        platform, colon, ident = text.partition(":")
        if not (platform and colon and ident):
            raise ValueError(f"{text!r} is not an identity; write PLATFORM:ID, for example console:local")
        return cls(platform, ident)


def at_home(person: Identity, homes: Iterable[str]) -> tuple[Identity, ...]:
    """Who is meant by an id on a platform whose ids hold within a scope: `SCOPE/ID`, or `ID` for the bot's own scope.

    Args:
        person: As the configuration names him.
        homes: The own scopes of the bots on his platform; none where ids need no scope, or while it is not known.
    """
    if "/" in person.id:
        return (person,)
    return tuple(Identity(person.platform, f"{home}/{person.id}") for home in homes) or (person,)


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is said: a chat on a channel, and a thread or topic in it."""

    channel: str
    """The name of the channel's table, so that two bots on one platform have different places."""
    chat: str
    thread: str | None = None

    def __str__(self) -> str:
        return f"{self.channel}:{self.chat}" + (f"/{self.thread}" if self.thread else "")

    @classmethod
    def parse(cls, text: str) -> "Place":
        """Read `CHANNEL:CHAT[/THREAD]`.

        Raises:
            ValueError: There is no colon, or nothing on one side of it.
        """
        channel, colon, rest = text.partition(":")
        chat, _, thread = rest.partition("/")
        if not (channel and colon and chat):
            raise ValueError(f"{text!r} is not a place; write CHANNEL:CHAT or CHANNEL:CHAT/THREAD")
        return cls(channel, chat, thread or None)


@dataclass(frozen=True, slots=True)
class ConversationKey:
    """One stream of messages. It is compared as a tuple: no character of it is ever squashed."""

    place: Place
    sender: str = ""
    """Set where people in one chat have conversations of their own; else empty."""
