"""The seam to memory: what is kept beyond a conversation's window, to whom it belongs, and how a backend is asked.

Nothing here has a wildcard: whoever reads or deletes names the owners whose entries he means, so no path can forget to.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from zerobot.core.envelope import TurnOrigin
from zerobot.core.errors import ZerobotError
from zerobot.core.ids import ConversationId, TurnId
from zerobot.core.places import Identity

KEY_CHARACTERS = 80
TEXT_CHARACTERS = 2_000
OWNER_ENTRIES = 500
"""Entries that one owner can have unless a backend is told otherwise; earlier versions do not count."""
KEPT_VERSIONS = 10
"""Earlier versions of an entry that are kept, the latest ones."""

MEMORY_OPENS = "<recalled_memory>"
MEMORY_CLOSES = "</recalled_memory>"
"""The fence around what is recalled into a message. No entry can carry it, and no chat should ever show it."""


class OwnerKind(StrEnum):
    """Whom an entry can belong to."""

    PERSON = "person"
    """Seen only in chats of this person and the bot alone, on whatever channel of the platform."""
    CONVERSATION = "conversation"
    """Seen only there, by everybody in it."""
    AGENT = "agent"
    """Seen in every conversation of an agent; only operators write it."""


@dataclass(frozen=True, slots=True)
class MemoryOwner:
    """The one to whom an entry belongs."""

    kind: OwnerKind
    id: str
    """An identity, the number of a conversation, or the name of an agent."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}"

    @classmethod
    def person(cls, identity: Identity) -> "MemoryOwner":
        """A person. The platform is part of it: the same id on another platform is somebody else."""
        return cls(OwnerKind.PERSON, str(identity))

    @classmethod
    def conversation(cls, conversation: ConversationId) -> "MemoryOwner":
        """Everybody in a conversation."""
        return cls(OwnerKind.CONVERSATION, str(conversation))

    @classmethod
    def agent(cls, name: str) -> "MemoryOwner":
        """Everybody who talks to an agent; `default` is the one of `[agent]`."""
        return cls(OwnerKind.AGENT, name)

    @classmethod
    def parse(cls, text: str) -> "MemoryOwner":
        """Read `person:PLATFORM:ID`, `conversation:NUMBER` or `agent:NAME`.

        Raises:
            ValueError: It is none of these.
        """
        kind, _, ident = text.partition(":")
        match kind:
            case OwnerKind.PERSON:
                return cls.person(Identity.parse(ident))
            case OwnerKind.CONVERSATION if ident.isdecimal():
                return cls.conversation(ConversationId(int(ident)))
            case OwnerKind.AGENT if ident:
                return cls.agent(ident)
        raise ValueError(f"{text!r} is no owner; write person:PLATFORM:ID, conversation:NUMBER or agent:NAME")


class MemoryKind(StrEnum):
    """How long an entry matters."""

    CORE = "core"
    """As long as it is not corrected."""
    PASSING = "passing"
    """For a while: it counts half as much every seven days."""


class MemorySource(StrEnum):
    """How an entry came about."""

    SAID = "said"
    """In a turn that a person had started."""
    CONTENT = "content"
    """In a turn that had read what somebody else wrote (a web page, a mail): it may say what that text wanted."""
    SCHEDULE = "schedule"
    """In a turn that no person had started."""
    OPERATOR = "operator"
    """By an operator, outside any turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnScope:
    """What of a turn decides which entries it may touch."""

    turn: TurnId
    origin: TurnOrigin
    asker: Identity
    conversation: ConversationId
    agent: str
    """Name of the agent who answers; `default` is the one of `[agent]`."""
    private: bool
    """Whether the asker, and nobody else, reads what is said here."""
    outside_content: bool = False
    """Whether the turn has read what somebody else wrote."""


ScopeOf = Callable[[TurnId], Awaitable[TurnScope | None]]
"""Looks up what a turn may touch; None: there is no such turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """What is to be remembered. An owner's entry under the same key is superseded by it, which can be undone."""

    owner: MemoryOwner
    key: str
    """A short name; compared without case, odd blanks and compatibility forms."""
    text: str
    kind: MemoryKind = MemoryKind.CORE
    source: MemorySource
    written_by: Identity
    conversation: ConversationId | None = None
    """Where it was said; None: outside any conversation."""
    turn: TurnId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEntry:
    """Something that is remembered."""

    id: int
    owner: MemoryOwner
    key: str
    text: str
    kind: MemoryKind
    source: MemorySource
    written_by: Identity
    conversation: ConversationId | None
    turn: TurnId | None
    created_at: datetime
    superseded_at: datetime | None = None
    """Set on an earlier version, which is kept but never recalled."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """An entry that fits a question."""

    entry: MemoryEntry
    relevance: float
    """From 0 to 1, absolute: it depends on the question and this entry alone, whatever else is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMemory:
    """What became of something that was to be remembered."""

    entry: MemoryEntry
    superseded: MemoryEntry | None = None
    """What stood under this key before."""


class MemoryFullError(ZerobotError):
    """An owner has as many entries as he can have."""

    def __init__(self, owner: MemoryOwner, entries: int) -> None:
        super().__init__(f"{owner} has {entries} memories, which is the bound; forget some first")
        things = "1 thing" if entries == 1 else f"{entries} things"
        self.user_text = f"I remember {things} here already; something has to be forgotten first."


class MemoryBackend(Protocol):
    """Keeps what is remembered. Another one is a package of its own; what it raises must be a `ZerobotError`."""

    async def remember(self, new: NewMemory) -> StoredMemory:
        """Store something; what its owner has under the same key becomes an earlier version of it.

        Raises:
            MemoryFullError: The key is new and the owner has as many entries as he can have.
            ValueError: The key says nothing, or an agent's entry does not come from an operator.
        """
        ...

    async def recall(self, owners: Sequence[MemoryOwner], question: str, limit: int) -> list[Recalled]:
        """The current entries of these owners that fit a question, the most relevant first, the newer of equals first.

        Args:
            owners: Nobody else's entries are looked at; none: nothing is found.
            question: Any text; no character of it has a meaning of its own.
            limit: How many at most.
        """
        ...

    async def list(
        self, owners: Sequence[MemoryOwner], limit: int, *, superseded: bool = False
    ) -> "Sequence[MemoryEntry]":
        """The entries of these owners, the newest first; with their earlier versions, if those are wanted."""
        ...

    async def forget(self, owners: Sequence[MemoryOwner], entry: int) -> MemoryEntry | None:
        """Delete an entry of one of these owners, for good: with all its earlier versions, unless it is one itself.

        Returns:
            What is gone; None: these owners have no such entry.
        """
        ...

    async def forget_key(self, owner: MemoryOwner, key: str) -> MemoryEntry | None:
        """The same by an owner's key."""
        ...

    async def restore(self, owners: Sequence[MemoryOwner], entry: int) -> StoredMemory | None:
        """Let an earlier version be the current one again; what stood in its place is an earlier version now.

        Returns:
            None: these owners have no such earlier version.
        """
        ...

    async def owners(self) -> "Sequence[MemoryOwner]":
        """Everybody who has entries; for operators."""
        ...
