"""What a model's answer leads to. Structure beats labels, but for the four abnormal ones (turn-engine spec K2)."""

from dataclasses import dataclass

from zerobot.core.events import StepReason, StopReason
from zerobot.core.model import Finish, ModelAnswer


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows an answer."""

    step: StepReason
    stop: StopReason | None
    """How the turn ends with this step; None when it goes on (tools, or one more request after a provider's pause)."""


TOOLS = Decision(StepReason.TOOL_USE, None)
ABNORMAL = {
    Finish.LENGTH: Decision(StepReason.MAX_TOKENS, StopReason.LENGTH),
    Finish.OTHER: Decision(StepReason.UNKNOWN, StopReason.UNKNOWN),
    Finish.FILTER: Decision(StepReason.FILTERED, StopReason.FILTERED),
}


CUT_BY_BUDGET = Decision(StepReason.MAX_TOKENS, StopReason.BUDGET)


def decide(answer: ModelAnswer, *, paused_before: bool, short: bool = False) -> Decision:
    """Bring an answer's end into a decision.

    Args:
        answer: A whole answer.
        paused_before: Whether the provider paused in this turn already; it is asked to go on once only.
        short: Whether a spending limit left less room for the answer than there could have been.
    """
    if short and answer.finish is Finish.LENGTH:
        return CUT_BY_BUDGET
    if answer.finish in ABNORMAL:
        return ABNORMAL[answer.finish]
    if answer.finish is Finish.PAUSE:
        return Decision(StepReason.PAUSED, StopReason.PROVIDER_PAUSE if paused_before else None)
    if answer.calls:
        return TOOLS
    if answer.finish is Finish.TOOL:
        return Decision(StepReason.UNKNOWN, StopReason.UNKNOWN)
    return Decision(StepReason.DONE, StopReason.DONE)
