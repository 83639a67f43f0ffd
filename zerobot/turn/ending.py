"""How a turn ends: the last message, the results that are missing, the reply and the one final, in one commit."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from zerobot.core.approvals import Withdrawal
from zerobot.core.command_text import with_prefix
from zerobot.core.errors import ProviderError, StorageError, ZerobotError
from zerobot.core.events import CallSummary, Final, Outcome, StopReason, TurnError
from zerobot.core.guards import TextBlockedError
from zerobot.core.hooks import EndTurn
from zerobot.core.ids import CallId, ReplyId, new_call_id
from zerobot.core.log import EventLog
from zerobot.core.messages import AssistantMessage, RecordedCall, ResultCode, ToolResult
from zerobot.core.model import Finish, ModelAnswer
from zerobot.core.tools import Execution
from zerobot.core.usage import Usage
from zerobot.store.history import NEVER_FINISHED
from zerobot.store.turn_rows import AttemptUsage, Ending, Turn
from zerobot.turn import notices
from zerobot.turn.check import parse_arguments, resolve
from zerobot.turn.decide import Decision
from zerobot.turn.generate import Asking
from zerobot.turn.kit import CostOf, Emit, TurnKit
from zerobot.turn.purse import BudgetError
from zerobot.turn.receipts import signed
from zerobot.turn.run import not_started
from zerobot.turn.settle import settle, unchecked
from zerobot.turn.step_hooks import HookError
from zerobot.turn.stop import StopCause
from zerobot.turn.transcript import Transcript, join_texts

OUTCOMES = {
    StopReason.DONE: Outcome.REPLIED,
    StopReason.UNKNOWN: Outcome.REPLIED,
    StopReason.STOPPED_BY_TOOL: Outcome.REPLIED,
    StopReason.LENGTH: Outcome.LIMITED,
    StopReason.PROVIDER_PAUSE: Outcome.LIMITED,
    StopReason.STEP_LIMIT: Outcome.LIMITED,
    StopReason.STOPPED_BY_REPEAT: Outcome.LIMITED,
    StopReason.BUDGET: Outcome.LIMITED,
    StopReason.ABORTED: Outcome.LIMITED,
    StopReason.CANCELLED: Outcome.STOPPED,
    StopReason.FILTERED: Outcome.FAILED,
    StopReason.BLOCKED_INPUT: Outcome.FAILED,
    StopReason.BLOCKED_OUTPUT: Outcome.FAILED,
    StopReason.SUPERSEDED: Outcome.SUPERSEDED,
    StopReason.RESTARTED: Outcome.FAILED,
    StopReason.ERROR: Outcome.FAILED,
}
NOTICES = {
    StopReason.LENGTH: notices.CUT,
    StopReason.FILTERED: notices.FILTERED,
    StopReason.PROVIDER_PAUSE: notices.PROVIDER_PAUSED,
    StopReason.BUDGET: notices.CUT_BY_BUDGET,
}
CLOSINGS = {
    StopReason.STEP_LIMIT: (notices.STEP_LIMIT, notices.STEP_LIMIT_SILENT),
    StopReason.STOPPED_BY_REPEAT: (notices.REPEATED, notices.REPEATED_SILENT),
}
"""What stands beside the answer to the closing request, and what stands alone when there is none."""
HOOK_PATIENCE = 5.0
"""Seconds that the result hooks have for each call that a turn leaves open at its end."""


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """How the work on a turn ended for now."""

    final: Final | None
    """None: it is paused, or the daemon stops; it goes on later."""
    reply: ReplyId | None = None
    """What is to be delivered."""


@dataclass(slots=True)
class Progress:
    """How far a turn has come in this run."""

    steps: int
    refused: list[AttemptUsage]
    """Of an earlier run of it, whose step the store refused."""
    attempts: list[AttemptUsage] = field(default_factory=list)
    """Recorded with earlier steps of this run."""
    asking: Asking | None = None
    """The step that is being asked for: what was shown of it and what it cost is not recorded yet."""
    aside: Asking | None = None
    """What was asked beside the steps, if it is not recorded yet: nobody sees its text, but it costs."""
    sealed: int = -1
    """Steps whose answer is stored. A step that was given up is no step of the turn: it will be asked for again."""
    provider_paused: bool = False

    def __post_init__(self) -> None:
        if self.sealed < 0:
            self.sealed = self.steps

    @property
    def pending(self) -> Sequence[AttemptUsage]:
        """Attempts that are not recorded yet."""
        asked = [attempt for asking in (self.aside, self.asking) if asking for attempt in asking.attempts]
        return [*self.refused, *asked]

    def recorded(self) -> None:
        """The current step's attempts were stored."""
        self.attempts.extend(self.pending)
        self.refused = []
        self.aside = None
        self.asking = None
        self.sealed = self.steps


