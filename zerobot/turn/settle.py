"""Phase E: what of a call's outcome is stored. Hooks see every result; what they fail on is never kept raw."""

from zerobot.core.ids import CallId
from zerobot.core.messages import RecordedCall, ResultCode, ToolResult
from zerobot.core.tools import ToolOutput
from zerobot.security.digest import arguments_digest
from zerobot.security.receipts import ReceiptClaim, sign_receipt
from zerobot.store.columns import storable
from zerobot.store.turn_rows import Turn
from zerobot.turn import notices
from zerobot.turn.check import expect
from zerobot.turn.kit import TurnKit

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


async def settle(kit: TurnKit, turn: Turn, call: RecordedCall, result: ToolResult) -> ToolResult:
    """Run the result hooks, bound the length and sign what is left."""
    raw = result
    try:
        for hook in kit.hooks.finalize:
            result = expect(await hook.finalize(call, result), ToolResult)
    except Exception as error:  # noqa: BLE001 - a plug-in may raise anything, and the raw result must not slip past it
        kit.log("hook.failed", level="error", error=error, hook="finalize", tool_call=call.id)
        result = notices.UNCHECKED_REFUSAL if raw.code in NOT_RUN else notices.WITHHELD
    text = storable(shorten(result.text, kit.limits.result_characters))
    claim = ReceiptClaim(
        conversation=turn.conversation,
        turn=turn.id,
        call=CallId(call.id),
        tool=call.name,
        arguments_digest=arguments_digest(call.arguments),
        shown_text=text,
        code=result.code,
    )
    return ToolResult(code=result.code, text=text, receipt=sign_receipt(claim, kit.receipt_key, kit.clock.now()))
