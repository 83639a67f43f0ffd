"""Who pays for a turn's model calls: each is asked for before it is made, and told of when it has ended."""

from dataclasses import dataclass
from typing import Protocol

from zerobot.core.budget import Payer
from zerobot.core.errors import ZerobotError
from zerobot.core.ids import ReservationId
from zerobot.core.model import ModelRequest
from zerobot.core.usage import Usage


class BudgetError(ZerobotError):
    """A model call must not be made: a spending limit stands in its way.

    Attributes:
        user_text: Which limit it is, and when it is free again.
    """

    def __init__(self, message: str, user_text: str) -> None:
        super().__init__(message)
        self.user_text = user_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Leave to make one model call."""

    id: ReservationId | None = None
    """None: nothing had to be kept for it."""
    max_output: int | None = None
    """Tokens that the answer may have; None: as the request says."""
    short: bool = False
    """Whether that is less than the answer could have had: what is left does not pay for more."""


class Purse(Protocol):
    """What model calls are paid from."""

    async def reserve(self, payer: Payer, purpose: str, model: str, request: ModelRequest) -> Reservation:
        """Keep what a call may cost; where calls that are under way may give enough back, wait for them.

        Whoever gets a reservation makes the call, tells of its end, and has it recorded with the reservation's id.

        Args:
            payer: On whose account it goes.
            purpose: As it is recorded.
            model: PROVIDER/MODEL.
            request: What is to be asked.

        Raises:
            BudgetError: There is not enough left, or nobody knows what the model costs.
            StorageError: The store refused.
        """
        ...

    def ended(self, reservation: Reservation, model: str, usage: Usage | None) -> None:
        """A call has ended; `usage` is what it took, None: nobody knows."""
        ...

    async def used_up(self, payer: Payer) -> BudgetError | None:
        """The limit that is used up for a payer; None: there is something left of each.

        Raises:
            StorageError: The store cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class Account:
    """What the calls of one kind are paid from."""

    purse: Purse
    payer: Payer
    purpose: str
    """`step`, `closing` or `summary`."""


class _Unlimited:
    """The purse where no limit is set."""

    async def reserve(self, payer: Payer, purpose: str, model: str, request: ModelRequest) -> Reservation:  # noqa: ARG002
        """Let every call be made."""
        return Reservation()

    def ended(self, reservation: Reservation, model: str, usage: Usage | None) -> None:
        """Nothing was kept."""

    async def used_up(self, payer: Payer) -> BudgetError | None:  # noqa: ARG002
        """There is no limit."""
        return None


UNLIMITED: Purse = _Unlimited()
