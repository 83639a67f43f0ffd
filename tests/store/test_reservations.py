"""What is kept for model calls: how much, for whom, and what becomes of it."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from tests.store.rows import ANN, BOB, NOW
from zerobot.core.budget import Payer, Scope
from zerobot.core.ids import ConversationId, ReservationId, TurnId
from zerobot.core.usage import Usage
from zerobot.store.database import Database
from zerobot.store.reservations import Knowledge, Reservations, Spending, Wanted, share
from zerobot.store.turn_rows import AttemptUsage
from zerobot.store.usage import record, record_left
from zerobot.testing.clock import ManualClock

PAYER = Payer(turn=TurnId("t1"), conversation=ConversationId(1), channel="pigeon", asker=ANN)
LIMITS = {Scope.TURN: Decimal(4), Scope.USER: Decimal(6), Scope.DAY: Decimal(10)}
DOLLARS = st.decimals(min_value=0, max_value=100, places=6)


def a_dollar_a_token(model: str, usage: Usage) -> Decimal | None:
    """The price in these tests; that of other models is not known."""
    return Decimal(usage.output_tokens) if model == "main/test" else None


def reservations(database: Database, clock: ManualClock) -> Reservations:
    return Reservations(database, clock, a_dollar_a_token, LIMITS)


def wish(name: str, most: float, least: float = 0, payer: Payer = PAYER) -> Wanted:
    return Wanted(
        id=ReservationId(name),
        payer=payer,
        model="main/test",
        purpose="step",
        most=Decimal(str(most)),
        least=Decimal(str(least or most)),
    )


def made(name: str | None, tokens: int | None, model: str = "main/test") -> AttemptUsage:
    """A call that was made with a reservation; None tokens: nobody knows how many."""
    return AttemptUsage(
        model=model,
        purpose="step",
        failed=False,
        usage=None if tokens is None else Usage(output_tokens=tokens),
        reservation=None if name is None else ReservationId(name),
    )


async def spent(reservations: Reservations, payer: Payer = PAYER, knowledge: Knowledge | None = None) -> list[Decimal]:
    """What is spent, by the limits in their order."""
    return [each.spent for each in await reservations.spendings(payer, knowledge or Knowledge())]


async def test_what_is_kept_is_gone_for_the_next_one(database: Database, clock: ManualClock) -> None:
    """Of each limit that it belongs to; when the call is recorded, what it took counts in its place."""
    bank = reservations(database, clock)
    assert (await bank.reserve(wish("r1", 3), Knowledge())).amount == 3
    assert await spent(bank) == [3, 3, 3]
    assert (await bank.reserve(wish("r2", 2), Knowledge())).amount is None
    await database.write(lambda db: record(db, PAYER, [made("r1", 1)], NOW))
    assert await spent(bank) == [1, 1, 1]
    assert (await bank.reserve(wish("r2", 2), Knowledge())).amount == 2


async def test_each_limit_sums_up_its_own(database: Database, clock: ManualClock) -> None:
    """Another turn has a limit of its own, another person too, and everybody shares the day."""
    bank = reservations(database, clock)
    await database.write(lambda db: record(db, PAYER, [made(None, 3)], NOW))
    other_turn, other_person = replace(PAYER, turn=TurnId("t2")), replace(PAYER, turn=TurnId("t3"), asker=BOB)
    assert await spent(bank) == [3, 3, 3]
    assert await spent(bank, other_turn) == [0, 3, 3]
    assert await spent(bank, other_person) == [0, 0, 3]
    assert await spent(bank, replace(PAYER, turn=TurnId(""))) == [3, 3]


async def test_a_day_ends_at_midnight_in_utc_and_a_turn_does_not(database: Database, clock: ManualClock) -> None:
    """What a turn spent yesterday still counts for it today."""
    bank = reservations(database, clock)
    await database.write(lambda db: record(db, PAYER, [made(None, 3)], NOW))
    clock.jump(timedelta(hours=15).total_seconds() - 1)
    assert await spent(bank) == [3, 3, 3]
    clock.jump(1)
    assert await spent(bank) == [3, 0, 0]


async def test_a_call_whose_tokens_nobody_knows_counts_as_what_was_kept(database: Database, clock: ManualClock) -> None:
    """And it is set free only once, whatever is recorded with the same id again."""
    bank = reservations(database, clock)
    await bank.reserve(wish("r1", 2.5), Knowledge())
    await database.write(lambda db: record(db, PAYER, [made("r1", None)], NOW))
    await database.write(lambda db: record(db, PAYER, [made("r1", None)], NOW))
    assert await spent(bank) == [Decimal("2.5")] * 3


async def test_what_a_dead_process_left_is_spent(database: Database, clock: ManualClock) -> None:
    """It becomes a failed call on the day on which it was made; a second start finds nothing more."""
    bank = reservations(database, clock)
    await bank.reserve(wish("r1", 2.5), Knowledge())
    clock.jump(24 * 3600)
    await database.write(record_left)
    await database.write(record_left)
    assert await spent(bank) == [Decimal("2.5"), 0, 0]
    row = await database.read(
        lambda db: tuple(db.execute("SELECT turn_id, failed, reported FROM model_calls").fetchone())
    )
    assert row == ("t1", 1, 0)


async def test_what_the_process_knows_counts_before_it_is_stored(database: Database, clock: ManualClock) -> None:
    """A call under way may give something back, one that has ended took what it took, one that was not made nothing."""
    bank = reservations(database, clock)
    await bank.reserve(wish("r1", 2), Knowledge())
    await bank.reserve(wish("r2", 2), Knowledge())
    known = Knowledge(live={ReservationId("r1")}, ended={ReservationId("r2"): Decimal("0.5")})
    assert [(each.spent, each.under_way) for each in await bank.spendings(PAYER, known)] == [
        (Decimal("0.5"), Decimal(2))
    ] * 3
    reserved = await bank.reserve(wish("r3", 1), Knowledge(void={ReservationId("r1"), ReservationId("r2")}))
    assert (reserved.amount, reserved.known) == (Decimal(1), {ReservationId("r3")})


async def test_a_model_without_a_price_adds_nothing_that_was_not_kept(database: Database, clock: ManualClock) -> None:
    """Such calls can only be older than the limit: under a limit the model is not asked."""
    bank = reservations(database, clock)
    await database.write(lambda db: record(db, PAYER, [made(None, 50, model="main/unknown")], NOW))
    assert await spent(bank) == [0, 0, 0]


def spending(scope: Scope, spent: Decimal, under_way: Decimal) -> Spending:
    return Spending(scope=scope, limit=LIMITS[scope], spent=spent, under_way=under_way)


@given(
    amounts=st.lists(st.tuples(st.sampled_from(Scope), DOLLARS, DOLLARS), max_size=3),
    most=DOLLARS,
    part=st.decimals(min_value=0, max_value=1, places=2),
)
def test_nobody_gets_more_than_is_left(
    amounts: list[tuple[Scope, Decimal, Decimal]], most: Decimal, part: Decimal
) -> None:
    """Nor more than was asked for, nor too little to be of use; who gets nothing waits, or it is gone."""
    spendings = [spending(*each) for each in amounts]
    wanted = replace(wish("r", 1), most=most, least=most * part)
    got = share(spendings, wanted)
    if got is not None:
        assert wanted.least <= got <= wanted.most
        assert all(got <= each.left or got == most == 0 for each in spendings if most)
    else:
        gone = any(each.limit - each.spent < wanted.least for each in spendings)
        assert gone or any(each.under_way for each in spendings)
