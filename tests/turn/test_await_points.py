"""A stop, an exception and a power cut at every await point of a turn: the promises hold at each of them.

An await point is any moment at which any task of the turn goes on: the loop, a tool, a hook, a stream, a write.
"""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from zerobot.core.errors import ContextOverflowError, HistoryRejectedError, ProviderError
from zerobot.core.hooks import GoOn, Hooks, Inject, StepView
from zerobot.core.messages import AssistantMessage, RecordedCall, ToolResult, UserMessage
from zerobot.core.model import Finish, ModelRequest
from zerobot.testing.await_points import AwaitPoints, counted_tasks
from zerobot.testing.house import House, UserDouble, open_house
from zerobot.testing.model import Scripted, call, drops, fails, says, step
from zerobot.turn.kit import TurnLimits

LEAST_POINTS = 60
LOOK_AGAIN = 0.002
"""Seconds of real time between two looks at the clock of the house, on which a turn may wait."""
REPLY = "end"
PASSING = ProviderError("busy", code="overloaded", status=529, retryable=True)
TOO_LONG = ContextOverflowError("too long", code="context_overflow", status=400)
MALFORMED = HistoryRejectedError("roles must alternate", code="history_rejected", status=400)

Script = Sequence[Sequence[Scripted]]
"""Steps of a turn; of each, what the model does at its first attempt, its second, and all later ones."""

SCRIPTS: Mapping[str, Script] = {
    "talks": [
        [drops("Hel", usage=(1, 1)), says("Hello", deltas=["He", "llo"], finish=Finish.PAUSE, usage=(2, 2))],
        [fails(PASSING), fails(PASSING), step("look", [call("echo", "c1", text="a")])],
        [fails(PASSING), says("done", deltas=["do", "ne"], usage=(3, 3))],
    ],
    "works": [
        [step("look", [call("echo", "c1", text="a"), call("free", "c2")], usage=(1, 1))],
        [step("", [call("wr", "c3", p="f"), call("rd", "c4", p="g")])],
        [says("done")],
    ],
    "queues": [
        [step("", [call("wr", "c1", p="a", n=1), call("wr", "c2", p="a", n=2), call("any", "c3"), call("slow", "c4")])],
        [step("", [call("echo", "c5", text="a"), call("echo", "c6", text="a"), call("rd", "c7", p="a")])],
        [says("done")],
    ],
    "asks": [
        [step("may I?", [call("echo", "c1", text="a"), call("sup", "c2", x="1"), call("supw", "c3", p="f")])],
        [step("and this?", [call("sup", "c4", x="2"), call("sup", "c5", x="2"), call("wr", "c6", p="f")])],
        [says("done")],
    ],
    "errs": [
        [step("", [call("boom", "c1"), call("num", "c2", value="x"), call("ghost", "c3"), call("free", "c4", "{bad")])],
        [step("bye", [call("stopper", "c5"), call("echo", "c6", text="never")])],
    ],
    "overflows": [
        [step("look", [call("echo", "c1", text="x" * 9_000), call("echo", "c2", text="y" * 9_000)])],
        [fails(TOO_LONG), step("more", [call("echo", "c3", text="z" * 9_000)])],
        [fails(TOO_LONG), fails(MALFORMED), step("cut", [call("echo", "c4", text="w")], finish=Finish.LENGTH)],
    ],
    "repeats": [[step("", [call("echo", "", text="a")])]] * 4,
    "steers": [
        [step("look", [call("echo", "c1", text="a"), call("free", "c2")])],
        [says("Hello", deltas=["He", "llo"], usage=(2, 2))],
        [says("done")],
    ],
}


class WritesOn:
    """A hook that is a person who writes on after the first steps of what was asked, each time once."""

    def __init__(self, house: House) -> None:
        self._house = house

    async def after_step(self, step: StepView) -> None:
        """Write something that can join the turn."""
        asked = next(m.text for m in step.messages if isinstance(m, UserMessage) and m.turn == step.turn)
        if asked.startswith("go ") and step.step < 3:
            user = self._house.other(asked.removeprefix("go "))
            await user.writes(f"more {step.step}", event=f"{user.name} more {step.step}")


class Watches:
    """Hooks of each kind; each awaits something."""

    async def before_step(self, step: StepView) -> Inject:
        """Tell the model something."""
        await asyncio.sleep(0)
        return Inject(f"this is step {step.step}")

    async def after_step(self, step: StepView) -> None:
        """Let it go on."""
        await asyncio.sleep(0)

    async def continue_after_stop(self, step: StepView, text: str) -> GoOn | None:
        """Let the first answer be followed by another one."""
        await asyncio.sleep(0)
        return GoOn("say more") if text != "done" and step.step < 4 else None

    async def prepare(self, call: RecordedCall, batch: Sequence[RecordedCall]) -> None:
        """Let it pass."""
        await asyncio.sleep(0)

    async def finalize(self, call: RecordedCall, result: ToolResult) -> ToolResult:
        """Keep it."""
        await asyncio.sleep(0)
        return result


def playing(script: Script) -> Callable[[ModelRequest], Scripted]:
    """A model that answers by what it is asked, so that it can be asked again after a crash."""
    attempts: Counter[tuple[str, int]] = Counter()

    def improvise(request: ModelRequest) -> Scripted:
        said = next(m for m in reversed(request.messages) if isinstance(m, UserMessage) and m.text)
        asked = next(m for m in request.messages if isinstance(m, UserMessage) and m.turn == said.turn and m.text)
        if not asked.text.startswith("go ") or not request.tools:
            return says(REPLY)
        done = sum(isinstance(m, AssistantMessage) and m.turn == said.turn for m in request.messages)
        if done >= len(script):
            return says("done")
        attempt = attempts[said.text, done]
        attempts[said.text, done] += 1
        return script[done][min(attempt, len(script[done]) - 1)]

    return improvise


