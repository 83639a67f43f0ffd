"""One worker a conversation, first in first out, and a cap on the turns that run at once."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from zerobot.core.approvals import Withdrawal
from zerobot.core.clock import Clock
from zerobot.core.errors import StorageError
from zerobot.core.ids import ConversationId, InboxId, TurnId
from zerobot.core.log import BoundLog, EventLog
from zerobot.delivery.draft import View
from zerobot.delivery.line import TurnRef
from zerobot.delivery.patience import Patience
from zerobot.delivery.waiting import event_or_timeout
from zerobot.store.turn_rows import NextWork, Supersedes, Turn
from zerobot.store.turns import Turns
from zerobot.turn.ending import final_of_superseded, log_finished
from zerobot.turn.kit import CostOf, TurnKit
from zerobot.turn.loop import run_tool_call_loop
from zerobot.turn.stop import StopCause, StopSignal

LONGEST_WAIT = 30.0
"""Seconds between tries while the store refuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatcherWires:
    """What the dispatcher leads to."""

    turns: Turns
    kit: Callable[[Turn], TurnKit]
    """The kit for a turn: that of the agent of its channel."""
    supersedes: Supersedes
    welcome: Callable[[Turn], Awaitable[bool]]
    """Whether who asked for a turn may still talk here; a turn of somebody who may not is stopped before it works."""
    channels: Mapping[str, timedelta]
    """The open ones, and how long an input there waits for more of it. What was said on others waits for them."""
    view: Callable[[TurnRef], View]
    approvals_changed: Callable[[], None]
    """Approvals were stored or withdrawn: prompts are to be shown or settled."""
    queued_behind: Callable[[Turn], Awaitable[None]]
    """An input waits for a paused turn: its author is told."""
    cost: CostOf
    """What a turn has cost, for the log."""
    clock: Clock
    log: EventLog


