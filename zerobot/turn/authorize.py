"""Phases A to C for one call: is it sound, what do the hooks say, and may it run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import NoneType

from zerobot.core.access import Verdict, VerdictKind
from zerobot.core.approvals import Approval, ApprovalState, Withdrawal
from zerobot.core.hooks import Answer, Block, Replace
from zerobot.core.ids import CallId, new_approval_id, new_code
from zerobot.core.messages import AssistantMessage, RecordedCall, ToolResult
from zerobot.core.places import Place
from zerobot.core.tools import Effect, Execution
from zerobot.security.access import ToolRequest, covers, evaluate_tool_access, grantable
from zerobot.security.digest import call_digest, canonical_json
from zerobot.security.mentions import is_named
from zerobot.store.history import NEVER_FINISHED
from zerobot.store.turn_rows import PauseRequest, Turn
from zerobot.turn import notices
from zerobot.turn.check import expect, parse_arguments, resolve
from zerobot.turn.kit import TurnKit
from zerobot.turn.repeats import call_key
from zerobot.turn.stop import StopCause, TurnStoppedError

OPEN_IN_CONVERSATION = 10
"""Requests that may wait for operators in a conversation: more than anybody reads, and a model can write fifty."""
OPEN_OF_ASKER = 25
"""The same of one person's, everywhere together: nobody keeps operators from what others ask for."""
DENIALS_A_TURN = 5
"""So often operators say no in a turn before nobody is asked any more: a model could go on with ever new wordings."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The call has its result and does not run."""

    call: RecordedCall
    result: ToolResult
    stop_turn: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """The call was judged, and is not blocked; by that alone it does not run."""

    call: RecordedCall
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Allowed:
    """The call may run: the policy's own verdict says so, or an operator's approval of this very execution does.

    Only this module makes one, and the executor takes nothing else.
    """

    call: RecordedCall
    verdict: Verdict
    approval: Approval | None = None

    def __post_init__(self) -> None:
        """Refuse to stand for a call that nobody has allowed.

        Raises:
            TypeError: Neither the verdict nor an approval of this call says yes.
        """
        kind, approval = self.verdict.kind, self.approval
        approved = approval is not None and approval.state is ApprovalState.APPROVED and approval.call == self.call.id
        if kind is not VerdictKind.ALLOW and not (kind is VerdictKind.ASK and approved):
            raise TypeError(f"nobody has allowed the call {self.call.id}")

    @property
    def execution(self) -> Execution:
        """What runs: the very one that was judged."""
        return self.verdict.execution


@dataclass(frozen=True, slots=True)
class Waiting:
    """The call needs an operator."""

    call: RecordedCall
    execution: Execution
    request: PauseRequest


@dataclass(frozen=True, slots=True)
class Copy:
    """The call asks for what an earlier one of the same step asks for: it gets the result of that one."""

    call: RecordedCall
    original: RecordedCall


Plan = Settled | Allowed | Waiting | Copy


@dataclass(frozen=True, slots=True)
class _Bench:
    """What the calls of a round are judged with."""

    kit: TurnKit
    turn: Turn
    batch: Sequence[RecordedCall]
    said: Sequence[str]
    refused: Sequence[str]
    """The digests of what was denied in this turn."""


async def plan_round(
    kit: TurnKit, turn: Turn, opened: AssistantMessage, *, said: Sequence[str], outside_content: bool
) -> list[Plan]:
    """Bring each open call of a round as far as it gets without running anything, in the model's order.

    Args:
        kit: What the turn works with.
        turn: As it was when this run of it began.
        opened: The round.
        said: What its asker wrote in this turn.
        outside_content: Whether the turn has read, up to now, what somebody else wrote.

    Returns:
        A plan for each open call; none for those after a call that a hook has ended the turn with.

    Raises:
        TurnStoppedError: The turn was stopped while it was paused, and its end was never stored.
    """
    turn = replace(turn, outside_content=outside_content)
    asked = await kit.turns.approvals(turn.id)
    latest = {approval.call: approval for approval in asked}
    refused = [approval.digest for approval in asked if approval.state is ApprovalState.DENIED]
    calls = opened.open_calls
    if any(_was_stopped(latest.get(call.id)) for call in calls):
        raise TurnStoppedError(StopCause.USER)
    plans: list[Plan] = []
    bench = _Bench(kit, turn, calls, said, refused)
    for call in calls:
        plan = await _plan(bench, call, latest.get(call.id))
        plans.append(plan)
        if isinstance(plan, Settled) and plan.stop_turn:
            break
    return await _few_enough(kit, turn, with_copies(opened.calls, plans))