class Ender:
    """Ends one turn. Every way to end goes through `_finish`."""

    def __init__(self, kit: TurnKit, turn: Turn, transcript: Transcript, emit: Emit, progress: Progress) -> None:
        self._kit = kit
        self._turn = turn
        self._transcript = transcript
        self._emit = emit
        self._progress = progress
        self._planned: Final | None = None
        """What is told when the end is stored, from the moment at which it is being stored."""
        self._told = False

    async def answered(self, answer: ModelAnswer, decision: Decision) -> TurnEnd:
        """The answer is the last one: complete, cut off, filtered, or of an unknown kind."""
        reason = decision.stop
        assert reason is not None, "the decision ends the turn"
        notice = NOTICES.get(reason, "")
        if reason is StopReason.FILTERED:
            # Nothing of a flagged answer is kept: sent again, it would be flagged again.
            message = AssistantMessage(seq=0, turn=self._turn.id, text=notice)
            return await self._finish(reason, message, error=TurnError("filtered", "the provider's content filter"))
        message = answer_message(self._turn, answer)
        if message.says_nothing:
            notice = notice or notices.NO_TEXT
        results = [(call, notices.CUT_OFF) for call in message.calls]
        return await self._finish(reason, replace(message, notice=notice), notice=notice, results=results)

    async def closed(self, reason: StopReason, closing: ModelAnswer | None) -> TurnEnd:
        """The turn has come to a limit; `closing` is the answer to the closing request, if there was one."""
        said = closing.text if closing and closing.finish is not Finish.FILTER else ""
        text = said if said.strip() else ""
        spoken, silent = CLOSINGS[reason]
        notice = (spoken if text else silent).format(steps=self._kit.limits.max_steps)
        message = AssistantMessage(seq=0, turn=self._turn.id, text=text or notice, notice=notice if text else "")
        return await self._finish(reason, message, notice=notice if text else "")

    async def by_tool(self) -> TurnEnd:
        """A tool ended the turn; what was said stands as the reply."""
        said = self._transcript.text_since(self._turn.id, self._turn.settled_seq)
        return await self._finish(StopReason.STOPPED_BY_TOOL, None, notice="" if said else notices.TOOL_ENDED)

    async def by_hook(self, said: EndTurn, answer: ModelAnswer | None = None) -> TurnEnd:
        """A hook ended the turn after a step; `answer` is what the model said in it, if that is not stored yet."""
        message = answer_message(self._turn, answer) if answer else None
        if message is not None:
            message = replace(message, notice=said.notice)
        return await self._finish(said.reason, message, notice=said.notice)

    async def refused_by_hook(self, error: HookError, answer: ModelAnswer | None = None) -> TurnEnd:
        """A hook said no to a step, or failed; `answer` is what the model said before, if that is not stored yet."""
        message = answer_message(self._turn, answer) if answer else None
        return await self._failed(error.user_text, TurnError(error.code, str(error)), message)

    async def paused(self, reply: ReplyId | None, cause: StopCause | None) -> TurnEnd:
        """The turn waits for operators, unless its user stopped it while the pause was being stored."""
        if cause is not StopCause.USER:
            return TurnEnd(None, reply)
        await self._take_back(Withdrawal.STOPPED)
        return await self.stopped(cause)

    async def stopped(self, cause: StopCause) -> TurnEnd:
        """The turn was stopped from outside. When the daemon stops, it stays open and goes on at the next start."""
        if cause is StopCause.SHUTDOWN:
            await self._kit.turns.suspend(self._turn, self._progress.pending, self._progress.sealed)
            return TurnEnd(None)
        user = cause is StopCause.USER
        notice = notices.STOPPED if user else notices.TIMED_OUT
        reason = StopReason.CANCELLED if user else StopReason.ABORTED
        started = notices.STOPPED_AFTER if user else notices.TIMED_OUT_AFTER
        results = self._close(not_started(cause), started)
        return await self._finish(reason, self._partial(notice), notice=notice, results=results)

    async def pause_not_saved(self) -> TurnEnd:
        """An approval was needed and the pause could not be stored."""
        error = TurnError("storage", "the pause could not be saved")
        return await self._failed(StorageError.user_text, error)

    async def model_failed(self, error: ProviderError) -> TurnEnd:
        """No model answered."""
        words = with_prefix(error.user_text, self._kit.command_prefix)
        return await self._failed(words, TurnError(error.code, str(error)))

    async def over_budget(self, error: BudgetError, answer: ModelAnswer | None = None) -> TurnEnd:
        """A spending limit ends the turn; `answer` is the last one that was paid for: its calls do not run."""
        notice = f"_({error.user_text})_"
        message = self._partial(notice)
        if answer is not None:
            message = replace(answer_message(self._turn, answer), notice=notice)
        results = [(call, notices.OVER_BUDGET) for call in message.calls] if message else []
        return await self._finish(StopReason.BUDGET, message, notice=notice, results=results)

    async def blocked(self, blocked: TextBlockedError) -> TurnEnd:
        """A guard has blocked the answer: what people read in its place is stored, with a note of the reason."""
        if self._progress.asking is not None:
            self._progress.asking.take_back()
        note = notices.WITHHELD_ANSWER.format(code=blocked.block.code)
        message = AssistantMessage(seq=0, turn=self._turn.id, text=blocked.block.text, notice=note)
        error = TurnError("blocked_output", str(blocked))
        return await self._finish(StopReason.BLOCKED_OUTPUT, message, error=error)

    async def broken(self, error: Exception) -> TurnEnd:
        """A bug, or something that nobody foresaw.

        It may have come right after a commit, so what is stored is looked at anew: a turn that has ended is told as it
        was stored, an answer that is stored is not stored again, and a pause that nobody knows of yet is taken back.
        """
        opened = await self._kit.turns.open_turn(self._turn.conversation)
        if self._planned is not None and opened is None:
            return await self._tell(self._planned, None)
        if opened is not None and opened.steps > self._progress.sealed:
            self._progress.recorded()
        await self._take_back(Withdrawal.FAILED)
        await self._reload()
        words = error.user_text if isinstance(error, ZerobotError) else notices.INTERNAL
        return await self._failed(words, TurnError("internal", f"{type(error).__name__}: {error}"))

    async def _take_back(self, reason: Withdrawal) -> None:
        """Withdraw what the turn has just asked for, if it is paused."""
        taken = await self._kit.turns.take_paused(self._turn.conversation, reason)
        if taken is not None:
            self._turn = taken

    async def _reload(self) -> None:
        try:
            self._transcript.load((await self._kit.turns.history(self._turn)).messages)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001 - a damaged history may be what broke the turn; it ends all the same
            self._kit.log("history.unreadable", level="error", error=error)

    async def restarted(self) -> TurnEnd:
        """The turn was open at two crashes in a row: it may be what brings the process down."""
        notice = notices.RESTARTED
        message = AssistantMessage(seq=0, turn=self._turn.id, text=notice)
        return await self._finish(StopReason.RESTARTED, message, results=self._close(notices.FAILED_BEFORE))

    async def _failed(self, words: str, error: TurnError, message: AssistantMessage | None = None) -> TurnEnd:
        notice = notices.failure(words, self._turn.id)
        results = self._close(notices.FAILED_BEFORE)
        message = self._partial(notice) if message is None else replace(message, notice=notice)
        return await self._finish(StopReason.ERROR, message, notice=notice, results=results, error=error)

    def _partial(self, notice: str) -> AssistantMessage | None:
        """What people saw of an answer that broke off, so that the history equals what the chat shows."""
        shown = self._progress.asking.shown if self._progress.asking else ""
        if not shown.strip():
            return None
        return AssistantMessage(seq=0, turn=self._turn.id, text=shown, partial=True, notice=notice)

    def _close(self, result: ToolResult, started: ToolResult = NEVER_FINISHED) -> list[tuple[RecordedCall, ToolResult]]:
        opened = self._transcript.open_round
        return [(call, started if call.started else result) for call in opened.open_calls] if opened else []

    async def _finish(
        self,
        reason: StopReason,
        message: AssistantMessage | None,
        *,
        notice: str = "",
        results: Sequence[tuple[RecordedCall, ToolResult]] = (),
        error: TurnError | None = None,
    ) -> TurnEnd:
        turn, progress = self._turn, self._progress
        said = self._transcript.text_since(turn.id, turn.settled_seq)
        stored = None if message is None or message.says_nothing else message
        closed = {call.id: await self._settled(call, result) for call, result in results}
        calls = self._calls(stored, closed)
        receipts = notices.receipts(calls) if self._kit.show_receipts else ""
        text = join_texts([turn.preface, said, message.text if message else "", notice, receipts])
        ending = Ending(
            outcome=OUTCOMES[reason],
            reason=reason,
            reply=text,
            error_code=error.code if error else "",
            results=tuple(closed.items()),
        )
        final = self._planned = self._final(ending, calls, error)
        reply = await self._kit.turns.finish(turn, ending, stored, progress.pending, progress.steps)
        progress.recorded()
        if reply is None and ending.reply:
            # Another process has ended it; the final is told there.
            return TurnEnd(None)
        return await self._tell(final, reply)

    async def _settled(self, call: RecordedCall, result: ToolResult) -> ToolResult:
        """What is kept of a result at the end. A hook that hangs does not keep the turn from ending."""
        try:
            async with asyncio.timeout(HOOK_PATIENCE):
                return await settle(self._kit, self._turn, call, result)
        except TimeoutError as error:
            self._kit.log("hook.failed", level="error", error=error, hook="finalize", tool_call=call.id)
            kept = unchecked(result)
            return signed(self._kit, self._turn, call, kept.code, kept.text)

    async def _tell(self, final: Final, reply: ReplyId | None) -> TurnEnd:
        """Tell of an end that is stored. The one final comes first: nothing that fails afterwards takes it away."""
        if self._told:
            return TurnEnd(final, reply)
        self._told = True
        self._emit(final)
        await log_finished(self._kit.log, self._kit.cost, final)
        return TurnEnd(final, reply)

    def _calls(
        self, stored: AssistantMessage | None, closed: Mapping[CallId, ToolResult]
    ) -> list[tuple[RecordedCall, ToolResult]]:
        """All calls of the turn with their results, those of its last message included."""
        calls = [*self._transcript.calls(self._turn.id), *(stored.calls if stored else ())]
        return [(call, call.result or closed[call.id]) for call in calls]

    def _final(
        self, ending: Ending, calls: Sequence[tuple[RecordedCall, ToolResult]], error: TurnError | None
    ) -> Final:
        attempts = [*self._progress.attempts, *self._progress.pending]
        return Final(
            turn=self._turn.id,
            text=ending.reply,
            reason=ending.reason,
            outcome=ending.outcome,
            steps=self._progress.steps,
            usage=self._turn.usage + total(attempts),
            failed_usage=self._turn.failed_usage + total([a for a in attempts if a.failed]),
            calls=tuple(CallSummary(id=call.id, name=call.name, code=result.code) for call, result in calls),
            error=error,
            sources=self._sources(calls),
        )

    def _sources(self, calls: Sequence[tuple[RecordedCall, ToolResult]]) -> tuple[str, ...]:
        """Where the turn has read, over its whole life: what is stored of its calls says it, also after a restart."""
        read = [call for call, result in calls if result.code is ResultCode.OK]
        resolved = [resolve(call, self._kit.tools) for call in read]
        places = [each.destination for each in resolved if isinstance(each, Execution)]
        return tuple(dict.fromkeys(place for place in places if place))


