"""What operators do from the shell."""

import json

import pytest

from tests.memory.people import AGENT, ANN, BOB, People, new
from zerobot.core.memory import MemoryOwner
from zerobot.core.places import Identity
from zerobot.memory.operations import MemoryOperationError, MemoryOperations
from zerobot.store.audit import Audit
from zerobot.store.database import Database
from zerobot.store.memory import SqliteMemory
from zerobot.testing.clock import ManualClock

SHELL = Identity("cli", "local")


@pytest.fixture
def audit(database: Database, clock: ManualClock) -> Audit:
    return Audit(database, clock)


@pytest.fixture
def operations(memory: SqliteMemory, audit: Audit) -> MemoryOperations:
    return MemoryOperations(backend=memory, audit=audit)


async def test_an_operator_lists_everything_or_one_owner(operations: MemoryOperations, memory: SqliteMemory) -> None:
    """As plain values, the newest first; so it is also the export."""
    await memory.remember(new(MemoryOwner.person(ANN), "drink", "tea"))
    await memory.remember(new(MemoryOwner.person(BOB), "drink", "coffee"))
    listed = await operations.list()
    assert [(row["owner"], row["text"]) for row in listed] == [
        ("person:pigeon:2002", "coffee"),
        ("person:pigeon:1001", "tea"),
    ]
    assert [row["text"] for row in await operations.list("person:pigeon:1001")] == ["tea"]
    assert json.loads(json.dumps(listed)) == listed


async def test_an_operator_searches(operations: MemoryOperations, memory: SqliteMemory) -> None:
    """Everybody's entries, with how well each fits."""
    await memory.remember(new(MemoryOwner.person(ANN), "drink", "green tea"))
    await memory.remember(new(MemoryOwner.person(BOB), "food", "green apples"))
    found = await operations.search("green tea")
    assert [(row["text"], row["relevance"]) for row in found] == [("green tea", 0.75), ("green apples", 0.5)]
    assert [row["text"] for row in await operations.search("green", "person:pigeon:2002")] == ["green apples"]


async def test_forgetting_is_for_good_and_on_record(
    operations: MemoryOperations, memory: SqliteMemory, audit: Audit
) -> None:
    """With the earlier versions; the record says whose it was, not what it said."""
    mine = MemoryOwner.person(ANN)
    await memory.remember(new(mine, "drink", "tea"))
    ident = (await memory.remember(new(mine, "drink", "coffee"))).entry.id
    await operations.forget(ident, SHELL)
    assert await operations.list(superseded=True) == []
    (noted,) = await audit.latest()
    assert (noted.actor, noted.action, noted.subject) == (
        "cli:local",
        "memory.forget",
        f"{ident} of person:pigeon:1001",
    )
    with pytest.raises(MemoryOperationError, match="no memory"):
        await operations.forget(ident, SHELL)


async def test_a_correction_is_undone(operations: MemoryOperations, memory: SqliteMemory) -> None:
    """The earlier version counts again; the later one is kept as the earlier one."""
    mine = MemoryOwner.person(ANN)
    first = (await memory.remember(new(mine, "drink", "tea"))).entry
    second = (await memory.remember(new(mine, "drink", "coffee"))).entry
    assert (await operations.restore(first.id, SHELL))["text"] == "tea"
    assert [row["text"] for row in await operations.list()] == ["tea"]
    with pytest.raises(MemoryOperationError, match="no earlier version"):
        await operations.restore(first.id, SHELL)
    assert (await operations.restore(second.id, SHELL))["text"] == "coffee"


async def test_only_an_operator_writes_for_all(operations: MemoryOperations, people: People) -> None:
    """What the shell adds to an agent is read by everybody who talks to it."""
    await operations.add(str(AGENT), "opening hours", "nine to five", SHELL)
    (row,) = await operations.list("agent:default")
    assert (row["source"], row["by"]) == ("operator", "cli:local")


@pytest.mark.parametrize(
    ("owner", "key", "text"),
    [("everybody", "a", "b"), ("agent:default", " ", "b"), ("agent:default", "a", ""), ("agent:default", "a", "<|x|>")],
)
async def test_what_cannot_be_stored_is_refused(operations: MemoryOperations, owner: str, key: str, text: str) -> None:
    """With a sentence for the person who asked."""
    with pytest.raises(MemoryOperationError):
        await operations.add(owner, key, text, SHELL)
    assert await operations.list() == []


async def test_no_owner_is_a_fault_of_the_asker(operations: MemoryOperations) -> None:
    """A mistyped owner is not an empty list."""
    with pytest.raises(MemoryOperationError, match="no owner"):
        await operations.list("ann")
