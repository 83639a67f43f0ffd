"""One round: the calls of one answer, from what they are on record to a result for each, or to a pause."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from zerobot.core.errors import StorageError
from zerobot.core.events import ApprovalsRequested, ToolFinished
from zerobot.core.ids import CallId, ReplyId
from zerobot.core.messages import AssistantMessage, ToolResult
from zerobot.core.tools import Execution
from zerobot.store.turn_rows import Turn
from zerobot.turn import notices
from zerobot.turn.authorize import Allowed, Settled, Waiting, in_the_way, plan_round
from zerobot.turn.kit import Emit, TurnKit
from zerobot.turn.run import Runner
from zerobot.turn.settle import settle
from zerobot.turn.stop import StopSignal
from zerobot.turn.transcript import Transcript, join_texts


class RoundEnd(StrEnum):
    """What follows a round."""

    NEXT_STEP = "next_step"
    PAUSED = "paused"
    NOT_SAVED = "not_saved"
    """The pause could not be stored; nothing is asked."""
    STOP_TURN = "stop_turn"


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
    """
    planning = plan_round(kit, turn, opened.open_calls, outside_content=transcript.outside_content)
    plans = await stop.unless_stopped(planning)
    for plan in plans:
        transcript.set_arguments(plan.call.id, plan.call.arguments)
    settled = [plan for plan in plans if isinstance(plan, Settled)]
    for plan in settled:
        await _commit(kit, turn, transcript, emit, plan)
    if any(plan.stop_turn for plan in settled):
        await _close_rest(kit, turn, transcript, emit, notices.SKIPPED)
        return RoundOutcome(RoundEnd.STOP_TURN)
    ran = await Runner(kit, turn, transcript, emit, stop).run(_runnable(plans))
    stop.check()
    if any(outcome.stop_turn for outcome in ran):
        await _close_rest(kit, turn, transcript, emit, notices.SKIPPED)
        return RoundOutcome(RoundEnd.STOP_TURN)
    waiting = [plan for plan in plans if isinstance(plan, Waiting)]
    if not waiting:
        return RoundOutcome(RoundEnd.NEXT_STEP)
    return await _pause(kit, turn, transcript, emit, waiting)


def _runnable(plans: Sequence[Allowed | Settled | Waiting]) -> list[Allowed]:
    """The calls that may run now: not those behind a waiting (or deferred) call that they conflict with."""
    waiting: dict[CallId, Execution] = {}
    runnable = []
    for plan in plans:
        if isinstance(plan, Settled):
            continue
        if isinstance(plan, Waiting) or in_the_way(waiting, plan.execution):
            waiting[plan.call.id] = plan.execution
        else:
            runnable.append(plan)
    return runnable


async def _commit(kit: TurnKit, turn: Turn, transcript: Transcript, emit: Emit, plan: Settled) -> None:
    result = await settle(kit, turn, plan.call, plan.result)
    await kit.turns.finish_calls(turn, [(plan.call.id, result)])
    transcript.set_result(plan.call.id, result)
    kit.log("tool.finished", tool=plan.call.name, code=result.code, tool_call=plan.call.id)
    emit(ToolFinished(plan.call.id, plan.call.name, result.code))


async def _close_rest(kit: TurnKit, turn: Turn, transcript: Transcript, emit: Emit, result: ToolResult) -> None:
    """Close what is still open of a round that does not go on."""
    opened = transcript.open_round
    for call in opened.open_calls if opened else ():
        await _commit(kit, turn, transcript, emit, Settled(call, result))


async def _pause(
    kit: TurnKit, turn: Turn, transcript: Transcript, emit: Emit, waiting: Sequence[Waiting]
) -> RoundOutcome:
    """Save the pause, then tell about it. What cannot be saved is not asked for."""
    said = transcript.text_since(turn.id, turn.settled_seq)
    settled = join_texts([turn.preface, said]) if said else ""
    requests = [plan.request for plan in waiting]
    try:
        reply = await kit.turns.pause(turn, requests, settled, transcript.last_seq)
    except StorageError as error:
        kit.log("approval.not_saved", level="error", error=error)
        await _close_rest(kit, turn, transcript, emit, notices.NOT_SAVED)
        return RoundOutcome(RoundEnd.NOT_SAVED)
    for request in requests:
        asked = request.approval
        kit.log("approval.requested", approval=asked.id, tool_call=asked.call, tool=asked.tool, rule=asked.rule)
    emit(ApprovalsRequested(turn.id, tuple(plan.call.id for plan in waiting)))
    return RoundOutcome(RoundEnd.PAUSED, reply)
