"""One worker a conversation, first in first out, and a cap on the turns that run at once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from zerobot.core.clock import Clock
from zerobot.core.errors import StorageError
from zerobot.core.events import Outcome, StopReason
from zerobot.core.ids import ConversationId, InboxId, TurnId
from zerobot.core.log import BoundLog, EventLog
from zerobot.delivery.draft import View
from zerobot.delivery.line import TurnRef
from zerobot.delivery.patience import Patience
from zerobot.delivery.waiting import event_or_timeout
from zerobot.store.turn_rows import NextWork, Superseded, Supersedes, Turn
from zerobot.store.turns import Turns
from zerobot.turn.kit import TurnKit
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
    view: Callable[[TurnRef], View]
    approvals_changed: Callable[[], None]
    """Approvals were stored or withdrawn: prompts are to be shown or settled."""
    queued_behind: Callable[[Turn], Awaitable[None]]
    """An input waits for a paused turn: its author is told."""
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
            taken = await self._wires.turns.take_paused(conversation, "stopped")
            if taken is None:
                return False
            stopped = self._running[conversation] = StopSignal()
        self._wires.approvals_changed()
        stopped.request(StopCause.USER)
        await self._run(taken[0], stopped)
        self.wake(conversation)
        return True

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
        """Work on one conversation until it has nothing to do. Ends without an await after its last look."""
        try:
            while conversation in self._again and not self._halt.is_set():
                self._again.discard(conversation)
                while await self._work_once(conversation):
                    pass
        except Exception as error:  # noqa: BLE001 - one conversation's fault must not end the work on all others
            self._wires.log("conversation.crashed", level="error", error=error, conversation=conversation)
        finally:
            self._workers.pop(conversation, None)

    async def _work_once(self, conversation: ConversationId) -> bool:
        """Do the next thing; False when there is none now."""
        async with self._slots:
            if self._halt.is_set():
                return False
            work = await self._next(conversation)
            if work.superseded is not None:
                self._superseded(work.superseded)
            if work.turn is not None:
                await self._run(work.turn, self._running[conversation])
                return True
        if work.waits_for is not None:
            await self._tell_waiting(work.waits_for)
        if work.look_again is not None:
            await self._rest((work.look_again - self._wires.clock.now()).total_seconds())
            return True
        return False

    async def _next(self, conversation: ConversationId) -> NextWork:
        wait = 1.0
        while True:
            try:
                return await self._take(conversation)
            except StorageError as error:
                self._wires.log("storage.failed", level="error", error=error, conversation=conversation)
            await self._rest(wait)
            if self._halt.is_set():
                return NextWork(None)
            wait = min(wait * 2, LONGEST_WAIT)

    async def _take(self, conversation: ConversationId) -> NextWork:
        """Take the next work. A turn that is being ended by a stop is left to it; the stop wakes us after it."""
        async with self._taking:
            if conversation in self._running:
                return NextWork(None)
            work = await self._wires.turns.next(conversation, self._wires.supersedes)
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
        """Run a turn until it ends, pauses or the daemon stops; if the store refuses, wait and take it up again."""
        log = BoundLog(self._wires.log, channel=turn.place.channel, conversation=turn.conversation, turn=turn.id)
        log("turn.started", resumed=turn.resumed, origin=turn.origin)
        self._told.pop(turn.conversation, None)
        open_turn: Turn | None = turn
        try:
            while open_turn is not None:
                try:
                    await self._run_once(open_turn, signal)
                except StorageError as error:
                    log("storage.failed", level="error", error=error)
                    open_turn = await self._retake(open_turn)
                else:
                    return
        finally:
            del self._running[turn.conversation]

    async def _retake(self, turn: Turn) -> Turn | None:
        """Take a turn from the store anew once that takes a write again: before it does, no model is asked in vain.

        Returns:
            None: it is not to be worked on now, since it waits for operators or the daemon stops.
        """
        wait = 1.0
        while True:
            await self._rest(wait)
            if self._halt.is_set():
                return None
            try:
                return (await self._wires.turns.next(turn.conversation, lambda _: False)).turn
            except StorageError as error:
                self._wires.log("storage.failed", level="error", error=error, conversation=turn.conversation)
            wait = min(wait * 2, LONGEST_WAIT)

    async def _run_once(self, turn: Turn, signal: StopSignal) -> None:
        ref = TurnRef(turn=turn.id, conversation=turn.conversation, place=turn.place, reply_to=turn.reply_to)
        # Leaving the view delivers what the turn has put into the outbox.
        with self._wires.view(ref) as view:
            end = await run_tool_call_loop(self._wires.kit(turn), turn, view, signal)
        if end.final is None and signal.cause is not StopCause.SHUTDOWN:
            self._wires.log("turn.paused", channel=turn.place.channel, conversation=turn.conversation, turn=turn.id)
            self._wires.approvals_changed()

    def _superseded(self, superseded: Superseded) -> None:
        turn = superseded.turn
        self._wires.log(
            "turn.finished",
            channel=turn.place.channel,
            conversation=turn.conversation,
            turn=turn.id,
            outcome=Outcome.SUPERSEDED,
            reason=StopReason.SUPERSEDED,
            steps=turn.steps,
            input_tokens=turn.usage.input_tokens,
            output_tokens=turn.usage.output_tokens,
            cost="unpriced",
        )
        self._wires.approvals_changed()
