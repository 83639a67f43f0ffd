"""`run_tool_call_loop`: from what is stored of a turn to its end or its next pause."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from zerobot.core.errors import ProviderError, StorageError
from zerobot.core.events import (
    StepFinished,
    StepReason,
    StepStarted,
    StopReason,
    TextShown,
    TurnEvent,
    TurnStarted,
    UsageCounted,
)
from zerobot.core.guards import TextBlockedError
from zerobot.core.log import BoundLog, EventLog
from zerobot.core.messages import AssistantMessage
from zerobot.core.model import ModelAnswer, ModelRequest
from zerobot.core.usage import Usage
from zerobot.store.turn_rows import Turn
from zerobot.turn.decide import Decision, decide
from zerobot.turn.ending import Ender, Progress, TurnEnd, answer_message, cut_off, total
from zerobot.turn.generate import Asking
from zerobot.turn.guards import Answers, guarded_lines
from zerobot.turn.kit import Emit, TurnKit
from zerobot.turn.prepare import load_transcript, prepare_inputs, request_of
from zerobot.turn.purse import Account, BudgetError
from zerobot.turn.receipts import genuine_receipts
from zerobot.turn.recover import Mender, with_note
from zerobot.turn.round import RoundEnd, run_round
from zerobot.turn.steering import go_on_with_waiting, join_waiting
from zerobot.turn.step_hooks import HookError, StepHooks
from zerobot.turn.stop import StopCause, StopSignal, TurnStoppedError
from zerobot.turn.summary import aside, make_room, needs_room
from zerobot.turn.transcript import Transcript


async def run_tool_call_loop(kit: TurnKit, turn: Turn, emit: Emit, stop: StopSignal) -> TurnEnd:
    """Work on a turn until it ends, pauses or is stopped.

    It is a function of what is stored: calls without a result are worked on, else the model is asked. A fresh turn,
    one that goes on after an approval and one that a crash interrupted take the same way.

    Args:
        kit: What the turn works with.
        turn: The turn, taken from the store just before.
        emit: Takes its events.
        stop: Stops it from outside.

    Raises:
        StorageError: The store refused; the turn is still open there and can be worked on again.
    """
    ids = {"channel": turn.place.channel, "conversation": turn.conversation, "turn": turn.id}
    kit = replace(kit, log=BoundLog(kit.log, **ids))
    transcript = Transcript()
    answers = Answers(kit.guards, turn, genuine_receipts(transcript, turn, kit.receipt_key), kit.log)
    emit = guarded_lines(_isolated(emit, kit.log), answers)
    progress = Progress(turn.steps, kit.unrecorded.take(turn.id))
    end = Ender(kit, turn, transcript, emit, progress)
    emit(TurnStarted(turn.id, turn.resumed))
    try:
        return await _to_an_end(_Loop(kit, turn, transcript, emit, stop, progress, end, answers), end)
    except StorageError:
        kit.unrecorded.keep(turn.id, progress.pending)
        raise
    except Exception as error:  # noqa: BLE001 - a bug ends the turn with a word to the chat instead of silence
        kit.log("turn.crashed", level="error", error=error)
        return await end.broken(error)


async def _to_an_end(loop: "_Loop", end: Ender) -> TurnEnd:
    """Run a loop, and end its turn in the way that fits what it raises."""
    try:
        return await loop.run()
    except TurnStoppedError as stopped:
        return await end.stopped(stopped.cause)
    except HookError as error:
        return await end.refused_by_hook(error)
    except TextBlockedError as blocked:
        return await end.blocked(blocked)
    except BudgetError as error:
        return await end.over_budget(error)
    except ProviderError as error:
        return await end.model_failed(error)


def _isolated(emit: Emit, log: EventLog) -> Emit:
    """Keep whoever watches a turn from hurting it (turn-engine spec K8)."""

    def isolated(event: TurnEvent) -> None:
        try:
            emit(event)
        except Exception as error:  # noqa: BLE001 - a watcher may raise anything; the turn does not care
            log("listener.failed", level="error", error=error, turn_event=type(event).__name__)

    return isolated


@contextmanager
def _time_limit(seconds: float, stop: StopSignal) -> Iterator[None]:
    """Stop the turn when its time is over."""
    timer = asyncio.get_running_loop().call_later(seconds, stop.request, StopCause.TIMEOUT)
    try:
        yield
    finally:
        timer.cancel()


@dataclass(frozen=True, slots=True)
class _Asked:
    """What this run asked a model for, and what that took."""

    began: float
    """Monotonic seconds."""
    model_seconds: float
    """Until the answer was whole, failed attempts and waits between them included."""
    usage: Usage

    def fields(self, now: float) -> dict[str, Any]:
        """What the log says of it, `now` being monotonic seconds."""
        return {
            "input_tokens": self.usage.input_tokens,
            "output_tokens": self.usage.output_tokens,
            "model_seconds": round(self.model_seconds, 3),
            "seconds": round(now - self.began, 3),
        }


class _Loop:
    """Steps of one turn, one after another."""

    def __init__(
        self,
        kit: TurnKit,
        turn: Turn,
        transcript: Transcript,
        emit: Emit,
        stop: StopSignal,
        progress: Progress,
        end: Ender,
        answers: Answers,
    ) -> None:
        self._kit = kit
        self._turn = turn
        self._transcript = transcript
        self._emit = emit
        self._stop = stop
        self._progress = progress
        self._end = end
        self._answers = answers
        self._hooks = StepHooks(kit, turn)
        self._mender = Mender(emit, kit.log)
        self._note = ""
        """What the model is to read with the next request: a hook lets the turn go on."""
        self._asked: _Asked | None = None
        """Of the step that is not sealed yet; None: an earlier run asked for it."""

    async def run(self) -> TurnEnd:
        """Load what is stored, then go on until the turn ends or pauses.

        Raises:
            TurnStoppedError: It was stopped.
            ProviderError: No model answered.
            BudgetError: A spending limit stands in the way.
            HookError: A hook does not let it go on.
            StorageError: The store refused.
        """
        turn, transcript = self._turn, self._transcript
        await load_transcript(self._kit, turn, transcript)
        said = transcript.text_since(turn.id, turn.settled_seq)
        if said:
            self._emit(TextShown(said))
        if turn.crashes > 1:
            return await self._end.restarted()
        with _time_limit(self._kit.limits.timeout, self._stop):
            preparing = prepare_inputs(self._kit, turn, transcript, seen=turn.steps > 0)
            await self._stop.unless_stopped(preparing)
            return await self._steps()

    async def _steps(self) -> TurnEnd:
        while True:
            self._stop.check()
            opened = self._transcript.open_round
            if opened is not None:
                end = await self._round(opened)
            elif self._at_limit():
                end = await self._close(StopReason.STEP_LIMIT)
            else:
                end = await self._step()
            if end is not None:
                return end

    async def _round(self, opened: AssistantMessage) -> TurnEnd | None:
        """Work on the calls of an answer; None when the turn goes on."""
        outcome = await run_round(self._kit, self._turn, self._transcript, self._emit, self._stop, opened)
        if outcome.end is RoundEnd.PAUSED:
            return await self._end.paused(outcome.reply, self._stop.cause)
        self._seal(StepReason.TOOL_USE)
        if outcome.end is RoundEnd.NOT_SAVED:
            return await self._end.pause_not_saved()
        if outcome.end is RoundEnd.STOP_TURN:
            return await self._end.by_tool()
        end = await self._after_step()
        if end is None and outcome.end is RoundEnd.REPEATS:
            return await self._close(StopReason.STOPPED_BY_REPEAT)
        return end

    async def _after_step(self) -> TurnEnd | None:
        """Let the hooks end the turn after a step whose answer is stored."""
        ended = await self._stop.unless_stopped(self._hooks.after(self._progress.steps, self._transcript.messages))
        return None if ended is None else await self._end.by_hook(ended)

    def _at_limit(self) -> bool:
        limit = self._kit.limits.max_steps
        return bool(limit) and self._progress.steps >= limit

    async def _step(self) -> TurnEnd | None:
        """Ask the model once; None when the turn goes on."""
        await self._make_room()
        await join_waiting(self._kit, self._turn, self._transcript, self._stop)
        request = with_note(request_of(self._kit, self._transcript), self._note)
        before = self._hooks.before(self._progress.steps + 1, request.messages)
        request = with_note(request, await self._stop.unless_stopped(before))
        self._note = ""
        self._progress.steps += 1
        self._emit(StepStarted(self._progress.steps))
        asking, answer = await self._ask("step", request)
        decision = decide(answer, paused_before=self._progress.provider_paused, short=asking.short)
        if decision.stop is not None:
            return await self._last_step(answer, decision)
        used_up = await self._used_up(asking)
        if used_up is not None:
            self._seal(decision.step)
            return await self._end.over_budget(used_up, answer)
        message = answer_message(self._turn, answer)
        if decision.step is StepReason.PAUSED:
            self._progress.provider_paused = True
            await self._record(await cut_off(self._kit, self._turn, message))
            self._seal(decision.step)
            return await self._after_step()
        await self._record(message)
        return None

    async def _used_up(self, asking: Asking) -> BudgetError | None:
        """The limit that the newest answer used up; one for which nothing was kept uses up none."""
        if asking.attempts[-1].reservation is None:
            return None
        return await self._kit.purse.used_up(self._turn.payer)

    async def _make_room(self) -> None:
        """Sum up older messages if the next request comes near to the end of the model's window."""
        if needs_room(self._kit, self._transcript):
            asking = self._progress.aside = aside(self._kit, self._turn.payer)
            work = make_room(self._kit, self._turn, self._transcript, self._emit, asking)
            await self._stop.unless_stopped(work)

    async def _last_step(self, answer: ModelAnswer, decision: Decision) -> TurnEnd | None:
        """The model is done. Its answer is whole, so that a stop comes too late to change that."""
        self._seal(decision.step)
        try:
            ended = await self._stop.unless_stopped(self._hooks.after(self._progress.steps, self._transcript.messages))
        except TurnStoppedError:
            return await self._end.answered(answer, decision)
        is_done = decision.stop is StopReason.DONE
        if is_done and ended is not None:
            return await self._end.by_hook(ended, answer)
        if not is_done or self._at_limit():
            return await self._end.answered(answer, decision)
        message = answer_message(self._turn, answer)
        if await go_on_with_waiting(self._kit, self._turn, self._transcript, self._stop, self._progress, message):
            return None
        return await self._end_unless_prolonged(answer, decision)

    async def _end_unless_prolonged(self, answer: ModelAnswer, decision: Decision) -> TurnEnd | None:
        """End the turn with its last answer, unless a hook wants more of the model."""
        steps, messages = self._progress.steps, self._transcript.messages
        try:
            said = await self._stop.unless_stopped(self._hooks.go_on(steps, messages, answer.text))
        except TurnStoppedError:
            said = None
        except HookError as error:
            return await self._end.refused_by_hook(error, answer)
        if said is None:
            return await self._end.answered(answer, decision)
        await self._record(answer_message(self._turn, answer))
        self._note = said.note
        return None

    async def _record(self, message: AssistantMessage) -> None:
        progress = self._progress
        kept = None if message.says_nothing else message
        stored = await self._kit.turns.record_step(self._turn, kept, progress.pending, progress.steps)
        progress.recorded()
        if stored is not None:
            self._transcript.add(stored)

    async def _ask(self, purpose: str, request: ModelRequest) -> tuple[Asking, ModelAnswer]:
        account = Account(self._kit.purse, self._turn.payer, purpose)
        asking = Asking(self._emit, self._kit.clock, self._kit.log, account, self._answers.begin)
        self._progress.asking = asking
        began = self._kit.clock.monotonic()
        asked = asking.answer(self._mender.ready(request), self._kit.route, self._mender.mend)
        answer = await self._stop.unless_stopped(asked)
        self._mender.answered()
        failed = [attempt for attempt in asking.attempts if attempt.failed]
        usage = total(asking.attempts)
        self._asked = _Asked(began, self._kit.clock.monotonic() - began, usage)
        self._emit(UsageCounted(self._progress.steps, usage, total(failed)))
        return asking, answer

    async def _close(self, reason: StopReason) -> TurnEnd:
        """The closing request: no tools, answer from what there is. Its failure is no failure of the turn."""
        try:
            _, answer = await self._ask("closing", request_of(self._kit, self._transcript, closing=True))
        except ProviderError as error:
            self._kit.log("turn.closing_failed", level="warning", error=error)
            return await self._end.closed(reason, None)
        return await self._end.closed(reason, answer)

    def _seal(self, reason: StepReason) -> None:
        self._emit(StepFinished(self._progress.steps, reason))
        spent = {} if self._asked is None else self._asked.fields(self._kit.clock.monotonic())
        self._asked = None
        self._kit.log("step.finished", step=self._progress.steps, reason=reason, **spent)
