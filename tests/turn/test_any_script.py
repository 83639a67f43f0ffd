"""Whatever the model asks for and whenever somebody stops, presses, or kills the process: the promises hold."""

import asyncio
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zerobot.core.errors import ProviderError, StorageError
from zerobot.core.model import Finish, ModelCall
from zerobot.testing.house import House, open_house
from zerobot.testing.model import Scripted, call, drops, fails, says, step
from zerobot.testing.store import Fate
from zerobot.turn.kit import TurnLimits

CALLS: st.SearchStrategy[ModelCall] = st.sampled_from(
    [
        call("echo", "c1", text="a"),
        call("echo", "", text="b"),
        call("wr", "c2", p="f"),
        call("rd", "c3", p="f"),
        call("any", "c4"),
        call("sup", "c1", x="1"),
        call("supw", "c5", p="f"),
        call("boom", "c6"),
        call("slow", "c7"),
        call("num", "c8", "{bad"),
        call("ghost", "c9"),
    ]
)
BATCHES = st.lists(CALLS, min_size=1, max_size=4)
ANSWERS: st.SearchStrategy[Scripted] = st.one_of(
    st.builds(lambda batch: step("look", batch, usage=(1, 1)), BATCHES),
    st.builds(lambda batch: step("", batch), BATCHES),
    st.builds(lambda batch, finish: step("cut", batch, finish=finish), BATCHES, st.sampled_from(list(Finish))),
    st.just(step("bye", [call("stopper", "c0"), call("echo", "c1", text="a")])),
    st.just(drops("Hel")),
    st.just(step()),
    st.just(fails(ProviderError("no", code="bad_request", status=400))),
    st.just(says("fine", deltas=["fi", "ne"])),
)


async def approves(house: House) -> None:
    """Approve the first pending request."""
    if await house.engine.approvals.pending():
        await house.operator.decides("Approve")


async def denies(house: House) -> None:
    """Deny the first pending request."""
    if await house.engine.approvals.pending():
        await house.operator.decides("Deny")


async def lets_expire(house: House) -> None:
    """Nobody decides in time."""
    house.clock.jump(600)
    for approval in await house.engine.approvals.expire_due(house.clock.now()):
        house.engine.wake(approval.conversation)


async def writes(house: House) -> None:
    """Another input."""
    await house.user.writes(f"more {house.next_number()}")


async def stops(house: House) -> None:
    """The user has enough."""
    await house.engine.stop(await house.user.conversation())


async def resets(house: House) -> None:
    """A new history."""
    await house.engine.conversations.reset(await house.user.conversation())


async def kills(house: House) -> None:
    """The process dies now."""
    await house.restart(wait=False)


async def shuts_down(house: House) -> None:
    """The daemon stops gracefully and starts again; what runs on time or on the test is given up first."""
    house.engine.shut_down()


async def wakes(house: House) -> None:
    """The daemon looks again at everything."""
    for conversation in await house.engine.turns.runnable():
        house.engine.wake(conversation)


async def waits(house: House) -> None:
    """Time goes by."""
    await house.clock.advance(60)


async def releases(house: House) -> None:
    """The tools get what they wait for."""
    await house.tools.release()


SILENT = """
    SELECT count(*) FROM turns t WHERE reason <> 'superseded'
        AND NOT EXISTS (SELECT 1 FROM replies r WHERE r.turn_id = t.id AND r.text <> '')
"""
ACCEPTED = "SELECT json_extract(envelope, '$.text') FROM inbox WHERE state <> 'cancelled' ORDER BY id"
SAID = "SELECT text FROM messages WHERE role = 'user' ORDER BY id"
Action = Callable[[House], Coroutine[Any, Any, None]]
ACTIONS: st.SearchStrategy[Action] = st.sampled_from(
    [approves, denies, lets_expire, writes, stops, resets, kills, shuts_down, wakes, waits, releases]
)
TRAPS = st.lists(st.tuples(st.sampled_from(list(Fate)), st.integers(0, 25)), max_size=2)


async def live(house: House, action: Action) -> None:
    """Do something unless the process dies first; a dead one is replaced."""
    task = asyncio.create_task(action(house))
    death = asyncio.create_task(house.engine.database.died.wait())
    await asyncio.wait({task, death}, return_when=asyncio.FIRST_COMPLETED)
    death.cancel()
    await house.settles()
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
    if house.engine.database.died.is_set():
        await house.restart(wait=False)
        await house.settles()


async def scenario(
    directory: Path, script: list[Scripted], actions: list[Action], traps: list[tuple[Fate, int]], *, steers: bool
) -> None:
    """One life of a house, and what must be true at its end."""
    async with open_house(directory) as house:
        house.settings.joins = timedelta() if steers else None
        house.settings.limits = TurnLimits(max_steps=4, tool_grace=0.0)
        house.model.answers(*script, *[says("end")] * 100)
        await house.user.writes("hi")
        house.crashed = True
        for fate, skip in traps:
            house.engine.database.trap(fate, skip=skip)
        await house.settles()
        for action in actions:
            await live(house, _refusable(action))
        for _ in range(8):
            for action in (releases, approves, approves, approves, approves, wakes, waits):
                await live(house, _refusable(action))
        await the_promises_hold(house)


def _refusable(action: Action) -> Action:
    """What a caller does himself may be refused by the store; a daemon tells him so."""

    async def tries(house: House) -> None:
        with suppress(StorageError):
            await action(house)

    return tries


async def the_promises_hold(house: House) -> None:
    """Every input was said once, in order, and its turn has ended; no call started twice, nobody was left wordless."""
    assert max(house.tools.starts.values(), default=0) <= 1
    open_turns, waiting, silent, open_calls = await house.engine.database.read(
        lambda db: [
            db.execute(sql).fetchone()[0]
            for sql in (
                "SELECT count(*) FROM turns WHERE state <> 'finished'",
                "SELECT count(*) FROM inbox WHERE state NOT IN ('done', 'cancelled')",
                SILENT,
                "SELECT count(*) FROM tool_calls WHERE state <> 'finished'",
            )
        ]
    )
    assert (open_turns, waiting, silent, open_calls) == (0, 0, 0, 0)
    accepted, said = await house.engine.database.read(
        lambda db: [[row[0] for row in db.execute(sql)] for sql in (ACCEPTED, SAID)]
    )
    assert accepted == said


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    script=st.lists(ANSWERS, max_size=6),
    actions=st.lists(ACTIONS, max_size=8),
    traps=TRAPS,
    steers=st.booleans(),
)
def test_the_promises_hold_whatever_happens(
    script: list[Scripted], actions: list[Action], traps: list[tuple[Fate, int]], *, steers: bool
) -> None:
    """BAR 1b, A10, A40, A43, A87: valid history, sendable requests, one end a turn, at most one start a call."""
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(scenario(Path(directory), script, actions, traps, steers=steers))
