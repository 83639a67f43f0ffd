"""The audit: who asked, what, by which rule, who decided when, what became of it; and nobody changes it afterwards."""

import sqlite3
from datetime import timedelta

import pytest

from tests.store.rows import ANN, NOW, OPERATOR, a_turn, an_approval
from zerobot.core.approvals import ApprovalState
from zerobot.core.ids import CallId
from zerobot.store import approvals
from zerobot.store.audit import Audit, AuditFilter
from zerobot.store.database import Database
from zerobot.store.turns import Turns
from zerobot.testing.clock import ManualClock

CHANGES = {
    "an entry": "UPDATE audit SET actor = 'somebody'",
    "an entry's end": "DELETE FROM audit",
    "what was asked": "UPDATE approvals SET arguments = '{}'",
    "its digest": "UPDATE approvals SET digest = 'x'",
    "the decision": "UPDATE approvals SET state = 'denied'",
    "who decided": "UPDATE approvals SET decided_by = 'pigeon:1'",
    "why": "UPDATE approvals SET reason = 'other'",
    "an approval's end": "DELETE FROM approvals",
}


async def a_decided_approval(database: Database) -> None:
    """A turn whose call was asked for and approved, and one entry beside it."""
    asked = await an_approval(database, await a_turn(database))
    await database.write(
        lambda db: approvals.decide(db, asked.id, ApprovalState.APPROVED, OPERATOR, "Olga", "fine", NOW)
    )


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_what_is_on_record_stays_as_it_was(database: Database, clock: ManualClock, change: str) -> None:
    """The database itself refuses, whoever asks."""
    await a_decided_approval(database)
    await Audit(database, clock).note(str(OPERATOR), "freeze", "tools")
    before = await Audit(database, clock).latest()
    with pytest.raises(sqlite3.IntegrityError):
        await database.write(lambda db: db.execute(change))
    assert await Audit(database, clock).latest() == before


async def test_an_approval_tells_all_of_it(database: Database, clock: ManualClock) -> None:
    """Who asked, the rule, the digest, who decided, the reason, and how the call ended."""
    await a_decided_approval(database)
    (entry,) = await Audit(database, clock).latest()
    assert (entry.actor, entry.action, entry.reason) == (str(OPERATOR), "approval.approved", "fine")
    assert entry.asked_by
    assert entry.rule
    assert entry.digest
    assert entry.outcome == ""
    turns = Turns(database, clock)
    assert await turns.start_call(CallId("c-t1"), "risk")
    assert (await Audit(database, clock).latest())[0].outcome == "started"


async def test_a_call_that_nobody_was_asked_about_is_on_record_with_its_rule(
    database: Database, clock: ManualClock
) -> None:
    """What ran by a grant or a list is told too, and how it ended."""
    turns = Turns(database, clock)
    await a_turn(database)
    await turns.start_call(CallId("c-t1"), "grant")
    (entry,) = await Audit(database, clock).latest()
    assert (entry.action, entry.rule, entry.outcome) == ("tool.ran", "grant", "started")
    await turns.recover()
    assert (await Audit(database, clock).latest())[0].outcome == "INTERRUPTED"


async def test_entries_are_found_by_person_action_and_time(database: Database, clock: ManualClock) -> None:
    """Each filter by itself and together; an action by its beginning, word by word."""
    audit = Audit(database, clock)
    await audit.note(str(OPERATOR), "pair.approve", "pigeon 1")
    clock.jump(60)
    await audit.note(str(ANN), "pair.revoke", "pigeon 1")
    await audit.note(str(ANN), "pairs", "no such thing")

    async def found(**only: object) -> list[str]:
        return [entry.action for entry in await audit.latest(10, AuditFilter(**only))]  # type: ignore[arg-type]

    assert await found(who=str(OPERATOR)) == ["pair.approve"]
    assert await found(action="pair") == ["pair.revoke", "pair.approve"]
    assert await found(action="pair.revoke") == ["pair.revoke"]
    assert await found(since=clock.now() - timedelta(seconds=1)) == ["pairs", "pair.revoke"]
    assert await found(who=str(ANN), action="pair") == ["pair.revoke"]
