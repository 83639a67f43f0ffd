"""An approval is decided once, in time, whoever presses when; prompts are shown and settled."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from tests.store.rows import ANN, BOB, NOW, OPERATOR, PLACE, a_turn, an_approval
from zerobot.core.approvals import Approval, ApprovalState, Withdrawal
from zerobot.core.ids import ApprovalId, TurnId
from zerobot.core.places import Identity, Place
from zerobot.store.approvals import Approvals, Decided, PromptState, cancel_open, of_turn
from zerobot.store.database import Database, open_database
from zerobot.testing.clock import ManualClock

APPROVED, DENIED = ApprovalState.APPROVED, ApprovalState.DENIED
SOON = NOW + timedelta(minutes=5)


@pytest.fixture
def approvals(database: Database, clock: ManualClock) -> Approvals:
    return Approvals(database, clock)


@pytest.fixture
async def turn(database: Database) -> TurnId:
    return await a_turn(database)


@pytest.fixture
async def approval(database: Database, turn: TurnId) -> Approval:
    return await an_approval(database, turn)


async def approve(approvals: Approvals, approval: Approval) -> Decided:
    decided = await approvals.decide(approval.id, APPROVED, OPERATOR, "Olga", "", SOON)
    assert decided is not None
    return decided


async def test_an_approval_is_read_as_it_was_written(approvals: Approvals, approval: Approval) -> None:
    """Every field survives, the arguments to the last odd character; only a half character of a name is mended."""
    found = await approvals.get(approval.id)
    assert found is not None
    assert found.arguments == approval.arguments
    assert list(found.arguments) == list(approval.arguments)
    assert found.asker_name == "Ann \ufffd"
    assert found.requested_at == approval.requested_at
    assert (found.state, found.place, found.asker) == (ApprovalState.PENDING, PLACE, ANN)


async def test_the_first_decision_counts(approvals: Approvals, approval: Approval) -> None:
    """Who comes second learns who was first, and changes nothing."""
    first = await approvals.decide(approval.id, DENIED, OPERATOR, "Olga", "not today", SOON)
    second = await approvals.decide(approval.id, APPROVED, BOB, "Bob", "", SOON + timedelta(seconds=1))
    assert first is not None
    assert second is not None
    assert (first.won, second.won) == (True, False)
    assert second.approval == first.approval
    assert second.approval.state is DENIED
    assert second.approval.reason == "not today"
    assert (second.approval.decided_by, second.approval.decided_by_name) == (OPERATOR, "Olga")
    assert second.approval.decided_at == SOON


async def test_of_many_exactly_one_wins(database: Database, path: Path, clock: ManualClock, turn: TurnId) -> None:
    """Two processes and many presses: one decision, and all are told the same one."""
    approval = await an_approval(database, turn)
    async with open_database(path) as other:
        desks = [Approvals(database, clock), Approvals(other, clock)] * 10
        states = [APPROVED, DENIED, DENIED, APPROVED] * 5
        async with asyncio.TaskGroup() as group:
            presses = [
                group.create_task(desk.decide(approval.id, state, OPERATOR, f"n{number}", "", SOON))
                for number, (desk, state) in enumerate(zip(desks, states, strict=True))
            ]
    results = [press.result() for press in presses]
    assert [result is not None and result.won for result in results].count(True) == 1
    assert len({result.approval.decided_by_name for result in results if result}) == 1


async def test_a_decision_too_late_is_none(approvals: Approvals, approval: Approval) -> None:
    """The stored time counts, to the moment, whether or not anybody has noted the expiry."""
    late = await approvals.decide(approval.id, APPROVED, OPERATOR, "Olga", "", approval.expires_at)
    assert late is not None
    assert not late.won
    assert late.approval.state is ApprovalState.PENDING
    in_time = await approvals.decide(
        approval.id, APPROVED, OPERATOR, "Olga", "", approval.expires_at - timedelta(microseconds=1)
    )
    assert in_time is not None
    assert in_time.won


async def test_an_unknown_id_decides_nothing(approvals: Approvals) -> None:
    """An invented id is told apart from a lost race."""
    assert await approvals.decide(ApprovalId("nope"), APPROVED, OPERATOR, "", "", SOON) is None


async def test_a_turn_goes_on_when_all_are_decided(approvals: Approvals, database: Database, turn: TurnId) -> None:
    """Only the last decision of a turn says so; other turns don't matter."""
    other = await a_turn(database, "t2", place=Place("pigeon", "43"))
    await an_approval(database, other, place=Place("pigeon", "43"))
    one, two = [await an_approval(database, turn) for _ in range(2)]
    assert not (await approve(approvals, one)).all_decided
    assert (await approve(approvals, two)).all_decided


async def test_what_is_due_expires_once(approvals: Approvals, database: Database, turn: TurnId) -> None:
    """Expiry ends what is pending and over, also long after; the rest stays, and nothing expires twice."""
    late = await an_approval(database, turn, minutes=20)
    due = await an_approval(database, turn, minutes=10)
    decided = await an_approval(database, turn, minutes=10)
    await approve(approvals, decided)
    assert await approvals.next_expiry() == NOW + timedelta(minutes=10)
    at = NOW + timedelta(minutes=10)
    expired = await approvals.expire_due(at)
    assert [each.id for each in expired] == [due.id]
    assert expired[0].state is ApprovalState.EXPIRED
    assert await approvals.expire_due(at) == []
    assert [each.id for each in await approvals.pending()] == [late.id]
    lost = await approvals.decide(due.id, APPROVED, OPERATOR, "", "", SOON)
    assert lost is not None
    assert not lost.won


