"""Steering: what its asker writes meanwhile joins a running turn between two of its steps (spec K11).

It is a rule of the agent, and off (`TurnKit.joins` is None) each input waits for a turn of its own. The inputs stay in
the inbox until they join: what has not joined when the turn ends, however it ends, begins the next one, in order.
"""

from collections.abc import Sequence

from zerobot.core.messages import AssistantMessage, Message, UserMessage
from zerobot.store.turn_rows import Turn
from zerobot.turn.ending import Progress
from zerobot.turn.kit import TurnKit
from zerobot.turn.prepare import prepare_inputs
from zerobot.turn.stop import StopSignal
from zerobot.turn.transcript import Transcript


async def join_waiting(kit: TurnKit, turn: Turn, transcript: Transcript, stop: StopSignal) -> None:
    """Let what waits join a turn whose model is about to be asked.

    Raises:
        TurnStoppedError: The turn was stopped; what has joined by then is stored as said in it.
        StorageError: Nothing has joined.
    """
    if kit.joins is not None:
        await _take_in(kit, turn, transcript, stop, await kit.turns.join(turn, kit.joins))


async def go_on_with_waiting(
    kit: TurnKit, turn: Turn, transcript: Transcript, stop: StopSignal, progress: Progress, answer: AssistantMessage
) -> bool:
    """Let what waits join a turn that would end with this answer of the model; False: nothing does, so it may end.

    Raises:
        TurnStoppedError: As in `join_waiting`; the answer is stored then.
        StorageError: Nothing is stored.
    """
    if kit.joins is None or stop.cause is not None:
        return False
    kept = None if answer.says_nothing else answer
    stored = await kit.turns.join_after(turn, kit.joins, kept, progress.pending, progress.steps)
    if stored:
        progress.recorded()
        await _take_in(kit, turn, transcript, stop, stored)
    return bool(stored)


async def _take_in(
    kit: TurnKit, turn: Turn, transcript: Transcript, stop: StopSignal, stored: Sequence[Message]
) -> None:
    """Put stored messages into the transcript, and give the inputs among them what belongs to them."""
    for message in stored:
        transcript.add(message)
    if stored:
        kit.log("inputs.joined", inputs=sum(isinstance(message, UserMessage) for message in stored))
        await stop.unless_stopped(prepare_inputs(kit, turn, transcript, seen=False))
