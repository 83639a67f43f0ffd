"""The purse of a daemon: what a call may cost at most, and who hears that little is left."""

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path

import pytest

from zerobot.core.budget import Payer, Scope
from zerobot.core.ids import ConversationId, TurnId
from zerobot.core.messages import UserMessage
from zerobot.core.model import ModelRequest, ToolSpec
from zerobot.core.places import Identity, Place
from zerobot.core.usage import Usage
from zerobot.daemon.budget import LEAST_OUTPUT, MOST_OUTPUT, UNKNOWN_OUTPUT, BudgetPurse, quote
from zerobot.daemon.budget_alarm import BudgetAlarm
from zerobot.providers.catalogue import Price, cost
from zerobot.store.channel_state import DAEMON, channel_state
from zerobot.store.database import Database, open_database
from zerobot.store.reservations import Reservations
from zerobot.store.turn_rows import AttemptUsage
from zerobot.store.usage import record
from zerobot.testing.clock import ManualClock
from zerobot.turn.estimate import request_tokens

PRICE = Price(input=Decimal(2), output=Decimal(1000), cache_read=Decimal(1), cache_write=Decimal(3))
ANN = Identity("test", "ann")
PAYER = Payer(turn=TurnId("t1"), conversation=ConversationId(1), channel="test", asker=ANN)
OPERATORS = (Place("test", "olga"), Place("test", "otto"))


def request(text: str = "hello", most: int | None = None) -> ModelRequest:
    tools = (ToolSpec(name="echo", description="Say it back.", parameters={"type": "object"}),)
    message = UserMessage(seq=1, turn=TurnId("t1"), text=text)
    return ModelRequest(model="m", system="Be brief.", messages=[message], tools=tools, max_output_tokens=most)


@pytest.mark.parametrize(
    ("most", "output"), [(None, UNKNOWN_OUTPUT), (500, 500), (16_000, 16_000), (128_000, MOST_OUTPUT)]
)
def test_a_quote_is_the_longest_answer_and_all_input_at_the_dearest_rate(most: int | None, output: int) -> None:
    """More than it will be: nothing is taken to be cached, and tokens are estimated with a margin."""
    asked = request("word " * 1000, most)
    quoted = quote(PRICE, asked)
    assert quoted.output == output
    assert quoted.most - quoted.input_cost == output * Decimal("0.001")
    assert quoted.least - quoted.input_cost == min(output, LEAST_OUTPUT) * Decimal("0.001")
    assert quoted.input_cost == request_tokens(asked) * Decimal("1.5") * 3 / 1_000_000
    usage = Usage(input_tokens=request_tokens(asked), cache_write_tokens=request_tokens(asked), output_tokens=output)
    assert quoted.most >= (cost(usage, PRICE) or 0)


def test_all_of_a_request_is_in_its_quote() -> None:
    """The system prompt, the tools and what they take are as much input as the messages are."""
    whole = request_tokens(request())
    assert whole > request_tokens(ModelRequest(model="m", system="Be brief.", messages=request().messages))
    assert whole > request_tokens(
        ModelRequest(model="m", system="", messages=request().messages, tools=request().tools)
    )


def test_less_money_is_a_shorter_answer() -> None:
    """What is between the least and the most pays for whole tokens and never for one too many."""
    quoted = quote(PRICE, request(most=4000))
    assert quoted.output_for(quoted.most) == 4000
    assert quoted.output_for(quoted.least) == LEAST_OUTPUT
    assert quoted.output_for(quoted.input_cost + Decimal("2.0009")) == 2000


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(tmp_path / "zerobot.db", readers=1) as opened:
        yield opened


class Till:
    """A purse of ten dollars a day over a store, and who is told of it."""

    def __init__(self, database: Database, clock: ManualClock) -> None:
        self.database, self.clock = database, clock
        self.said: list[tuple[Place, str]] = []
        self.log: list[tuple[str, dict[str, object]]] = []
        limits = {Scope.DAY: Decimal(10)}
        reservations = Reservations(database, clock, lambda _, usage: cost(usage, PRICE), limits)
        self.purse = BudgetPurse(reservations, lambda _: PRICE, clock, self._note)

    async def pays(self, tokens: int) -> None:
        """Make a call that takes so many tokens of output."""
        asked = request(most=tokens)
        kept = await self.purse.reserve(PAYER, "step", "main/m", asked)
        usage = Usage(output_tokens=tokens)
        self.purse.ended(kept, "main/m", usage)
        attempt = AttemptUsage(model="main/m", purpose="step", failed=False, usage=usage, reservation=kept.id)
        await self.database.write(lambda db: record(db, PAYER, [attempt], self.clock.now()))

    async def alarms(self) -> None:
        """Let the alarm work off what it has heard."""
        state = channel_state(self.database, DAEMON)
        alarm = BudgetAlarm(self.purse, lambda: OPERATORS, self._say, state, self.clock, self._note)
        while not self.purse.low.empty():
            await alarm.tell(self.purse.low.get_nowait())

    async def _say(self, place: Place, text: str) -> None:
        self.said.append((place, text))

    def _note(
        self, event: str, /, *, level: str = "info", error: BaseException | None = None, **fields: object
    ) -> None:
        self.log.append((event, fields))


async def test_operators_hear_once_a_day_that_little_is_left(database: Database) -> None:
    """Each of them, with the numbers; not again that day, not even after a restart; the next day again."""
    clock = ManualClock()
    till = Till(database, clock)
    await till.pays(7000)
    await till.pays(1000)
    await till.alarms()
    assert till.said == []
    await till.pays(100)
    await till.pays(100)
    await till.alarms()
    assert [place for place, _ in till.said] == list(OPERATORS)
    assert "$8.00 of the $10.00" in till.said[0][1]
    assert [event for event, _ in till.log] == ["budget.low"]
    again = Till(database, clock)
    await again.pays(100)
    await again.alarms()
    assert again.said == []
    clock.jump(24 * 3600)
    await again.pays(9000)
    await again.pays(100)
    await again.alarms()
    assert len(again.said) == 2


async def test_a_call_that_was_given_up_while_its_money_was_stored_keeps_none(database: Database) -> None:
    """Whoever is stopped just then never hears of the reservation; it counts for nothing and goes with the next one."""
    # Seen to fail with: a cancelled reservation left as it is.
    till = Till(database, ManualClock())
    giving_up = asyncio.create_task(till.purse.reserve(PAYER, "step", "main/m", request(most=9000)))
    await asyncio.sleep(0)
    giving_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await giving_up
    assert await reserved(database) == 1
    assert await till.purse.used_up(PAYER) is None
    await till.pays(9000)
    assert await reserved(database) == 0


async def reserved(database: Database) -> int:
    """How many reservations are stored."""
    return await database.read(lambda db: int(db.execute("SELECT count(*) FROM reservations").fetchone()[0]))
