"""One round: the calls of one answer, from what they are on record to a result for each, or to a pause."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from zerobot.core.errors import StorageError
from zerobot.core.events import ApprovalsRequested
from zerobot.core.ids import CallId, ReplyId
from zerobot.core.messages import AssistantMessage, RecordedCall, ToolResult
from zerobot.core.tools import Execution
from zerobot.store.turn_rows import PauseRequest, Turn
from zerobot.turn import notices
from zerobot.turn.authorize import Allowed, Copy, Plan, Settled, Waiting, in_the_way, plan_round
from zerobot.turn.kit import Emit, TurnKit
from zerobot.turn.repeats import LIMIT, streak
from zerobot.turn.run import Copies, Runner
from zerobot.turn.settle import Settler
from zerobot.turn.stop import StopSignal
from zerobot.turn.transcript import Transcript, join_texts


class RoundEnd(StrEnum):
    """What follows a round."""

    NEXT_STEP = "next_step"
    PAUSED = "paused"
    NOT_SAVED = "not_saved"
    """The pause could not be stored; nothing is asked."""
    STOP_TURN = "stop_turn"
    REPEATS = "repeats"
    """The model has asked for the same too often in a row."""


@dataclass(frozen=True, slots=True)
class RoundOutcome:
    """How the work on a round ended."""

    end: RoundEnd
    reply: ReplyId | None = None
    """At a pause: what was said so far, to be delivered as a message of its own."""


async def run_round(
    kit: TurnKit, turn: Turn, transcript: Transcript, emit: Emit, stop: StopSignal, opened: AssistantMessage
) -> RoundOutcome:
    """Work on the open calls of a round.

    Calls that need nobody run first, but for those that touch what a waiting call before them touches. If some wait
    for an operator, all of them are asked for at once and the turn pauses.

    Raises:
        StorageError: Something could not be stored; nothing runs that is not on record.
        TurnStoppedError: The turn was stopped.
    """
    settler = Settler(kit, turn, transcript, emit)
    planning = plan_round(kit, turn, opened, said=transcript.said(turn.id), outside_content=transcript.outside_content)
    plans = await stop.unless_stopped(planning)
    for plan in plans:
        transcript.set_arguments(plan.call.id, plan.call.arguments)
    copies = await _settle_known(settler, plans)
    if any(isinstance(plan, Settled) and plan.stop_turn for plan in plans):
        return await _stop_turn(settler, transcript)
    ran = await Runner(kit, turn, transcript, emit, stop).run(_runnable(plans), copies)
    stop.check()
    if any(outcome.stop_turn for outcome in ran):
        return await _stop_turn(settler, transcript)
    waiting = [plan for plan in plans if isinstance(plan, Waiting)]
    if waiting:
        return await _pause(kit, turn, transcript, emit, waiting)
    return RoundOutcome(RoundEnd.REPEATS if _repeats(turn, transcript, plans) else RoundEnd.NEXT_STEP)


async def _settle_known(settler: Settler, plans: Sequence[Plan]) -> Copies:
    """Store the results that are known without running anything; returns the copies whose original has none yet."""
    copies: dict[CallId, list[RecordedCall]] = {}
    done: dict[CallId, ToolResult] = {}
    for plan in plans:
        if isinstance(plan, Settled):
            done[plan.call.id] = await settler.close(plan.call, plan.result)
        elif isinstance(plan, Copy):
            result = plan.original.result or done.get(plan.original.id)
            if result is not None:
                await settler.repeat(result, [plan.call])
            else:
                copies.setdefault(plan.original.id, []).append(plan.call)
    return copies


def _runnable(plans: Sequence[Plan]) -> list[Allowed]:
    """The calls that may run now: not those behind a waiting (or deferred) call that they conflict with."""
    waiting: dict[CallId, Execution] = {}
    runnable = []
    for plan in plans:
        if isinstance(plan, Settled | Copy):
            continue
        if isinstance(plan, Waiting) or in_the_way(waiting, plan.execution):
            waiting[plan.call.id] = plan.execution
        else:
            runnable.append(plan)
    return runnable


def _repeats(turn: Turn, transcript: Transcript, plans: Sequence[Plan]) -> bool:
    """Whether the step has asked once too often for the same (spec K7)."""
    last = next((plan for plan in reversed(plans) if not isinstance(plan, Copy)), None)
    if last is None or (isinstance(last, Allowed) and last.execution.repeatable):
        return False
    return streak(transcript.rounds(turn.id), last.call.id) >= LIMIT


async def _stop_turn(settler: Settler, transcript: Transcript) -> RoundOutcome:
    await _close_rest(settler, transcript, notices.SKIPPED)
    return RoundOutcome(RoundEnd.STOP_TURN)


async def _close_rest(settler: Settler, transcript: Transcript, result: ToolResult) -> None:
    """Close what is still open of a round that does not go on."""
    opened = transcript.open_round
    for call in opened.open_calls if opened else ():
        await settler.close(call, result)


def _asked_now(kit: TurnKit, turn: Turn, request: PauseRequest) -> PauseRequest:
    """A request whose time begins now: since it was made, the calls before it have run."""
    now = kit.clock.now()
    expires_at = now + kit.operators.timeout(turn.place, request.places)
    return replace(request, approval=replace(request.approval, requested_at=now, expires_at=expires_at))


async def _pause(
    kit: TurnKit, turn: Turn, transcript: Transcript, emit: Emit, waiting: Sequence[Waiting]
) -> RoundOutcome:
    """Save the pause, then tell about it. What cannot be saved is not asked for."""
    said = transcript.text_since(turn.id, turn.settled_seq)
    requests = [_asked_now(kit, turn, plan.request) for plan in waiting]
    waits = kit.waiting_words(turn.place, [place for each in requests for place in each.places])
    # Where waiting is said, each message counts: it is said once a turn, and later words stand in the answer.
    speaks = not turn.settled_seq if waits else said
    settled = join_texts([turn.preface, said, waits]) if speaks else ""
    try:
        reply = await kit.turns.pause(turn, requests, settled, transcript.last_seq)
    except StorageError as error:
        kit.log("approval.not_saved", level="error", error=error)
        await _close_rest(Settler(kit, turn, transcript, emit), transcript, notices.NOT_SAVED)
        return RoundOutcome(RoundEnd.NOT_SAVED)
    for request in requests:
        asked = request.approval
        kit.log("approval.requested", approval=asked.id, tool_call=asked.call, tool=asked.tool, rule=asked.rule)
    emit(ApprovalsRequested(turn.id, tuple(plan.call.id for plan in waiting)))
    return RoundOutcome(RoundEnd.PAUSED, reply)
