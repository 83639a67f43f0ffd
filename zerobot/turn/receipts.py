"""Receipts of results: made when a result is kept, looked up when a model quotes one (BAR 3)."""

from collections.abc import Sequence

from zerobot.core.ids import ConversationId, TurnId
from zerobot.core.messages import AssistantMessage, Message, RecordedCall, ResultCode, ToolResult
from zerobot.security.digest import arguments_digest
from zerobot.security.quoted_receipts import Genuine
from zerobot.security.receipts import ReceiptClaim, sign_receipt, verify_receipt
from zerobot.store.turn_rows import Turn
from zerobot.turn.kit import TurnKit
from zerobot.turn.transcript import Transcript


def claim_of(conversation: ConversationId, turn: TurnId, call: RecordedCall, result: ToolResult) -> ReceiptClaim:
    """What the receipt of a result vouches for."""
    return ReceiptClaim(
        conversation=conversation,
        turn=turn,
        call=call.id,
        tool=call.name,
        arguments_digest=arguments_digest(call.arguments),
        shown_text=result.text,
        code=result.code,
    )


def signed(kit: TurnKit, turn: Turn, call: RecordedCall, code: ResultCode, text: str) -> ToolResult:
    """A result with its receipt."""
    result = ToolResult(code=code, text=text)
    return ToolResult(code=code, text=text, receipt=_receipt(kit, turn.conversation, turn.id, call, result))


async def sign_stored(kit: TurnKit, turn: Turn, messages: Sequence[Message]) -> bool:
    """Sign the results that the store itself has written: after a crash, or when a message has ended a pause.

    Args:
        kit: What the turn works with.
        turn: The one that is about to read them.
        messages: Of its conversation.

    Returns:
        Whether a receipt was stored, so that the messages are to be read again.
    """
    receipts = {
        call.id: _receipt(kit, turn.conversation, message.turn, call, call.result)
        for message in messages
        if isinstance(message, AssistantMessage)
        for call in message.calls
        if call.result is not None and not call.result.receipt
    }
    return bool(receipts) and await kit.turns.add_receipts(receipts)


def genuine_receipts(transcript: Transcript, turn: Turn, key: bytes) -> Genuine:
    """Tell the receipts of the results in a conversation from all others; each is verified when it is asked for."""

    def genuine(receipt: str) -> bool:
        for message in transcript.messages:
            for call in message.calls if isinstance(message, AssistantMessage) else ():
                if call.result is not None and call.result.receipt == receipt:
                    return verify_receipt(receipt, claim_of(turn.conversation, message.turn, call, call.result), key)
        return False

    return genuine


def _receipt(kit: TurnKit, conversation: ConversationId, turn: TurnId, call: RecordedCall, result: ToolResult) -> str:
    return sign_receipt(claim_of(conversation, turn, call, result), kit.receipt_key, kit.clock.now())
