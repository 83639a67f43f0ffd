"""Receipts: an HMAC that shows that a tool result came from this process, for one call, with this very text."""

import base64
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime

from zerobot.core.ids import CallId, ConversationId, TurnId
from zerobot.core.messages import ResultCode
from zerobot.security.digest import canonical_json, sha256_hex

VERSION = 1
_PREFIX = f"zb{VERSION}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptClaim:
    """What a receipt vouches for."""

    conversation: ConversationId
    turn: TurnId
    call: CallId
    tool: str
    arguments_digest: str
    shown_text: str
    """The text exactly as the model reads it, without the receipt itself."""
    code: ResultCode
    """Failed and refused calls get receipts too, so that "it failed" can be shown as well."""


def sign_receipt(claim: ReceiptClaim, key: bytes, at: datetime) -> str:
    """Make the receipt of a result: `zb1-MILLISECONDS-MAC`, the MAC being base64url without padding.

    Args:
        claim: What happened.
        key: At least 32 random bytes, never handed to a child process.
        at: When, in UTC.
    """
    milliseconds = (at.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // _MILLISECOND
    return f"{_PREFIX}-{milliseconds}-{_mac(claim, key, milliseconds)}"


def verify_receipt(receipt: str, claim: ReceiptClaim, key: bytes) -> bool:
    """Whether a receipt was made with this key for exactly this claim; compared in constant time."""
    prefix, _, rest = receipt.partition("-")
    stamp, _, mac = rest.partition("-")
    if prefix != _PREFIX or not (stamp.isascii() and stamp.isdecimal()) or not mac.isascii():
        return False
    # A number with leading zeros is another text for the same time: only the form that we write is ours.
    milliseconds = int(stamp[:16])
    return str(milliseconds) == stamp and hmac.compare_digest(mac, _mac(claim, key, milliseconds))


def made_at(receipt: str) -> datetime:
    """When a receipt that has been verified was made, in UTC."""
    return datetime(1970, 1, 1, tzinfo=UTC) + int(receipt.split("-")[1]) * _MILLISECOND


_MILLISECOND = datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)


def _mac(claim: ReceiptClaim, key: bytes, milliseconds: int) -> str:
    payload = canonical_json(
        {
            "version": VERSION,
            "conversation": claim.conversation,
            "turn": claim.turn,
            "call": claim.call,
            "tool": claim.tool,
            "arguments": claim.arguments_digest,
            "shown": sha256_hex(claim.shown_text.encode("utf-8", "surrogatepass")),
            "code": claim.code.value,
            "time": milliseconds,
        }
    )
    digest = hmac.digest(key, payload, "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")
