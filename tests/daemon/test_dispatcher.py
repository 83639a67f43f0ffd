"""The dispatcher on a real store: one worker a conversation, whatever else happens at the same moment."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from zerobot.core.events import TurnEvent
from zerobot.core.ids import ConversationId, TurnId
from zerobot.core.log import Level
from zerobot.daemon.clock import SystemClock
from zerobot.daemon.dispatcher import Dispatcher, DispatcherWires
from zerobot.delivery.draft import NoView
from zerobot.store.turn_rows import Turn
from zerobot.testing.house import House, UserDouble, open_house
from zerobot.testing.model import calls, held, says
from zerobot.testing.store import Fate
from zerobot.turn.kit import TurnKit

PATIENCE = 10.0


class NotingView(NoView):
    """Shows nobody anything, and hands each event to the house."""

    def __init__(self, house: House) -> None:
        self._house = house

    def __call__(self, event: TurnEvent) -> None:
        """See `View`."""
        self._house.note(event)


class Shift:
    """A dispatcher that works in a house whose own engine only stores."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.broken: set[str] = set()
        """Names of people whose turns meet a bug."""
        self.supersedes = False
        """Whether a new message ends a pause."""
        self.shut_out: set[str] = set()
        """Names of people who may not talk any more."""
        self.told: list[Turn] = []
        self._news = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        wires = DispatcherWires(
            turns=house.engine.turns,
            kit=self._kit,
            supersedes=lambda _: self.supersedes,
            welcome=self._welcome,
            view=lambda _: NotingView(house),
            approvals_changed=lambda: None,
            channels={"test": timedelta()},
            queued_behind=self._told,
            cost=self._cost,
            clock=SystemClock(),
            log=self._log,
        )
        self.dispatcher = Dispatcher(wires, 2)

    async def _welcome(self, turn: Turn) -> bool:
        return turn.asker_name not in self.shut_out

    async def hears(self, user: UserDouble, text: str) -> ConversationId:
        """Store what somebody says, and let the dispatcher look at it; with the first message it begins to work."""
        # The house's own engine only stores here.
        self.house.engine.wake = lambda conversation: None  # type: ignore[method-assign]
        await user.writes(text)
        conversation = await user.conversation()
        if self._running is None:
            self._running = asyncio.create_task(self.dispatcher.run())
        self.dispatcher.wake(conversation)
        return conversation

    def lines(self, event: str) -> list[dict[str, object]]:
        """The log's lines of an event."""
        return [fields for name, fields in self.house.log if name == event]

    async def until(self, event: str, number: int = 1) -> None:
        """Wait for an event of the log."""
        await self.until_so(lambda: len(self.lines(event)) >= number)

    async def until_so(self, condition: Callable[[], object]) -> None:
        """Wait until something holds, looked at whenever something was logged or told."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def end(self) -> None:
        """End the dispatcher."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    def _kit(self, turn: Turn) -> TurnKit:
        if turn.place.chat in self.broken:
            raise RuntimeError("a bug")
        return replace(self.house.engine.kit(), log=self._log)

    async def _cost(self, turn: TurnId) -> str:
        return f"the price of {turn}"

    async def _told(self, turn: Turn) -> None:
        self.told.append(turn)
        self._news.set()

    def _log(
        self, event: str, /, *, level: Level = "info", error: BaseException | None = None, **fields: object
    ) -> None:
        self.house.note_log(event, level=level, error=error, **fields)
        self._news.set()


@pytest.fixture
async def shift(tmp_path: Path) -> AsyncIterator[Shift]:
    """A dispatcher in its house, ended with the test."""
    async with open_house(tmp_path) as house:
        shift = Shift(house)
        try:
            yield shift
        finally:
            await shift.end()


async def test_a_paused_turn_that_is_stopped_and_woken_at_once_is_worked_on_once(shift: Shift) -> None:
    """A84, A40: the stop ends it, the worker that looks at the same moment leaves it alone and takes the next input."""
    user = shift.house.user
    shift.house.model.answers(calls("sup", id="c1", x="1"), says("next"))
    conversation = await shift.hears(user, "first")
    await shift.until("turn.paused")
    await user.writes("second")
    stopping = asyncio.create_task(shift.dispatcher.stop(conversation))
    await asyncio.sleep(0)
    shift.dispatcher.wake(conversation)
    assert await stopping
    await shift.until("turn.finished", 2)
    assert [line["outcome"] for line in shift.lines("turn.finished")] == ["stopped", "replied"]
    assert len(shift.lines("turn.started")) == 3
    assert shift.lines("conversation.crashed") == []


