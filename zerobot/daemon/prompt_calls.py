"""The calls by which prompts are shown and settled: tried again where that helps, given up where it does not."""

from collections.abc import Callable
from dataclasses import dataclass

from zerobot.core.approvals import ApprovalPrompt
from zerobot.core.channel import AsksApproval, SentMessage
from zerobot.core.command_text import USUAL_PREFIX, with_prefix
from zerobot.core.errors import DeliveryError, TryLaterError, UnclearError
from zerobot.core.log import EventLog
from zerobot.core.places import Place
from zerobot.delivery.delivery import Delivery
from zerobot.delivery.line import Line
from zerobot.delivery.pacing import Priority
from zerobot.delivery.patience import Patience

SETTLE_TRIES = 20
"""Tries to change a prompt that was decided: the decision counts, whatever its message shows."""


@dataclass(frozen=True, slots=True)
class PromptCalls:
    """How a platform is called for prompts."""

    delivery: Delivery
    patience: Patience
    log: EventLog

    async def wait(self, place: Place, error: DeliveryError, faults: int) -> None:
        """Wait before a call is tried again, as long as the platform asks for."""
        at_least = 0.0
        line = self.delivery.line(place.channel)
        if isinstance(error, TryLaterError) and line is not None:
            line.gate.hold_for(place, error)
            at_least = error.retry_after or 0.0
        await self.patience.back_off(faults, at_least)

    async def settle(self, sent: SentMessage, draw: Callable[[], ApprovalPrompt], line: Line) -> None:
        """Take the buttons of a message away and show what was decided, or give it up."""
        for faults in range(1, SETTLE_TRIES + 1):
            try:
                async with line.gate.turn_to_call(sent.place, Priority.OUTCOME):
                    if isinstance(line.channel, AsksApproval):
                        await line.channel.settle(sent, draw())
                    elif line.editor is not None:
                        await line.editor.edit(sent, line.channel.render(as_text(draw(), line.command_prefix))[0])
            except (TryLaterError, UnclearError) as error:
                await self.wait(sent.place, error, faults)
            except DeliveryError as error:
                self.log("prompt.not_settled", level="warning", error=error, approval=draw().approval)
                return
            else:
                return


def as_text(prompt: ApprovalPrompt, command_prefix: str = USUAL_PREFIX) -> str:
    """A prompt as Markdown: its lines stand in code, where nothing of them is read as Markdown."""
    lines = [f"{line.label}: {line.text}" if line.label else line.text for line in prompt.lines]
    blocks = [_fenced("\n".join(lines))]
    if prompt.attachment:
        blocks.append(_fenced(prompt.attachment))
    if prompt.open:
        answer = prompt.answer or f"Answer `/approve {prompt.code}` or `/deny {prompt.code} REASON`."
        blocks.append(with_prefix(answer, command_prefix))
    return "\n\n".join(blocks)


def _fenced(text: str) -> str:
    """A code block whose fence is longer than any run of back-ticks in it."""
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