class Dispatcher:
    """Works on conversations.

    Args:
        wires: What it leads to.
        max_turns: Turns that run at once. A paused turn is none of them.
    """

    def __init__(self, wires: DispatcherWires, max_turns: int) -> None:
        self._wires = wires
        self._slots = asyncio.Semaphore(max_turns)
        self._workers: dict[ConversationId, asyncio.Task[None]] = {}
        self._again: set[ConversationId] = set()
        self._running: dict[ConversationId, StopSignal] = {}
        """By conversation, the turn that runs or is being ended: whoever puts one in here works on it alone."""
        self._taking = asyncio.Lock()
        """Held while a turn is taken from the store, so that a stop and a worker never take the same one."""
        self._told: dict[ConversationId, TurnId] = {}
        self._group: asyncio.TaskGroup | None = None
        self._halt = asyncio.Event()

    async def run(self) -> None:
        """Take up what the store has, and work until cancelled."""
        await Patience(self._wires.clock, self._wires.log).stored(self._wires.turns.recover)
        async with asyncio.TaskGroup() as group:
            self._group = group
            for conversation in await self._wires.turns.runnable():
                self.wake(conversation)
            await asyncio.Event().wait()

    def wake(self, conversation: ConversationId) -> None:
        """There may be something to work on in a conversation."""
        if self._group is None or self._halt.is_set():
            return
        self._again.add(conversation)
        if conversation not in self._workers:
            worker = self._group.create_task(self._work(conversation), name=f"conversation {conversation}")
            self._workers[conversation] = worker

    async def stop(self, conversation: ConversationId, before: InboxId | None = None) -> bool:
        """Stop the running or paused turn of a conversation, at once.

        Args:
            conversation: Its id.
            before: Only if the turn answers something that came before this input; None: whatever it answers.

        Returns:
            Whether there was something to stop.
        """
        async with self._taking:
            if before is not None and not await self._wires.turns.asked_before(conversation, before):
                return False
            signal = self._running.get(conversation)
            if signal is not None:
                return signal.request(StopCause.USER)
            taken = await self._wires.turns.take_paused(conversation, Withdrawal.STOPPED)
            if taken is None:
                return False
            stopped = self._running[conversation] = StopSignal()
        self._wires.approvals_changed()
        stopped.request(StopCause.USER)
        try:
            await self._run(taken, stopped)
        finally:
            self.wake(conversation)
        return True

    async def interrupt(self, conversation: ConversationId, newer: InboxId) -> None:
        """Stop the running turn of a conversation for a newer input; a paused one has a rule of its own."""
        signal = self._running.get(conversation)
        if signal is not None and await self._wires.turns.asked_before(conversation, newer):
            signal.request(StopCause.USER)

    @property
    def running(self) -> int:
        """Turns that run now."""
        return len(self._running)

    async def drain(self, grace: float) -> None:
        """Begin no more turns; wait `grace` seconds for the running ones, and leave the rest for the next start."""
        self._halt.set()
        workers = list(self._workers.values())
        if workers:
            await asyncio.wait(workers, timeout=grace)
        for signal in self._running.values():
            signal.request(StopCause.SHUTDOWN)
        left = [worker for worker in workers if not worker.done()]
        if left:
            await asyncio.wait(left)

    async def _work(self, conversation: ConversationId) -> None:
        """Work on one conversation until it has nothing to do. Ends without an await after its last look.

        What goes wrong, in the store or by a bug, is tried again from what is stored, ever more slowly.
        """
        faults = 0
        try:
            while conversation in self._again and not self._halt.is_set():
                self._again.discard(conversation)
                try:
                    while await self._work_once(conversation):
                        faults = 0
                except Exception as error:  # noqa: BLE001 - one conversation's fault must not end the work on all others
                    event = "storage.failed" if isinstance(error, StorageError) else "conversation.crashed"
                    self._wires.log(event, level="error", error=error, conversation=conversation)
                    self._again.add(conversation)
                    faults += 1
                    await self._rest(min(2.0 ** (faults - 1), LONGEST_WAIT))
        finally:
            self._workers.pop(conversation, None)

    async def _work_once(self, conversation: ConversationId) -> bool:
        """Do the next thing; False when there is none now."""
        async with self._slots:
            if self._halt.is_set():
                return False
            work = await self._take(conversation)
            if work.superseded is not None:
                await self._superseded(work.superseded)
            if work.turn is not None:
                await self._run(work.turn, self._running[conversation])
                return True
        if work.waits_for is not None:
            await self._tell_waiting(work.waits_for)
        if work.look_again is not None:
            await self._rest((work.look_again - self._wires.clock.now()).total_seconds())
            return True
        return False

    async def _take(self, conversation: ConversationId) -> NextWork:
        """Take the next work. A turn that is being ended by a stop is left to it; the stop wakes us after it."""
        async with self._taking:
            if conversation in self._running:
                return NextWork(None)
            work = await self._wires.turns.next(conversation, self._wires.supersedes, self._wires.channels)
            if work.turn is not None:
                signal = self._running[conversation] = StopSignal()
                if self._halt.is_set():
                    # It slipped in while the daemon began to stop; whoever drains may have looked already.
                    signal.request(StopCause.SHUTDOWN)
            return work

    async def _tell_waiting(self, turn: Turn) -> None:
        """Tell once that an input waits for a paused turn."""
        if self._told.get(turn.conversation) == turn.id:
            return
        try:
            await self._wires.queued_behind(turn)
        except StorageError as error:
            # The input itself is stored; only this word about it is not.
            self._wires.log("storage.failed", level="error", error=error, conversation=turn.conversation)
        else:
            self._told[turn.conversation] = turn.id

    async def _rest(self, seconds: float) -> None:
        """Wait, but no longer than until the daemon stops."""
        await event_or_timeout(self._halt, self._wires.clock, seconds)

    async def _run(self, turn: Turn, signal: StopSignal) -> None:
        """Run a turn until it ends, pauses or is stopped.

        Raises:
            StorageError: The store refused; the turn is open there, and is to be taken again.
        """
        log = BoundLog(self._wires.log, channel=turn.place.channel, conversation=turn.conversation, turn=turn.id)
        log("turn.started", resumed=turn.resumed, origin=turn.origin)
        self._told.pop(turn.conversation, None)
        try:
            # Leaving the view delivers what the turn has put into the outbox.
            if not await self._wires.welcome(turn):
                signal.request(StopCause.USER)
            with self._wires.view(_ref(turn)) as view:
                end = await run_tool_call_loop(self._wires.kit(turn), turn, view, signal)
        finally:
            del self._running[turn.conversation]
        if end.final is None and signal.cause is not StopCause.SHUTDOWN:
            log("turn.paused")
            self._wires.approvals_changed()

    async def _superseded(self, turn: Turn) -> None:
        """Tell of the end of a turn that the store has ended: its one final, its event, its prompts."""
        final = final_of_superseded(turn)
        log = BoundLog(self._wires.log, channel=turn.place.channel, conversation=turn.conversation, turn=turn.id)
        await log_finished(log, self._wires.cost, final)
        with self._wires.view(_ref(turn)) as view:
            view(final)
        self._wires.approvals_changed()


def _ref(turn: Turn) -> TurnRef:
    return TurnRef(turn=turn.id, conversation=turn.conversation, place=turn.place, reply_to=turn.reply_to)