async def test_no_more_turns_run_than_are_allowed_and_a_paused_one_is_none(shift: Shift) -> None:
    """A81: of four conversations one is paused, two are worked on, and the last waits until one of those has ended."""
    # Seen to fail with: a place too many, a paused turn that keeps its place (A81).
    shift.house.model.answers(calls("sup", id="c1", x="1"), to="ask")
    await shift.hears(shift.house.other("ann"), "ask")
    await shift.until("turn.paused")
    holds = {}
    for name in ("bob", "cem", "dan"):
        answer, holds[name] = held(says(f"for {name}"))
        shift.house.model.answers(answer, to=name)
        await shift.hears(shift.house.other(name), name)
    await holds["bob"].reached()
    await holds["cem"].reached()
    await shift.house.settles()
    assert shift.dispatcher.running == 2
    assert [request.lines for request in shift.house.model.requests][1:] == [["U:bob"], ["U:cem"]]
    holds["bob"].release()
    await holds["dan"].reached()
    for hold in holds.values():
        hold.release()
    await shift.until("turn.finished", 3)


async def test_the_end_of_a_superseded_turn_tells_what_it_cost(shift: Shift) -> None:
    """Its line in the log is that of any other end."""
    shift.supersedes = True
    user = shift.house.user
    shift.house.model.answers(calls("sup", id="c1", x="1"), says("next"))
    conversation = await shift.hears(user, "first")
    await shift.until("turn.paused")
    await shift.house.operator.sees()
    await user.writes("second")
    shift.dispatcher.wake(conversation)
    await shift.until("turn.finished", 2)
    first = shift.lines("turn.finished")[0]
    assert (first["outcome"], first["cost"]) == ("superseded", f"the price of {first['turn']}")


async def test_a_bug_in_one_conversation_leaves_the_others_working(shift: Shift) -> None:
    """B188: it is logged with its conversation; the process and everybody else go on."""
    # Seen to fail with: a conversation that is not looked at again (A85).
    shift.broken.add("bea")
    shift.house.model.answers(says("hello"))
    await shift.hears(shift.house.other("bea"), "hi")
    await shift.until("conversation.crashed")
    await shift.hears(shift.house.user, "hi")
    await shift.until("turn.finished")
    assert shift.lines("turn.finished")[0]["outcome"] == "replied"
    shift.broken.clear()
    shift.house.model.answers(says("hello again"))
    shift.dispatcher.wake(await shift.house.other("bea").conversation())
    await shift.until("turn.finished", 2)


async def test_a_graceful_stop_does_not_wait_for_a_store_that_refuses(shift: Shift) -> None:
    """B189, B195: on a full disk the daemon stops within its grace all the same, and the turn goes on later."""
    shift.house.engine.database.trap(Fate.REFUSED, "Turns.finish", times=1_000)
    shift.house.engine.database.trap(Fate.REFUSED, "Turns.next", skip=1, times=1_000)
    shift.house.model.answers(says("lost"))
    await shift.hears(shift.house.user, "hi")
    await shift.until("storage.failed", 2)
    async with asyncio.timeout(PATIENCE):
        await shift.dispatcher.drain(0.0)
    assert len(shift.house.model.requests) == 1


async def test_a_drain_suspends_what_does_not_end_by_itself(shift: Shift) -> None:
    """A turn over the grace is no crash: it is left for the next start, with nothing lost."""
    answer, hold = held(says("slow"))
    shift.house.model.answers(answer)
    conversation = await shift.hears(shift.house.user, "hi")
    await hold.reached()
    async with asyncio.timeout(PATIENCE):
        await shift.dispatcher.drain(0.0)
    opened = await shift.house.engine.turns.open_turn(conversation)
    assert opened is not None
    assert opened.state == "suspended"
    shift.dispatcher.wake(conversation)
    assert shift.dispatcher.running == 0


async def test_who_waits_for_a_decision_is_told_once(shift: Shift) -> None:
    """However often the conversation is looked at, the author hears one time what his message waits for."""
    shift.house.model.answers(calls("sup", id="c1", x="1"))
    conversation = await shift.hears(shift.house.user, "first")
    await shift.until("turn.paused")
    await shift.hears(shift.house.user, "second")
    await shift.until_so(lambda: shift.told)
    shift.dispatcher.wake(conversation)
    await shift.dispatcher.drain(1.0)
    assert len(shift.told) == 1


async def test_nothing_is_done_for_somebody_who_may_not_talk_any_more(shift: Shift) -> None:
    """What he wrote before he was shut out ends as stopped, and no model is asked."""
    shift.shut_out.add("Ann")
    await shift.hears(shift.house.user, "hi")
    await shift.until("turn.finished")
    assert shift.lines("turn.finished")[0]["outcome"] == "stopped"
    assert shift.house.model.requests == []


async def test_a_paused_turn_of_somebody_who_was_shut_out_runs_nothing(shift: Shift) -> None:
    """The press comes after the revocation: the decision counts for nothing any more."""
    shift.house.model.answers(calls("sup", id="c1", x="1"))
    conversation = await shift.hears(shift.house.user, "hi")
    await shift.until("turn.paused")
    shift.shut_out.add("Ann")
    await shift.house.operator.decides("Approve")
    shift.dispatcher.wake(conversation)
    await shift.until("turn.finished")
    assert shift.house.tools.started == []
