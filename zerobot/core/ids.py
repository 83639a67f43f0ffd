"""Ids that the engine mints, and the types that keep them apart."""

import secrets
from typing import NewType

ConversationId = NewType("ConversationId", int)
"""Row id of a conversation; what `zerobot sessions show` takes."""
TurnId = NewType("TurnId", str)
CallId = NewType("CallId", str)
"""Minted by the engine for each tool call; a provider's own id is data (it may be missing, or used twice)."""
ApprovalId = NewType("ApprovalId", str)
"""128 random bits: what a button carries. It never reaches a model; in the log it
names the approval, which helps nobody to press: who pressed is what counts."""
InboxId = NewType("InboxId", int)
ReplyId = NewType("ReplyId", int)
ReservationId = NewType("ReservationId", str)
"""Money that is kept for one model call while it is under way."""

# No vowels and nothing that looks like something else: a code is read aloud and typed on a phone.
CODE_ALPHABET = "BCDFGHJKMNPQRTVWXYZ2346789"


def new_turn_id() -> TurnId:
    """Mint a turn's id; it is shown to people in error texts, so it is short."""
    return TurnId(f"t{secrets.token_hex(5)}")


def new_call_id() -> CallId:
    """Mint a tool call's id; fits what every provider accepts as an id."""
    return CallId(f"call_{secrets.token_hex(8)}")


def new_approval_id() -> ApprovalId:
    """Mint an approval's id: 128 bits, url-safe, 22 characters, so that it fits into any platform's button data."""
    return ApprovalId(secrets.token_urlsafe(16))


def new_reservation_id() -> ReservationId:
    """Mint a reservation's id, before it is stored: whoever asked for it knows it even if he never hears of it."""
    return ReservationId(secrets.token_hex(8))


PAIRING = "pair."
"""How the ids of pairing requests begin, and no approval's does: what a button carries names one or the other."""


def new_pairing_id() -> ApprovalId:
    """Mint the id of a stranger's request to be let in, which operators are asked about like about an approval."""
    return ApprovalId(PAIRING + new_approval_id())


def new_code(length: int = 6) -> str:
    """Mint a code that a person types, `length` characters of `CODE_ALPHABET`."""
    return "".join(secrets.choice(CODE_ALPHABET) for _ in range(length))