async def log_finished(log: EventLog, cost_of: CostOf, final: Final) -> None:
    """Log the end of a turn."""
    try:
        cost = await cost_of(final.turn)
    except StorageError:
        cost = "unknown"
    log(
        "turn.finished",
        level="info" if final.error is None else "warning",
        outcome=final.outcome,
        reason=final.reason,
        steps=final.steps,
        sources=len(final.sources),
        input_tokens=final.usage.input_tokens,
        output_tokens=final.usage.output_tokens,
        cost=cost,
        code=final.error.code if final.error else None,
        why=final.error.message if final.error else None,
    )


def final_of_superseded(turn: Turn) -> Final:
    """What is told of a paused turn that a new message ended: it says nothing any more."""
    return Final(
        turn=turn.id,
        text="",
        reason=StopReason.SUPERSEDED,
        outcome=Outcome.SUPERSEDED,
        steps=turn.steps,
        usage=turn.usage,
        failed_usage=turn.failed_usage,
    )


def total(attempts: Sequence[AttemptUsage]) -> Usage:
    """The tokens of some model calls."""
    return sum((attempt.usage for attempt in attempts if attempt.usage), start=Usage())


def answer_message(turn: Turn, answer: ModelAnswer) -> AssistantMessage:
    """Bring an answer into the message that is stored. Each call gets an id of ours; its own is kept for the wire."""
    calls = tuple(
        RecordedCall(
            id=new_call_id(),
            wire_id=call.provider_id,
            name=call.name,
            arguments=parse_arguments(call.raw_arguments) or {},
            raw_arguments=call.raw_arguments,
            position=position,
        )
        for position, call in enumerate(answer.calls)
    )
    counted = answer.usage.input_tokens + answer.usage.output_tokens if answer.usage else 0
    return AssistantMessage(
        seq=0, turn=turn.id, text=answer.text, calls=calls, reasoning=answer.reasoning, context_tokens=counted
    )


async def cut_off(kit: TurnKit, turn: Turn, message: AssistantMessage) -> AssistantMessage:
    """An answer that broke off: what it asks for may be incomplete, so it is on record, and does not run."""
    calls = [replace(call, result=await settle(kit, turn, call, notices.CUT_OFF)) for call in message.calls]
    return replace(message, calls=tuple(calls))
