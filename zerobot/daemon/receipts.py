"""Is a receipt genuine? Checked against what is on record."""

from collections.abc import Callable

from zerobot.core.errors import ZerobotError
from zerobot.security.receipts import made_at, verify_receipt
from zerobot.store.database import Database
from zerobot.store.history import call_with_receipt
from zerobot.turn.receipts import claim_of


class ReceiptError(ZerobotError):
    """It proves nothing; `str(error)` says why, for the person who asked."""


async def check_receipt(database: Database, key: Callable[[], bytes], receipt: str) -> dict[str, object]:
    """Find the tool call that a receipt vouches for.

    Args:
        database: Has the calls on record.
        key: The key that receipts are made with; read when there is something to verify.
        receipt: As it stands below a reply, or in a conversation.

    Returns:
        The call as JSON values: conversation, turn, call, tool, arguments, outcome, the text that the model saw, and
        when the receipt was made (UTC).

    Raises:
        ReceiptError: No call has it, or what is on record is not what it was made for.
    """
    found = await database.read(lambda db: call_with_receipt(db, receipt))
    if found is None:
        raise ReceiptError("no call on record has this receipt: it was made up, or not here")
    conversation, turn, call = found
    assert call.result is not None, "only finished calls have receipts"
    if not verify_receipt(receipt, claim_of(conversation, turn, call, call.result), key()):
        raise ReceiptError(f"FORGED: what is on record of call {call.id} is not what this receipt was made for")
    return {
        "conversation": conversation,
        "turn": turn,
        "call": call.id,
        "tool": call.name,
        "arguments": dict(call.arguments),
        "outcome": call.result.code.value,
        "text": call.result.text,
        "made_at": made_at(receipt).isoformat(),
    }
