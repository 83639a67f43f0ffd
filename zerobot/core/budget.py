"""Spending limits: what each of them sums up, and on whose account a model call goes."""

from dataclasses import dataclass
from enum import StrEnum

from zerobot.core.ids import ConversationId, TurnId
from zerobot.core.places import Identity


class Scope(StrEnum):
    """What a limit sums up. A day begins at 00:00 UTC."""

    TURN = "turn"
    USER = "user"
    """One person's day."""
    DAY = "day"
    """Everybody's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Payer:
    """On whose account a model call goes."""

    turn: TurnId
    """Empty for a call that belongs to no turn."""
    conversation: ConversationId
    channel: str
    asker: Identity