async def test_a_superseded_turn_withdraws_what_is_open(approvals: Approvals, database: Database, turn: TurnId) -> None:
    """Cancelling ends pending approvals only, and a press after it is lost."""
    open_one, decided = [await an_approval(database, turn) for _ in range(2)]
    await approve(approvals, decided)
    cancelled = await database.write(lambda db: cancel_open(db, turn, Withdrawal.SUPERSEDED, SOON))
    assert cancelled == [open_one.id]
    lost = await approvals.decide(open_one.id, APPROVED, OPERATOR, "", "", SOON)
    assert lost is not None
    assert (lost.won, lost.approval.state, lost.approval.reason) == (False, ApprovalState.CANCELLED, "superseded")


async def test_approvals_are_found_by_turn_and_code(approvals: Approvals, database: Database, turn: TurnId) -> None:
    """A turn's in their order, a code in any case and with blanks around."""
    first = await an_approval(database, turn, code="BCDFGH")
    second = await an_approval(database, turn)
    assert [each.id for each in await database.read(lambda db: of_turn(db, turn))] == [first.id, second.id]
    found = await approvals.by_code(" bcdfgh ")
    assert found is not None
    assert found.id == first.id
    assert await approvals.by_code("ZZZZZZ") is None
    assert await approvals.by_code("\ud800") is None


async def test_two_approvals_never_share_a_code(database: Database, turn: TurnId) -> None:
    """A code that is taken is replaced by a free one of the same length."""
    first = await an_approval(database, turn, code="BCDFGH")
    second = await an_approval(database, turn, code="BCDFGH")
    assert first.code == "BCDFGH"
    assert second.code != "BCDFGH"
    assert len(second.code) == 6


async def test_a_prompt_is_one_a_place(approvals: Approvals, approval: Approval) -> None:
    """Asked for again, the same prompt is meant."""
    first = await approvals.add_prompt(approval.id, PLACE)
    assert await approvals.add_prompt(approval.id, PLACE) == first
    other = await approvals.add_prompt(approval.id, Place("pigeon", "42", "topic"))
    assert await approvals.prompts_of(approval.id) == [first, other]


async def test_a_restart_shows_what_is_not_known_to_be_shown(approvals: Approvals, approval: Approval) -> None:
    """Queued, sending and failed prompts are shown again while the approval is pending; sent ones are not."""
    queued, sending, failed, sent = [
        await approvals.add_prompt(approval.id, Place("pigeon", str(chat))) for chat in range(4)
    ]
    for prompt in (sending, failed, sent):
        await approvals.prompt_sending(prompt.id)
    await approvals.prompt_failed(failed.id)
    await approvals.prompt_sent(sent.id, "p9")
    assert [(prompt.id, prompt.state) for prompt in await approvals.unshown()] == [
        (queued.id, PromptState.QUEUED),
        (sending.id, PromptState.SENDING),
        (failed.id, PromptState.FAILED),
    ]
    await approve(approvals, approval)
    assert await approvals.unshown() == []


async def test_a_decided_prompt_is_settled_once(approvals: Approvals, approval: Approval) -> None:
    """Until its message shows the decision, a sent prompt is to be settled, also after a crash in between."""
    prompt = await approvals.add_prompt(approval.id, PLACE)
    await approvals.prompt_sent(prompt.id, "p9")
    assert await approvals.unsettled() == []
    await approve(approvals, approval)
    assert [each.platform_id for each in await approvals.unsettled()] == ["p9"]
    await approvals.prompt_settled(prompt.id)
    assert await approvals.unsettled() == []


async def test_an_approval_counts_as_shown_from_its_first_prompt(
    approvals: Approvals, approval: Approval, database: Database, clock: ManualClock
) -> None:
    """The time at which the first operator could see it is on record, and stays."""

    async def shown_at() -> str | None:
        sql = "SELECT shown_at FROM approvals WHERE id = ?"
        row = await database.read(lambda db: db.execute(sql, (approval.id,)).fetchone())
        return None if row[0] is None else str(row[0])

    one, two = [await approvals.add_prompt(approval.id, Place("pigeon", chat)) for chat in ("1", "2")]
    await approvals.prompt_sending(one.id)
    assert await shown_at() is None
    await approvals.prompt_sent(one.id, "p1")
    first = await shown_at()
    clock.jump(30)
    await approvals.prompt_sent(two.id, "p2")
    assert first is not None
    assert await shown_at() == first


async def test_five_wrong_codes_lock_their_sender_for_a_while(approvals: Approvals) -> None:
    """The lock is one person's, is not made longer by tries made meanwhile, and ends."""
    for _ in range(4):
        await approvals.wrong_code(ANN, NOW)
    assert not await approvals.code_locked(ANN, NOW)
    await approvals.wrong_code(ANN, NOW + timedelta(minutes=1))
    for minutes in (1, 2, 3, 13, 14):
        assert await approvals.code_locked(ANN, NOW + timedelta(minutes=minutes))
        await approvals.wrong_code(ANN, NOW + timedelta(minutes=minutes))
    assert not await approvals.code_locked(BOB, NOW + timedelta(minutes=1))
    assert not await approvals.code_locked(ANN, NOW + timedelta(minutes=15))


async def test_thirty_wrong_codes_an_hour_lock_everybody(approvals: Approvals) -> None:
    """Many senders don't get more tries than a few; the next hour is a new one."""
    for number in range(30):
        await approvals.wrong_code(Identity("pigeon", f"guesser{number}"), NOW)
    assert await approvals.code_locked(OPERATOR, NOW + timedelta(minutes=59))
    assert not await approvals.code_locked(OPERATOR, NOW + timedelta(hours=1))
