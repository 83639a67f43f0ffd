"""A running delivery with a real store, a channel in memory and a clock that stands still."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from zerobot.core.channel import ChannelKind
from zerobot.core.errors import StorageError
from zerobot.core.events import Final, Outcome, StopReason, TurnEvent
from zerobot.core.ids import ConversationId, ReplyId, TurnId
from zerobot.core.places import ConversationKey, Place
from zerobot.delivery.delivery import Delivery
from zerobot.delivery.line import OpenChannel, TurnRef
from zerobot.store import conversations
from zerobot.store.columns import stamp
from zerobot.store.database import Database, T, Transaction, open_database
from zerobot.store.outbox import Outbox, queue_turn_reply
from zerobot.testing.channel import FakeChannel, PlainChannel, fake_kind
from zerobot.testing.clock import ManualClock, loop_settles

ANN = Place("fake", "1")
BEN = Place("fake", "2")


class MortalDatabase(Database):
    """The database of a process that dies between two commits: nothing that would come after them happens."""

    def __init__(self, real: Database) -> None:
        self._real = real
        self._commits_left: int | None = None
        self._refused = 0
        self._changes = 0
        self._under_way = 0

    def dies_after(self, commits: int) -> None:
        """Let so many commits happen from now on."""
        self._commits_left = commits

    def refuses(self, writes: int) -> None:
        """Let the next writes fail, as on a full disk."""
        self._refused = writes

    async def settles(self) -> None:
        """Let everything run that can run without time, transactions included."""
        while True:
            seen = self._changes
            await loop_settles()
            if self._under_way:
                await self._real.write(lambda _: None)
            elif seen == self._changes:
                return

    async def write(self, function: Transaction[T]) -> T:
        """Commit, or never return."""
        if self._commits_left is not None:
            if self._commits_left == 0:
                await asyncio.Event().wait()
            self._commits_left -= 1
        if self._refused:
            self._refused -= 1
            raise StorageError("the disk is full")
        with self._counted():
            return await self._real.write(function)

    async def read(self, function: Transaction[T]) -> T:
        """Read."""
        with self._counted():
            return await self._real.read(function)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._changes += 1
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            self._changes += 1


@dataclass
class House:
    """What a test works with."""

    database: MortalDatabase
    outbox: Outbox
    clock: ManualClock
    channel: PlainChannel
    delivery: Delivery
    events: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    moves: list[tuple[Place, str]] = field(default_factory=list)

    async def turn(self, name: str = "t1", place: Place = ANN) -> TurnRef:
        """A running turn."""

        def transaction(db: sqlite3.Connection) -> ConversationId:
            conversation = conversations.ensure(db, ConversationKey(place), direct=True, now=self.clock.now())
            db.execute("UPDATE turns SET state = 'finished' WHERE conversation_id = ?", (conversation,))
            db.execute(
                "INSERT INTO turns (id, conversation_id, epoch, origin, asker, asker_name, reply_to, state, started_at)"
                " VALUES (?, ?, 0, 'user', 'fake:1', 'Ann', 'q1', 'running', ?)",
                (name, conversation, stamp(self.clock.now())),
            )
            return conversation

        conversation = await self.database.write(transaction)
        return TurnRef(turn=TurnId(name), conversation=conversation, place=place, reply_to="q1")

    async def queue(self, ref: TurnRef, text: str, *, paused: bool = False) -> ReplyId:
        """What the engine's last transaction of a turn does to the outbox."""

        def transaction(db: sqlite3.Connection) -> ReplyId:
            db.execute("UPDATE turns SET state = ? WHERE id = ?", ("paused" if paused else "finished", ref.turn))
            return queue_turn_reply(db, ref.turn, ref.conversation, ref.place, ref.reply_to, text, self.clock.now())

        return await self.database.write(transaction)

    async def finish(self, ref: TurnRef, view: Callable[[TurnEvent], None], text: str) -> None:
        """End a turn as the engine does: commit, then the final."""
        await self.queue(ref, text)
        view(final(ref, text))

    async def say(self, text: str, name: str = "t1", place: Place = ANN) -> TurnRef:
        """A turn without any draft: its reply is queued and delivery told."""
        ref = await self.turn(name, place)
        await self.queue(ref, text)
        self.delivery.settle(ref.turn)
        return ref

    def log(self, event: str, /, *, level: str = "info", error: BaseException | None = None, **fields: object) -> None:
        """Keep an event."""
        self.events.append((event, fields | {"error": error}))

    def logged(self, event: str) -> list[dict[str, object]]:
        """The fields of all events of a name."""
        return [fields for name, fields in self.events if name == event]


def final(ref: TurnRef, text: str) -> Final:
    """The end of a turn."""
    return Final(turn=ref.turn, text=text, reason=StopReason.DONE, outcome=Outcome.REPLIED, steps=1)


class Houses:
    """Opens houses on one store, one after another, as a daemon that is started again."""

    def __init__(self, path: Path, clock: ManualClock) -> None:
        self.path = path
        self.clock = clock

    @asynccontextmanager
    async def open(
        self,
        channel: PlainChannel | None = None,
        *,
        kind: ChannelKind | None = None,
        drafts: bool = True,
        notice_after: float | None = None,
    ) -> AsyncIterator[House]:
        """A running house; leaving it is as abrupt as a kill for all that is under way."""
        channel = channel or FakeChannel(self.clock)
        async with open_database(self.path) as real:
            database = MortalDatabase(real)

            self.clock.settle_with(database.settles)
            outbox = Outbox(database, self.clock)
            house: House

            def log(event: str, /, **fields: object) -> None:
                house.log(event, **fields)  # type: ignore[arg-type]

            async def moved(place: Place, chat: str) -> None:
                house.moves.append((place, chat))

            opened = OpenChannel(
                name="fake", channel=channel, kind=kind or fake_kind(), drafts=drafts, notice_after=notice_after
            )
            delivery = Delivery({"fake": opened}, outbox, self.clock, log, moved, jitter=lambda longest: longest)
            house = House(database, outbox, self.clock, channel, delivery)
            task = asyncio.create_task(delivery.run())
            await self.clock.settle()
            try:
                yield house
            finally:
                task.cancel()
                await asyncio.wait((task,))
                if not task.cancelled():
                    task.result()
