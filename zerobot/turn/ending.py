"""How a turn ends: the last message, the results that are missing, the reply and the one final, in one commit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from zerobot.core.errors import ProviderError, StorageError, ZerobotError
from zerobot.core.events import CallSummary, Final, Outcome, StopReason, TurnError
from zerobot.core.ids import CallId, ReplyId, new_call_id
from zerobot.core.messages import AssistantMessage, RecordedCall, ToolResult
from zerobot.core.model import Finish, ModelAnswer
from zerobot.core.usage import Usage
from zerobot.store.turn_rows import AttemptUsage, Ending, Turn
from zerobot.turn import notices
from zerobot.turn.check import parse_arguments
from zerobot.turn.decide import Decision
from zerobot.turn.generate import Asking
from zerobot.turn.kit import Emit, TurnKit
from zerobot.turn.run import not_started
from zerobot.turn.stop import StopCause
from zerobot.turn.transcript import Transcript, join_texts

OUTCOMES = {
    StopReason.DONE: Outcome.REPLIED,
    StopReason.UNKNOWN: Outcome.REPLIED,
    StopReason.STOPPED_BY_TOOL: Outcome.REPLIED,
    StopReason.LENGTH: Outcome.LIMITED,
    StopReason.PROVIDER_PAUSE: Outcome.LIMITED,
    StopReason.STEP_LIMIT: Outcome.LIMITED,
    StopReason.ABORTED: Outcome.LIMITED,
    StopReason.CANCELLED: Outcome.STOPPED,
    StopReason.FILTERED: Outcome.FAILED,
    StopReason.RESTARTED: Outcome.FAILED,
    StopReason.ERROR: Outcome.FAILED,
}
NOTICES = {
    StopReason.LENGTH: notices.CUT,
    StopReason.FILTERED: notices.FILTERED,
    StopReason.PROVIDER_PAUSE: notices.PROVIDER_PAUSED,
}


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
    attempts: list[AttemptUsage]
    """Recorded with earlier steps of this run."""
    asking: Asking | None = None
    """The step that is being asked for: what was shown of it and what it cost is not recorded yet."""
    provider_paused: bool = False

    @property
    def pending(self) -> Sequence[AttemptUsage]:
        """Attempts that are not recorded yet."""
        return self.asking.attempts if self.asking else ()

    def recorded(self) -> None:
        """The current step's attempts were stored."""
        self.attempts.extend(self.pending)
        self.asking = None


