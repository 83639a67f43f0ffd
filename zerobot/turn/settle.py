"""Phase E: what of a call's outcome is stored, and how. Hooks see every result; what they fail on is never kept raw."""

from collections.abc import Sequence

from zerobot.core.events import ToolFinished
from zerobot.core.messages import RecordedCall, ResultCode, ToolResult
from zerobot.core.tools import ToolOutput
from zerobot.store.columns import storable
from zerobot.store.turn_rows import Turn
from zerobot.turn import notices
from zerobot.turn.check import expect
from zerobot.turn.kit import Emit, TurnKit
from zerobot.turn.receipts import signed
from zerobot.turn.repeats import hint, streak
from zerobot.turn.transcript import Transcript

HEAD_SHARE = 2 / 3
"""Of a result that is too long, this much is kept of its head; the rest of its tail."""


NOT_RUN = frozenset(
    {
        ResultCode.UNKNOWN_TOOL,
        ResultCode.BAD_ARGS,
        ResultCode.BLOCKED,
        ResultCode.DENIED,
        ResultCode.EXPIRED,
        ResultCode.NOT_RUN,
        ResultCode.SKIPPED,
        ResultCode.CUT_OFF,
    }
)
"""Codes that say for sure that the tool did not run."""
UNCLEAR = frozenset({ResultCode.CANCELLED, ResultCode.INTERRUPTED, ResultCode.TIMEOUT})
"""Codes of calls that may have run or not."""


def result_of(output: object) -> ToolResult:
    """Bring what a tool returned into a result; whatever is no `ToolOutput` is a bad one."""
    if not isinstance(output, ToolOutput) or not isinstance(output.text, str):
        return ToolResult(code=ResultCode.BAD_RESULT, text="The tool ran but returned something that is not a result.")
    code = output.code or (ResultCode.OK if output.ok else ResultCode.ERROR)
    return ToolResult(code=code, text=output.text if output.text.strip() else notices.EMPTY_OUTPUT)


def shorten(text: str, limit: int) -> str:
    """Cut a text in its middle so that head and tail stay; a line says how much is gone.

    Args:
        text: The whole text.
        limit: Characters of it that stay.
    """
    if len(text) <= limit:
        return text
    head = int(limit * HEAD_SHARE)
    gone = len(text) - limit
    return f"{text[:head]}\n[… {gone} characters left out …]\n{text[len(text) - (limit - head) :]}"


async def settle(kit: TurnKit, turn: Turn, call: RecordedCall, result: ToolResult, hint: str = "") -> ToolResult:
    """Run the result hooks, bound the length, add what the engine has to say about it, and sign what is left."""
    raw = result
    try:
        for hook in kit.hooks.finalize:
            result = expect(await hook.finalize(call, result), ToolResult)
    except Exception as error:  # noqa: BLE001 - a plug-in may raise anything, and the raw result must not slip past it
        kit.log("hook.failed", level="error", error=error, hook="finalize", tool_call=call.id)
        result = unchecked(raw)
    text = await _bounded(kit, turn, call, storable(result.text))
    return signed(kit, turn, call, result.code, f"{text}\n\n{hint}" if hint else text)


def unchecked(raw: ToolResult) -> ToolResult:
    """What is kept of a result that could not be checked: only whether the tool ran."""
    if raw.code in UNCLEAR:
        return ToolResult(code=raw.code, text=notices.UNCHECKED_UNCLEAR)
    return notices.UNCHECKED_REFUSAL if raw.code in NOT_RUN else notices.WITHHELD


async def _bounded(kit: TurnKit, turn: Turn, call: RecordedCall, text: str) -> str:
    """A text that is not too long for a conversation; the whole one lies in a file then, if that can be had."""
    limits = kit.limits
    if len(text) <= limits.result_characters:
        return text
    path = await kit.save_result(turn, call, text) if kit.save_result else None
    if path is None:
        return shorten(text, limits.result_characters)
    return notices.saved(len(text), path, shorten(text, limits.preview_characters))


class Settler:
    """Commits the results of one turn's calls, then tells of them."""

    def __init__(self, kit: TurnKit, turn: Turn, transcript: Transcript, emit: Emit) -> None:
        self._kit = kit
        self._turn = turn
        self._transcript = transcript
        self._emit = emit

    async def close(
        self,
        call: RecordedCall,
        result: ToolResult,
        *,
        copies: Sequence[RecordedCall] = (),
        repeatable: bool = False,
        outside_content: bool = False,
    ) -> ToolResult:
        """Give a call its result, and in the same commit to its copies.

        Args:
            call: Without a result so far.
            result: As the tool or the engine has it; hooks have not seen it.
            copies: Calls of the same step that ask for the same.
            repeatable: Whether the tool is meant to be called again and again.
            outside_content: Whether somebody else wrote the text.

        Raises:
            StorageError: It could not be stored; no call has a result.
        """
        count = 0 if repeatable else streak(self._transcript.rounds(self._turn.id), call.id)
        kept = await settle(self._kit, self._turn, call, result, hint(count))
        await self._store([(call, kept), *self._repeated(kept, copies)], outside_content=outside_content)
        return kept

    async def repeat(self, kept: ToolResult, copies: Sequence[RecordedCall]) -> None:
        """Give copies the result that their original has."""
        if copies:
            await self._store(self._repeated(kept, copies))

    def _repeated(self, kept: ToolResult, copies: Sequence[RecordedCall]) -> list[tuple[RecordedCall, ToolResult]]:
        return [(copy, signed(self._kit, self._turn, copy, kept.code, kept.text)) for copy in copies]

    async def _store(
        self, results: Sequence[tuple[RecordedCall, ToolResult]], *, outside_content: bool = False
    ) -> None:
        rows = [(call.id, result) for call, result in results]
        await self._kit.turns.finish_calls(self._turn, rows, outside_content=outside_content)
        self._transcript.outside_content |= outside_content
        for call, result in results:
            self._transcript.set_result(call.id, result)
            self._kit.log("tool.finished", tool=call.name, code=result.code, tool_call=call.id)
            self._emit(ToolFinished(call.id, call.name, result.code))
