"""The block for a turn's input, from a real database."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.memory.people import AGENT, ANN, ANNS_CHAT, BOB, BOBS_CHAT, GROUP, People, entry, new
from zerobot.core.envelope import TurnOrigin
from zerobot.core.errors import StorageError
from zerobot.core.ids import TurnId
from zerobot.core.log import Level
from zerobot.core.memory import MemoryOwner, MemorySource, Recalled
from zerobot.memory.block import NO_BLOCK
from zerobot.memory.recall import Recall
from zerobot.store.database import Database
from zerobot.store.memory import SqliteMemory
from zerobot.testing.clock import ManualClock

SECRET = "the tea house in Vienna"


class Log:
    """Keeps the names of events."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def __call__(
        self, event: str, /, *, level: Level = "info", error: BaseException | None = None, **fields: object
    ) -> None:
        self.events.append(event)


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def recall(memory: SqliteMemory, people: People, clock: ManualClock, log: Log) -> Recall:
    return Recall(memory, people.scope_of, clock, log)


async def test_what_fits_is_put_before_the_message(
    recall: Recall, memory: SqliteMemory, people: People, log: Log
) -> None:
    """A person's own entry comes back in their direct chat, in another turn."""
    stored = await memory.remember(new(MemoryOwner.person(ANN), "favourite drink", "she likes tea"))
    made = await recall.block(await people.turn(ANN, ANNS_CHAT), "What drink do I like best?")
    assert made.entries == (stored.entry.id,)
    assert "- favourite drink: she likes tea" in made.text
    assert log.events == ["memory.recalled"]


async def test_a_message_that_asks_for_nothing_known_gets_nothing(
    recall: Recall, memory: SqliteMemory, people: People
) -> None:
    """Common words find nothing."""
    await memory.remember(new(MemoryOwner.person(ANN), "favourite drink", "she likes tea and has it with milk"))
    turn = await people.turn(ANN, ANNS_CHAT)
    for message in ("", "and what is it with you?", "Compile the kernel", '" OR *', "((("):
        assert await recall.block(turn, message) == NO_BLOCK


async def test_an_irrelevant_entry_does_not_evict_a_relevant_one(
    recall: Recall, memory: SqliteMemory, people: People
) -> None:
    """Neither alone nor in number, nor when it shares a word with the question."""
    mine = MemoryOwner.person(ANN)
    wanted = (await memory.remember(new(mine, "birthday of mother", "3 May"))).entry
    turn = await people.turn(ANN, ANNS_CHAT)
    question = "When is the birthday of my mother again?"
    before = await recall.block(turn, question)
    for n in range(40):
        await memory.remember(new(mine, f"birthday {n}", f"colleague {n} has a party"))
    after = await recall.block(turn, question)
    assert before.entries == (wanted.id,)
    assert after.entries[0] == wanted.id


async def leak(memory: SqliteMemory, people: People) -> None:
    """The same fact for each owner but Bob's chat, so that whoever leaks is seen to."""
    owners = [MemoryOwner.person(ANN), await people.owner(ANNS_CHAT), await people.owner(GROUP)]
    for number, owner in enumerate(owners):
        await memory.remember(new(owner, f"tea house {number}", SECRET))


@pytest.mark.parametrize(
    ("asker", "place", "origin", "keys"),
    [
        (ANN, ANNS_CHAT, TurnOrigin.USER, {"tea house 0", "tea house 1"}),
        (ANN, GROUP, TurnOrigin.USER, {"tea house 2"}),
        (BOB, GROUP, TurnOrigin.USER, {"tea house 2"}),
        (BOB, BOBS_CHAT, TurnOrigin.USER, set()),
        (ANN, ANNS_CHAT, TurnOrigin.SCHEDULE, {"tea house 0"}),
        (ANN, BOBS_CHAT, TurnOrigin.SCHEDULE, set()),
        (ANN, GROUP, TurnOrigin.SCHEDULE, set()),
        (ANN, ANNS_CHAT, TurnOrigin.DAEMON, {"tea house 0"}),
        (ANN, ANNS_CHAT, TurnOrigin.NESTED, set()),
    ],
)
async def test_a_block_holds_only_what_its_readers_may_know(
    recall: Recall,
    memory: SqliteMemory,
    people: People,
    asker: object,
    place: object,
    origin: TurnOrigin,
    keys: set[str],
) -> None:
    """Person, conversation and origin decide, on every path into a message."""
    await leak(memory, people)
    await people.turn(ANN, ANNS_CHAT)
    await people.turn(BOB, BOBS_CHAT)
    turn = await people.turn(asker, place, origin=origin)  # type: ignore[arg-type]
    text = (await recall.block(turn, "where is the tea house?")).text
    assert {f"tea house {n}" for n in range(3) if f"tea house {n}" in text} == keys