class Ender:
    """Ends one turn. Every way to end goes through `_finish`."""

    def __init__(self, kit: TurnKit, turn: Turn, transcript: Transcript, emit: Emit, progress: Progress) -> None:
        self._kit = kit
        self._turn = turn
        self._transcript = transcript
        self._emit = emit
        self._progress = progress

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
        results = [(call.id, notices.CUT_OFF) for call in message.calls]
        return await self._finish(reason, replace(message, notice=notice), notice=notice, results=results)

    async def at_step_limit(self, closing: ModelAnswer | None) -> TurnEnd:
        """The step limit is reached; `closing` is the answer to the closing request, if there was one."""
        said = closing.text if closing and closing.finish is not Finish.FILTER else ""
        text = said if said.strip() else ""
        words = notices.STEP_LIMIT if text else notices.STEP_LIMIT_SILENT
        notice = words.format(steps=self._kit.limits.max_steps)
        message = AssistantMessage(seq=0, turn=self._turn.id, text=text or notice, notice=notice if text else "")
        return await self._finish(StopReason.STEP_LIMIT, message, notice=notice if text else "")

    async def by_tool(self) -> TurnEnd:
        """A tool ended the turn; what was said stands as the reply."""
        said = self._transcript.text_since(self._turn.id, self._turn.settled_seq)
        return await self._finish(StopReason.STOPPED_BY_TOOL, None, notice="" if said else notices.TOOL_ENDED)

    async def stopped(self, cause: StopCause) -> TurnEnd:
        """The turn was stopped from outside. When the daemon stops, it stays open and goes on at the next start."""
        if cause is StopCause.SHUTDOWN:
            await self._kit.turns.suspend(self._turn, self._progress.pending, self._progress.steps)
            return TurnEnd(None)
        user = cause is StopCause.USER
        notice = notices.STOPPED if user else notices.TIMED_OUT
        reason = StopReason.CANCELLED if user else StopReason.ABORTED
        return await self._finish(reason, self._partial(notice), notice=notice, results=self._close(not_started(cause)))

    async def pause_not_saved(self) -> TurnEnd:
        """An approval was needed and the pause could not be stored."""
        error = TurnError("storage", "the pause could not be saved")
        return await self._failed(notices.ERROR_MARK + StorageError.user_text, error)

    async def model_failed(self, error: ProviderError) -> TurnEnd:
        """No model answered."""
        notice = notices.ERROR_MARK + error.user_text
        return await self._failed(notice, TurnError(error.code, str(error)))

    async def broken(self, error: Exception) -> TurnEnd:
        """A bug, or something that nobody foresaw."""
        words = notices.INTERNAL.format(turn=self._turn.id)
        if isinstance(error, ZerobotError):
            words = error.user_text
        return await self._failed(notices.ERROR_MARK + words, TurnError("internal", f"{type(error).__name__}: {error}"))

    async def restarted(self) -> TurnEnd:
        """The turn was open at two crashes in a row: it may be what brings the process down."""
        notice = notices.RESTARTED
        message = AssistantMessage(seq=0, turn=self._turn.id, text=notice)
        return await self._finish(StopReason.RESTARTED, message, results=self._close(notices.STOPPED_BEFORE))

    async def _failed(self, notice: str, error: TurnError) -> TurnEnd:
        results = self._close(notices.SKIPPED)
        return await self._finish(StopReason.ERROR, self._partial(notice), notice=notice, results=results, error=error)

    def _partial(self, notice: str) -> AssistantMessage | None:
        """What people saw of an answer that broke off, so that the history equals what the chat shows."""
        shown = self._progress.asking.shown if self._progress.asking else ""
        if not shown.strip():
            return None
        return AssistantMessage(seq=0, turn=self._turn.id, text=shown, partial=True, notice=notice)

    def _close(self, result: ToolResult) -> list[tuple[CallId, ToolResult]]:
        opened = self._transcript.open_round
        return [(call.id, result) for call in opened.open_calls] if opened else []

    async def _finish(
        self,
        reason: StopReason,
        message: AssistantMessage | None,
        *,
        notice: str = "",
        results: Sequence[tuple[CallId, ToolResult]] = (),
        error: TurnError | None = None,
    ) -> TurnEnd:
        turn, progress = self._turn, self._progress
        said = self._transcript.text_since(turn.id, turn.settled_seq)
        text = join_texts([turn.preface, said, message.text if message else "", notice])
        stored = None if message is None or message.says_nothing else message
        ending = Ending(
            outcome=OUTCOMES[reason],
            reason=reason,
            reply=text,
            error_code=error.code if error else "",
            results=tuple(results),
        )
        reply = await self._kit.turns.finish(turn, ending, stored, progress.pending, progress.steps)
        progress.recorded()
        final = self._final(text, ending, stored, error)
        await self._log(final)
        self._emit(final)
        return TurnEnd(final, reply)

    def _final(self, text: str, ending: Ending, stored: AssistantMessage | None, error: TurnError | None) -> Final:
        results = dict(ending.results)
        calls = [*self._transcript.calls(self._turn.id), *(stored.calls if stored else ())]
        attempts = self._progress.attempts
        return Final(
            turn=self._turn.id,
            text=text,
            reason=ending.reason,
            outcome=ending.outcome,
            steps=self._progress.steps,
            usage=self._turn.usage + total(attempts),
            failed_usage=self._turn.failed_usage + total([a for a in attempts if a.failed]),
            calls=tuple(_summary(call, results) for call in calls),
            error=error,
        )

    async def _log(self, final: Final) -> None:
        self._kit.log(
            "turn.finished",
            level="info" if final.error is None else "warning",
            outcome=final.outcome,
            reason=final.reason,
            steps=final.steps,
            input_tokens=final.usage.input_tokens,
            output_tokens=final.usage.output_tokens,
            cost=await self._kit.cost(final.turn),
            code=final.error.code if final.error else None,
            why=final.error.message if final.error else None,
        )


def total(attempts: Sequence[AttemptUsage]) -> Usage:
    """The tokens of some model calls."""
    return sum((attempt.usage for attempt in attempts if attempt.usage), start=Usage())


def _summary(call: RecordedCall, results: dict[CallId, ToolResult]) -> CallSummary:
    result = call.result or results[call.id]
    return CallSummary(id=call.id, name=call.name, code=result.code)


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
    return AssistantMessage(seq=0, turn=turn.id, text=answer.text, calls=calls, reasoning=answer.reasoning)
