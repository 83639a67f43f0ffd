"""`run_tool_call_loop`: from what is stored of a turn to its end or its next pause."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from zerobot.core.errors import ProviderError, StorageError
from zerobot.core.events import (
    StepFinished,
    StepReason,
    StepStarted,
    TextShown,
    TurnEvent,
    TurnStarted,
    UsageCounted,
)
from zerobot.core.log import BoundLog, EventLog
from zerobot.core.model import ModelAnswer
from zerobot.store.turn_rows import Turn
from zerobot.turn import notices
from zerobot.turn.decide import Decision, decide
from zerobot.turn.ending import Ender, Progress, TurnEnd, answer_message, total
from zerobot.turn.generate import Asking
from zerobot.turn.kit import Emit, TurnKit
from zerobot.turn.prepare import fetch_files, load_transcript, request_of
from zerobot.turn.round import RoundEnd, run_round
from zerobot.turn.stop import StopCause, StopSignal, TurnStoppedError
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
    emit = _isolated(emit, kit.log)
    transcript = Transcript()
    progress = Progress(turn.steps, [])
    end = Ender(kit, turn, transcript, emit, progress)
    emit(TurnStarted(turn.id, turn.resumed))
    try:
        await load_transcript(kit, turn, transcript)
        said = transcript.text_since(turn.id, turn.settled_seq)
        if said:
            emit(TextShown(said))
        if turn.crashes > 1:
            return await end.restarted()
        with _time_limit(kit.limits.timeout, stop):
            return await _Loop(kit, turn, transcript, emit, stop, progress, end).run()
    except TurnStoppedError as stopped:
        return await end.stopped(stopped.cause)
    except ProviderError as error:
        return await end.model_failed(error)
    except StorageError:
        raise
    except Exception as error:  # noqa: BLE001 - a bug ends the turn with a word to the chat instead of silence
        kit.log("turn.crashed", level="error", error=error)
        return await end.broken(error)


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
    ) -> None:
        self._kit = kit
        self._turn = turn
        self._transcript = transcript
        self._emit = emit
        self._stop = stop
        self._progress = progress
        self._end = end

    async def run(self) -> TurnEnd:
        """Go on until the turn ends or pauses."""
        await self._stop.unless_stopped(fetch_files(self._kit, self._turn, self._transcript))
        while True:
            self._stop.check()
            opened = self._transcript.open_round
            if opened is not None:
                args = (self._kit, self._turn, self._transcript, self._emit, self._stop)
                outcome = await run_round(*args, opened)
                if outcome.end is RoundEnd.PAUSED:
                    return TurnEnd(None, outcome.reply)
                self._seal(StepReason.TOOL_USE)
                if outcome.end is RoundEnd.NOT_SAVED:
                    return await self._end.pause_not_saved()
                if outcome.end is RoundEnd.STOP_TURN:
                    return await self._end.by_tool()
            elif self._at_limit():
                return await self._close()
            else:
                end = await self._step()
                if end is not None:
                    return end

    def _at_limit(self) -> bool:
        limit = self._kit.limits.max_steps
        return bool(limit) and self._progress.steps >= limit

    async def _step(self) -> TurnEnd | None:
        """Ask the model once; None when the turn goes on."""
        self._progress.steps += 1
        self._emit(StepStarted(self._progress.steps))
        answer = await self._ask("step")
        decision = decide(answer, paused_before=self._progress.provider_paused)
        if decision.stop is not None:
            return await self._last_step(answer, decision)
        message = answer_message(self._turn, answer)
        paused = decision.step is StepReason.PAUSED
        if paused:
            # What an answer asked for before it broke off may be incomplete: it is on record, and does not run.
            message = replace(message, calls=tuple(replace(call, result=notices.CUT_OFF) for call in message.calls))
        stored = await self._kit.turns.record_step(
            self._turn, None if message.says_nothing else message, self._progress.pending, self._progress.steps
        )
        self._progress.recorded()
        if stored is not None:
            self._transcript.add(stored)
        if paused:
            self._progress.provider_paused = True
            self._seal(decision.step)
        return None

    async def _last_step(self, answer: ModelAnswer, decision: Decision) -> TurnEnd:
        self._seal(decision.step)
        return await self._end.answered(answer, decision)

    async def _ask(self, purpose: str) -> ModelAnswer:
        asking = Asking(self._emit, self._kit.clock, self._kit.log, purpose)
        self._progress.asking = asking
        request = request_of(self._kit, self._transcript, closing=purpose == "closing")
        answer = await self._stop.unless_stopped(asking.answer(request, self._kit.route))
        failed = [attempt for attempt in asking.attempts if attempt.failed]
        self._emit(UsageCounted(self._progress.steps, total(asking.attempts), total(failed)))
        return answer

    async def _close(self) -> TurnEnd:
        """The closing request: no tools, answer from what there is. Its failure is no failure of the turn."""
        try:
            answer = await self._ask("closing")
        except ProviderError as error:
            self._kit.log("turn.closing_failed", level="warning", error=error)
            return await self._end.at_step_limit(None)
        return await self._end.at_step_limit(answer)

    def _seal(self, reason: StepReason) -> None:
        self._emit(StepFinished(self._progress.steps, reason))
        self._kit.log("step.finished", step=self._progress.steps, reason=reason)