async def comes_to_rest(house: House) -> None:
    """Let time pass, and approve what is asked, until nothing is left to do."""
    while True:
        idle = asyncio.create_task(house.idle())
        while not idle.done():
            await asyncio.wait({idle}, timeout=LOOK_AGAIN)
            if house.clock.next_due() is not None:
                await house.clock.advance(60)
        await idle
        if house.engine.database.died.is_set() or not await house.engine.approvals.pending():
            return
        await house.operator.decides("Approve")


async def lives(house: House, user: UserDouble, kind: str, at: int | None) -> int:
    """One turn with an interference; returns how many await points it has passed."""
    started_before_stop: list[int] = []

    def interferes() -> BaseException | None:
        if kind == "exception":
            return RuntimeError("thrown in")
        if kind == "stop":
            house.engine.stop_now(conversation)
            started_before_stop.append(house.tools.starts.total())
        if kind == "power cut":
            points.power = False
            house.crashed = True
            house.engine.database.die()
        return None

    points = AwaitPoints(at, interferes)
    house.settings.around = points.carry_out
    await user.writes(f"go {user.name}")
    conversation = await user.conversation()
    await comes_to_rest(house)
    if not points.power:
        house.settings.around = lambda work: work
        await house.restart(wait=False)
        points.forget()
        await comes_to_rest(house)
    if started_before_stop:
        assert house.tools.starts.total() == started_before_stop[0], "a tool was started after the stop"
    house.settings.around = lambda work: work
    await user.writes("again")
    await comes_to_rest(house)
    return points.passed


TURNS = """
    SELECT t.id, t.state, t.reason, (SELECT count(*) FROM replies r WHERE r.turn_id = t.id AND r.text <> '') AS replies,
        (SELECT count(*) FROM tool_calls c WHERE c.turn_id = t.id AND c.state <> 'finished') AS open_calls
    FROM turns t WHERE t.conversation_id = ? ORDER BY t.rowid
"""


INPUTS = "SELECT json_extract(envelope, '$.text') AS text, state FROM inbox WHERE conversation_id = ? ORDER BY id"


async def the_promises_hold(house: House, user: UserDouble, kind: str) -> None:
    """All turns have ended, once, with a word; nothing is open, nothing ran twice, the next turn works.

    Each input was said once, in order; without steering there are two turns, and with it there may be more.
    """
    assert house.model.violations == []
    assert max(house.tools.starts.values(), default=0) <= 1
    conversation = await user.conversation()
    turns = await house.engine.database.read(lambda db: db.execute(TURNS, (conversation,)).fetchall())
    assert len(turns) == 2 or (house.settings.joins is not None and 2 < len(turns) < 5)
    assert {turn["state"] for turn in turns} == {"finished"}
    assert all(turn["replies"] for turn in turns)
    assert {turn["open_calls"] for turn in turns} == {0}
    finals = Counter(final.turn for final in house.finals)
    told = [finals[turn["id"]] for turn in turns]
    assert set(told) == {1} or (kind == "power cut" and sorted(told) == [0] + [1] * (len(told) - 1) and told[-1])
    assert turns[-1]["reason"] == "done"
    inputs = await house.engine.database.read(lambda db: db.execute(INPUTS, (conversation,)).fetchall())
    assert {each["state"] for each in inputs} == {"done"}
    history = await house.history(user)
    assert [line for line in history if line.startswith("U:")] == [f"U:{each['text']}" for each in inputs]
    assert history[-1] == f"A:{REPLY}"
    answers = [m for m in (await house.messages(user)).messages if isinstance(m, AssistantMessage)]
    assert not any(is_again(before, after) for before, after in pairwise(answers))


def is_again(before: AssistantMessage, after: AssistantMessage) -> bool:
    """Whether an answer was stored as a whole, did nothing, and was stored again as one that broke off."""
    ran = any(call.result is not None and call.result.ok for call in before.calls)
    return after.partial and not ran and (before.turn, before.text) == (after.turn, after.text)


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """A directory in memory where the system has one: thousands of commits need not wait for a disk here."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        yield Path(directory)


@pytest.mark.parametrize("kind", ["stop", "exception", "power cut"])
@pytest.mark.parametrize("name", SCRIPTS)
async def test_whatever_happens_at_an_await_point(memory_path: Path, name: str, kind: str) -> None:
    """BAR 1b, A10, A40, A43: nothing is raised, one final, a valid history, no tool after a stop, a next turn."""
    # Seen to fail with: a stop not looked at in the tool's own task (K13), a turn that fails without a look at what
    # is stored (A43), an end stored and told anew after an exception (A40).
    watches = Watches()
    async with open_house(memory_path) as house:
        house.settings.limits = TurnLimits(max_steps=4, tool_grace=0.05)
        house.settings.hooks = Hooks(
            prepare=(watches,),
            finalize=(watches,),
            before_step=(watches,),
            after_step=(watches,),
            continue_after_stop=(watches,),
        )
        if name == "steers":
            house.settings.joins = timedelta()
            house.settings.hooks = replace(house.settings.hooks, after_step=(watches, WritesOn(house)))
        house.model.improvise = playing(SCRIPTS[name])
        await house.tools.release()
        with counted_tasks():
            count = await lives(house, house.other("nobody"), kind, None)
            assert count >= LEAST_POINTS
            assert not [event for event, _ in house.log if event == "turn.crashed"]
            for at in range(count):
                user = house.other(f"user{at}")
                try:
                    await lives(house, user, kind, at)
                    await the_promises_hold(house, user, kind)
                except BaseException as error:
                    error.add_note(f"at await point {at} of {count}")
                    raise