async def _few_enough(kit: TurnKit, turn: Turn, plans: list[Plan]) -> list[Plan]:
    """Leave as many requests as people can look at; what is beyond that does not run, and nobody is asked."""
    if not any(isinstance(plan, Waiting) for plan in plans):
        return plans
    room = min(OPEN_IN_CONVERSATION, OPEN_OF_ASKER - await kit.turns.open_requests(turn.asker))
    left: list[Plan] = []
    for plan in plans:
        if isinstance(plan, Waiting):
            room -= 1
            left.append(plan if room >= 0 else Settled(plan.call, notices.TOO_MANY))
        else:
            left.append(plan)
    return left


def _was_stopped(approval: Approval | None) -> bool:
    return approval is not None and approval.state is ApprovalState.CANCELLED and approval.reason == Withdrawal.STOPPED


def with_copies(calls: Sequence[RecordedCall], plans: Sequence[Plan]) -> list[Plan]:
    """Find the calls of a round that ask for what an earlier one asks for; they neither run nor need an operator.

    Args:
        calls: All of the round, also those that have their result.
        plans: For the others. One that an operator has approved is no copy: it was asked for by itself.
    """
    by_call = {plan.call.id: plan for plan in plans}
    first: dict[str, RecordedCall] = {}
    planned: list[Plan] = []
    for call in calls:
        plan = by_call.get(call.id)
        call = plan.call if plan else call  # noqa: PLW2901 - with the arguments that a hook gave it
        original = first.setdefault(call_key(call), call)
        if plan is not None:
            planned.append(Copy(call, original) if original is not call and _may_be_a_copy(plan) else plan)
    return planned


def _may_be_a_copy(plan: Plan) -> bool:
    if isinstance(plan, Allowed):
        return plan.approval is None and not plan.execution.repeatable
    return isinstance(plan, Waiting) and not plan.execution.repeatable


async def _plan(bench: _Bench, call: RecordedCall, approval: Approval | None) -> Plan:
    if call.started:
        return Settled(call, NEVER_FINISHED)
    if approval is not None and approval.state is not ApprovalState.APPROVED:
        return Settled(call, _undone(approval))
    judged = await _judge(bench, call) if approval else await _prepare_and_judge(bench, call)
    if isinstance(judged, Settled):
        return judged
    verdict, execution = judged.verdict, judged.verdict.execution
    touched = map(str, (*execution.reads, *execution.writes))
    digest = call_digest(judged.call.name, judged.call.arguments, execution.frozen, touched)
    if approval is not None:
        return _approved(bench.kit, judged, approval, digest)
    if verdict.kind is VerdictKind.ALLOW:
        return Allowed(judged.call, verdict)
    return await _ask(bench.kit, bench.turn, judged, digest, bench.refused)


def _approved(kit: TurnKit, judged: Judged, approval: Approval, digest: str) -> Allowed | Settled:
    """What an approval is worth when the call would run: that very call, by a rule and an operator of now."""
    asks = judged.verdict.kind is VerdictKind.ASK
    if digest != approval.digest or (asks and judged.verdict.rule != approval.rule):
        return Settled(judged.call, notices.CHANGED)
    if asks and not kit.operators.still_counts(approval):
        return Settled(judged.call, notices.NO_OPERATORS_YES)
    return Allowed(judged.call, judged.verdict, approval)


async def _prepare_and_judge(bench: _Bench, call: RecordedCall) -> Judged | Settled:
    prepared = await _prepare(bench.kit, call, bench.batch)
    return prepared if isinstance(prepared, Settled) else await _judge(bench, prepared)


async def _judge(bench: _Bench, call: RecordedCall) -> Judged | Settled:
    """Phase C, up to the verdict; what the policy blocks is settled."""
    kit, turn = bench.kit, bench.turn
    execution = resolve(call, kit.tools)
    if isinstance(execution, ToolResult):
        return Settled(call, execution)
    vetoed = await _authorize(kit, call, execution)
    if vetoed is not None:
        return vetoed
    request = ToolRequest(
        tool=call.name,
        execution=execution,
        asker=turn.asker,
        conversation=turn.conversation,
        origin=turn.origin,
        now=kit.clock.now(),
        read_outside_content=turn.outside_content,
        place_named_by_user=is_named(execution.destination, bench.said),
        own_secrets=kit.access.own_secrets(call.arguments),
    )
    verdict = evaluate_tool_access(request, kit.access.policy(), await kit.access.grants(turn.conversation))
    if verdict.kind is VerdictKind.BLOCK:
        return Settled(call, notices.blocked(verdict.reason))
    return Judged(call, verdict)


