"""Phase D: running the calls of a round, side by side where they touch different things."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zerobot.core.errors import StorageError
from zerobot.core.events import ToolProgress, ToolStarted
from zerobot.core.ids import CallId
from zerobot.core.messages import RecordedCall, ResultCode, ToolResult
from zerobot.core.tools import Effect, ToolContext, ToolOutput
from zerobot.store.turn_rows import Turn
from zerobot.turn import notices
from zerobot.turn.authorize import Allowed
from zerobot.turn.check import resolve
from zerobot.turn.kit import Emit, TurnKit
from zerobot.turn.settle import Settler, result_of
from zerobot.turn.stop import StopCause, StopSignal, TurnStoppedError
from zerobot.turn.transcript import Transcript


@dataclass(frozen=True, slots=True)
class Ran:
    """How a call ended, for the decision what comes next."""

    result: ToolResult | None
    """None: it has none; it did not start (the daemon stops), or the store refused the result."""
    stop_turn: bool = False
    failure: StorageError | None = None


class _FrozenError(Exception):
    """Operators have stopped all tools before one of them began."""


Copies = Mapping[CallId, Sequence[RecordedCall]]
"""By call, those of the same step that ask for the same: they get its result."""


class Runner:
    """Runs allowed calls of one turn. Each result is committed as it ends, whatever the order."""

    def __init__(self, kit: TurnKit, turn: Turn, transcript: Transcript, emit: Emit, stop: StopSignal) -> None:
        self._kit = kit
        self._turn = turn
        self._transcript = transcript
        self._emit = emit
        self._stop = stop
        self._settler = Settler(kit, turn, transcript, emit)
        self._copies: Copies = {}

    async def run(self, calls: Sequence[Allowed], copies: Copies) -> list[Ran]:
        """Run calls and return how each ended, in the model's order.

        A call waits for the earlier ones that touch what it touches; the others overtake it. A call that ends the
        batch makes those after it wait, and they are skipped.

        Raises:
            StorageError: A result could not be stored; the calls that were running have ended all the same.
        """
        self._copies = copies
        tasks: list[asyncio.Task[Ran]] = []
        async with asyncio.TaskGroup() as group:
            for index, call in enumerate(calls):
                earlier = [task for task, other in zip(tasks, calls, strict=False) if _must_wait(call, other)]
                enders = [task for task, other in zip(tasks, calls, strict=False) if other.execution.stop_batch]
                work = self._after(earlier, enders, call)
                tasks.append(group.create_task(work, name=f"tool {index} {call.call.id}"))
        ran = [task.result() for task in tasks]
        for outcome in ran:
            if outcome.failure is not None:
                raise outcome.failure
        return ran

    async def _after(self, earlier: list[asyncio.Task[Ran]], enders: list[asyncio.Task[Ran]], call: Allowed) -> Ran:
        if earlier or enders:
            await asyncio.wait([*earlier, *enders])
        if enders:
            return await self._close(call, notices.SKIPPED)
        if self._stop.cause is StopCause.SHUTDOWN:
            return Ran(None)
        if self._stop.cause is not None:
            return await self._close(call, not_started(self._stop.cause))
        try:
            return await self._execute(call)
        except StorageError as error:
            return Ran(None, failure=error)

    def _has_changed(self, call: Allowed) -> bool:
        """Whether what the call would execute is another than what was judged: an earlier call may have written it."""
        if not call.execution.frozen and Effect.EXECUTE not in call.execution.effects:
            return False
        now = resolve(call.call, self._kit.tools)
        return isinstance(now, ToolResult) or now.frozen != call.execution.frozen

    async def _execute(self, call: Allowed) -> Ran:
        if self._has_changed(call):
            return await self._close(call, notices.CHANGED)
        if self._kit.access.policy().frozen:
            return await self._close(call, notices.FROZEN_BEFORE)
        if not await self._kit.turns.start_call(call.call.id, call.verdict.rule):
            # Somebody else works on this turn: what is stored says more than what we know.
            raise StorageError(f"the call {call.call.id} was started elsewhere")
        self._transcript.set_started(call.call.id)
        self._kit.log("tool.started", tool=call.call.name, rule=call.verdict.rule, tool_call=call.call.id)
        self._emit(ToolStarted(call.call.id, call.call.name, call.execution.description))
        output = await self._run_tool(call)
        result = output if isinstance(output, ToolResult) else result_of(output)
        outside = isinstance(output, ToolOutput) and output.outside_content
        stop_turn = isinstance(output, ToolOutput) and output.stop_turn
        return await self._close(call, result, outside_content=outside, stop_turn=stop_turn)

    async def _close(
        self, call: Allowed, result: ToolResult, *, outside_content: bool = False, stop_turn: bool = False
    ) -> Ran:
        try:
            kept = await self._settler.close(
                call.call,
                result,
                copies=self._copies.get(call.call.id, ()),
                repeatable=call.execution.repeatable,
                outside_content=outside_content,
            )
        except StorageError as error:
            return Ran(None, failure=error)
        return Ran(kept, stop_turn or (call.execution.stop_batch and kept.ok))

    async def _run_tool(self, call: Allowed) -> ToolOutput | ToolResult:
        """Run one tool until it ends, its time is over or the turn is stopped."""
        alive = True

        def progress(text: str) -> None:
            if alive:
                self._emit(ToolProgress(call.call.id, call.call.name, text))

        context = ToolContext(
            conversation=self._turn.conversation, turn=self._turn.id, call=call.call.id, progress=progress
        )
        task = asyncio.create_task(self._started(call, context))
        stopped = asyncio.create_task(self._stop.wait())
        frozen = asyncio.create_task(self._kit.access.until_frozen())
        try:
            waits = {task, stopped, frozen}
            await asyncio.wait(waits, timeout=call.execution.timeout, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return self._outcome(call, task)
            early = _ended_early(self._stop.cause, call.execution.timeout)
            result = notices.FROZEN_AFTER if self._stop.cause is None and frozen.done() else early
            task.cancel()
            await asyncio.wait({task}, timeout=self._kit.limits.tool_grace)
            return result
        finally:
            alive = False
            stopped.cancel()
            frozen.cancel()
            if not task.done():
                task.cancel()
                self._kit.strays.adopt(task)

    async def _started(self, call: Allowed, context: ToolContext) -> ToolOutput:
        """Start a tool inside its task, so that one that raises before it awaits anything fails like any other.

        This is the last moment at which a stop or a freeze keeps it from running, and nothing is awaited after it.
        """
        self._stop.check()
        if self._kit.access.policy().frozen:
            raise _FrozenError
        return await call.execution.run(context)

    def _outcome(self, call: Allowed, task: asyncio.Task[ToolOutput]) -> ToolOutput | ToolResult:
        if task.cancelled():
            return ToolResult(code=ResultCode.FAILED, text="The tool gave up while it ran; what it did is not known.")
        error = task.exception()
        if error is None:
            output = task.result()
            return output if isinstance(output, ToolOutput) else result_of(output)
        if isinstance(error, TurnStoppedError):
            return not_started(error.cause)
        if isinstance(error, _FrozenError):
            return notices.FROZEN_BEFORE
        self._kit.log("tool.failed", level="error", error=error, tool=call.call.name, tool_call=call.call.id)
        return ToolResult(code=ResultCode.FAILED, text=f"The tool failed: {type(error).__name__}: {error}")


def _must_wait(call: Allowed, earlier: Allowed) -> bool:
    return call.execution.accesses.conflict_with(earlier.execution.accesses)


def not_started(cause: StopCause) -> ToolResult:
    """The result of a call that a stop kept from running."""
    if cause is StopCause.SHUTDOWN:
        return notices.SHUT_DOWN_BEFORE
    return notices.STOPPED_BEFORE if cause is StopCause.USER else notices.TIMED_OUT_BEFORE


def _ended_early(cause: StopCause | None, timeout: float) -> ToolResult:
    if cause is StopCause.USER:
        return notices.STOPPED_AFTER
    if cause is StopCause.TIMEOUT:
        return notices.TIMED_OUT_AFTER
    if cause is StopCause.SHUTDOWN:
        return ToolResult(
            code=ResultCode.INTERRUPTED, text="The bot was stopped while the call ran; what it did is not known."
        )
    return ToolResult(
        code=ResultCode.TIMEOUT,
        text=f"The call was ended after {timeout:g} seconds; what it did until then is not known.",
    )