async def test_what_operators_wrote_reaches_everybody(recall: Recall, memory: SqliteMemory, people: People) -> None:
    """In each chat of the agent."""
    await memory.remember(new(AGENT, "opening hours", "nine to five"))
    for asker, place in ((ANN, ANNS_CHAT), (BOB, GROUP)):
        assert "nine to five" in (await recall.block(await people.turn(asker, place), "opening hours?")).text


async def test_uses_memory_off_gets_nothing(recall: Recall, memory: SqliteMemory, people: People) -> None:
    """A schedule may do without."""
    await memory.remember(new(AGENT, "opening hours", "nine to five"))
    turn = await people.turn(ANN, ANNS_CHAT)
    assert await recall.block(turn, "opening hours", uses_memory=False) == NO_BLOCK


async def test_a_turn_does_not_recall_itself(recall: Recall, memory: SqliteMemory, people: People) -> None:
    """What it remembered before it was asked again comes back in the next turn only."""
    turn = await people.turn(ANN, ANNS_CHAT)
    message = "please note that my tea house is in Vienna"
    await memory.remember(new(MemoryOwner.person(ANN), "tea house", message, turn=turn))
    await memory.remember(new(MemoryOwner.person(ANN), "tea house address", "Vienna", turn=turn))
    assert await recall.block(turn, message) == NO_BLOCK
    next_turn = await people.turn(ANN, ANNS_CHAT)
    assert "- tea house address: Vienna" in (await recall.block(next_turn, message)).text
    assert message not in (await recall.block(next_turn, message)).text


async def test_outside_content_is_carried_along(recall: Recall, memory: SqliteMemory, people: People) -> None:
    """A fact that was noted while a web page was read taints the turn that recalls it."""
    await memory.remember(new(MemoryOwner.person(ANN), "tea house", "send it all", source=MemorySource.CONTENT))
    assert (await recall.block(await people.turn(ANN, ANNS_CHAT), "the tea house?")).outside_content


async def test_an_unknown_turn_gets_nothing(recall: Recall) -> None:
    """It has no owners."""
    assert await recall.block(TurnId("none"), "tea") == NO_BLOCK


class Faulty(SqliteMemory):
    """A backend that breaks in the way that it is told."""

    def __init__(self, database: Database, clock: ManualClock, fault: Exception | None) -> None:
        super().__init__(database, clock)
        self._fault = fault

    async def recall(self, owners: Sequence[MemoryOwner], question: str, limit: int) -> list[Recalled]:
        if self._fault is not None:
            raise self._fault
        await asyncio.get_running_loop().create_future()
        raise AssertionError


@pytest.mark.parametrize("fault", [StorageError("broken"), RuntimeError("a bug of a package"), None])
async def test_without_a_backend_the_turn_goes_on(
    database: Database, clock: ManualClock, people: People, log: Log, fault: Exception | None
) -> None:
    """One that fails, has a bug, or never answers: nothing is recalled, and the log says so."""
    recall = Recall(Faulty(database, clock, fault), people.scope_of, clock, log, patience=0.01)
    assert await recall.block(await people.turn(ANN, ANNS_CHAT), "tea") == NO_BLOCK
    assert log.events == ["memory.failed"]


class Leaky(SqliteMemory):
    """A backend that answers with anybody's entries."""

    async def recall(self, owners: Sequence[MemoryOwner], question: str, limit: int) -> list[Recalled]:
        return [Recalled(entry(SECRET), 1.0)]


async def test_a_leaky_backend_leaks_nothing(database: Database, clock: ManualClock, people: People, log: Log) -> None:
    """What it offers of other owners is left out."""
    recall = Recall(Leaky(database, clock), people.scope_of, clock, log)
    assert await recall.block(await people.turn(BOB, BOBS_CHAT), "tea") == NO_BLOCK
    assert SECRET in (await recall.block(await people.turn(ANN, ANNS_CHAT), "tea")).text
