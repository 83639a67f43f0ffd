"""The hooks around a step (spec K3): which may end the turn, which may prolong it, and what their failure means."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import NoneType

from zerobot.core.errors import ZerobotError
from zerobot.core.hooks import Block, EndTurn, GoOn, Inject, StepView
from zerobot.core.messages import Message
from zerobot.store.turn_rows import Turn
from zerobot.turn import notices
from zerobot.turn.check import expect
from zerobot.turn.kit import TurnKit


class HookError(ZerobotError):
    """A hook ends the turn: it says so, or it failed where its failure must not be passed over.

    Attributes:
        code: `blocked_by_hook` or `hook_failed`, for the final.
        user_text: What people read.
    """

    def __init__(self, code: str, message: str, user_text: str) -> None:
        super().__init__(message)
        self.code = code
        self.user_text = user_text


@dataclass(frozen=True, slots=True)
class StepHooks:
    """The step hooks of one turn."""

    kit: TurnKit
    turn: Turn

    async def before(self, step: int, messages: Sequence[Message]) -> str:
        """Ask whether the model may be asked; returns what it is to read beside the conversation, or nothing.

        Raises:
            HookError: A hook says no, or one failed.
        """
        notes = []
        for hook in self.kit.hooks.before_step:
            try:
                said = expect(await hook.before_step(self._view(step, messages)), Block, Inject, NoneType)
            except Exception as error:
                raise self._failed("before_step", error) from error
            if isinstance(said, Block):
                raise HookError("blocked_by_hook", said.reason, said.reason)
            if isinstance(said, Inject):
                notes.append(said.note)
        return "\n".join(notes)

    async def after(self, step: int, messages: Sequence[Message]) -> EndTurn | None:
        """Ask whether the turn is to end with a sealed step."""
        for hook in self.kit.hooks.after_step:
            try:
                said = expect(await hook.after_step(self._view(step, messages)), EndTurn, NoneType)
            except Exception as error:  # noqa: BLE001 - the step is sealed: whatever a plug-in raises changes nothing
                self.kit.log("hook.failed", level="error", error=error, hook="after_step")
                continue
            if said is not None:
                return said
        return None

    async def go_on(self, step: int, messages: Sequence[Message], text: str) -> GoOn | None:
        """Ask whether the turn is to go on although the model is done.

        Raises:
            HookError: A hook failed.
        """
        for hook in self.kit.hooks.continue_after_stop:
            try:
                said = expect(await hook.continue_after_stop(self._view(step, messages), text), GoOn, NoneType)
            except Exception as error:
                raise self._failed("continue_after_stop", error) from error
            if said is not None:
                return said
        return None

    def _view(self, step: int, messages: Sequence[Message]) -> StepView:
        return StepView(conversation=self.turn.conversation, turn=self.turn.id, step=step, messages=messages)

    def _failed(self, hook: str, error: Exception) -> HookError:
        self.kit.log("hook.failed", level="error", error=error, hook=hook)
        return HookError("hook_failed", f"{hook}: {type(error).__name__}: {error}", notices.HOOK_BROKE)
