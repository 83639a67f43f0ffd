"""People who talk to the bot: turns as the store has them, and what is remembered for whom."""

import sqlite3
from datetime import UTC, datetime
from itertools import count

from zerobot.core.envelope import TurnOrigin
from zerobot.core.ids import ConversationId, TurnId
from zerobot.core.memory import (
    MemoryEntry,
    MemoryKind,
    MemoryOwner,
    MemorySource,
    NewMemory,
    Recalled,
    ScopeOf,
    TurnScope,
)
from zerobot.core.places import ConversationKey, Identity, Place
from zerobot.store import conversations
from zerobot.store.columns import stamp
from zerobot.store.database import Database
from zerobot.store.memory import turn_scopes

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
ANN = Identity("pigeon", "1001")
BOB = Identity("pigeon", "2002")
ANNS_CHAT = Place("pigeon", "1001")
BOBS_CHAT = Place("pigeon", "2002")
GROUP = Place("pigeon", "-77")
AGENT = MemoryOwner.agent("default")


class People:
    """Who says what where."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._numbers = count(1)

    @property
    def scope_of(self) -> ScopeOf:
        """What a turn may touch, as the store knows it."""
        return turn_scopes(self._database, lambda _channel: "default")

    async def conversation(self, place: Place) -> ConversationId:
        """The conversation in a place; a group's chat is the one with the negative id."""
        key, direct = ConversationKey(place), not place.chat.startswith("-")
        return await self._database.write(lambda db: conversations.ensure(db, key, direct, NOW))

    async def owner(self, place: Place) -> MemoryOwner:
        """A conversation as an owner."""
        return MemoryOwner.conversation(await self.conversation(place))

    async def turn(
        self,
        asker: Identity,
        place: Place,
        *,
        origin: TurnOrigin = TurnOrigin.USER,
        outside_content: bool = False,
    ) -> TurnId:
        """A finished turn that somebody asked for in a place."""
        conversation, turn = await self.conversation(place), TurnId(f"t{next(self._numbers)}")

        def transaction(db: sqlite3.Connection) -> TurnId:
            db.execute(
                "INSERT INTO turns (id, conversation_id, epoch, origin, asker, asker_name, reply_to, state,"
                " outside_content, started_at) VALUES (?, ?, 0, ?, ?, '', '', 'finished', ?, ?)",
                (turn, conversation, origin, str(asker), outside_content, stamp(NOW)),
            )
            return turn

        return await self._database.write(transaction)

    async def scope(self, asker: Identity, place: Place, *, origin: TurnOrigin = TurnOrigin.USER) -> TurnScope:
        """What a new turn may touch."""
        scope = await self.scope_of(await self.turn(asker, place, origin=origin))
        assert scope is not None
        return scope


def new(
    owner: MemoryOwner,
    key: str,
    text: str,
    *,
    kind: MemoryKind = MemoryKind.CORE,
    source: MemorySource | None = None,
    turn: TurnId | None = None,
) -> NewMemory:
    """Something to remember; what belongs to an agent comes from an operator."""
    said = MemorySource.OPERATOR if owner == AGENT else MemorySource.SAID
    return NewMemory(owner=owner, key=key, text=text, kind=kind, source=source or said, written_by=ANN, turn=turn)


def entry(
    text: str = "she likes tea",
    *,
    ident: int = 1,
    key: str = "drink",
    kind: MemoryKind = MemoryKind.CORE,
    source: MemorySource = MemorySource.SAID,
    created_at: datetime = NOW,
    turn: TurnId | None = None,
) -> MemoryEntry:
    """An entry of Ann's, as a backend returns it."""
    return MemoryEntry(
        id=ident,
        owner=MemoryOwner.person(ANN),
        key=key,
        text=text,
        kind=kind,
        source=source,
        written_by=ANN,
        conversation=None,
        turn=turn,
        created_at=created_at,
    )


def recalled(text: str = "she likes tea", relevance: float = 0.75, *, ident: int = 1, key: str = "drink") -> Recalled:
    """An entry that fits."""
    return Recalled(entry(text, ident=ident, key=key), relevance)