def _undone(approval: Approval) -> ToolResult:
    """The result of a call whose approval ended in another way than with a yes."""
    if approval.state is ApprovalState.DENIED:
        return notices.denied(approval.reason)
    if approval.state is ApprovalState.EXPIRED:
        return notices.EXPIRED
    return notices.UNREACHABLE if approval.reason == Withdrawal.UNREACHABLE else notices.WITHDRAWN


async def _prepare(kit: TurnKit, call: RecordedCall, batch: Sequence[RecordedCall]) -> RecordedCall | Settled:
    """Phases A and B. Arguments that a hook replaced are stored before anything is decided about them."""
    if parse_arguments(call.raw_arguments) is None:
        return Settled(call, notices.bad_arguments("they are not a JSON object"))
    sound = resolve(call, kit.tools)
    if isinstance(sound, ToolResult):
        return Settled(call, sound)
    for hook in kit.hooks.prepare:
        try:
            said = expect(await hook.prepare(call, batch), Block, Answer, Replace, NoneType)
            if isinstance(said, Replace):
                canonical_json(dict(said.arguments))
        except Exception as error:  # noqa: BLE001 - a plug-in may raise anything; that call fails, the batch goes on
            kit.log("hook.failed", level="error", error=error, hook="prepare", tool_call=call.id)
            return Settled(call, notices.blocked("a hook that has to prepare it failed"))
        if isinstance(said, Block | Answer):
            return _from_hook(call, said)
        if isinstance(said, Replace):
            await kit.turns.set_arguments(call.id, said.arguments)
            call = replace(call, arguments=said.arguments)
    return call


async def _authorize(kit: TurnKit, call: RecordedCall, execution: Execution) -> Settled | None:
    for hook in kit.hooks.authorize:
        try:
            said = expect(await hook.authorize(call, execution), Block, Answer, NoneType)
        except Exception as error:  # noqa: BLE001 - fail closed, whatever a plug-in raises
            kit.log("hook.failed", level="error", error=error, hook="authorize", tool_call=call.id)
            return Settled(call, notices.blocked("a hook that has to judge it failed"))
        if said is not None:
            return _from_hook(call, said)
    return None


def _from_hook(call: RecordedCall, said: Block | Answer) -> Settled:
    if isinstance(said, Block):
        return Settled(call, notices.blocked(said.reason))
    return Settled(call, said.result, said.stop_turn)


async def _ask(kit: TurnKit, turn: Turn, judged: Judged, digest: str, refused: Sequence[str]) -> Waiting | Settled:
    if digest in refused:
        return Settled(judged.call, notices.denied("the same was denied before in this turn"))
    if len(refused) >= DENIALS_A_TURN:
        return Settled(judged.call, notices.DENIED_TOO_OFTEN)
    call, verdict, execution = judged.call, judged.verdict, judged.verdict.execution
    places: Sequence[Place] = await kit.operators.routes(turn.asker, turn.place)
    if not places:
        await kit.operators.nobody(turn.conversation, turn.id, turn.place)
        return Settled(call, notices.UNREACHABLE)
    now = kit.clock.now()
    approval = Approval(
        id=new_approval_id(),
        code=new_code(),
        conversation=turn.conversation,
        turn=turn.id,
        call=CallId(call.id),
        tool=call.name,
        arguments=call.arguments,
        digest=digest,
        rule=verdict.rule,
        why=verdict.reason,
        description=execution.description,
        asker=turn.asker,
        asker_name=turn.asker_name,
        place=turn.place,
        sandbox=str(kit.access.policy().sandbox) if Effect.EXECUTE in execution.effects else "",
        grantable=grantable(call.name, execution, verdict.rule),
        covers=covers(call.name, execution, verdict.rule),
        requested_at=now,
        expires_at=now + kit.operators.timeout(turn.place, places),
    )
    return Waiting(call, execution, PauseRequest(approval=approval, places=tuple(places)))


def in_the_way(waiting: Mapping[CallId, Execution], execution: Execution) -> bool:
    """Whether a call must wait for the decision on one before it: both touch the same, or that one ends the batch."""
    return any(other.stop_batch or execution.accesses.conflict_with(other.accesses) for other in waiting.values())
