"""What a channel can do beside the seam of all channels when people sit at terminals of their own."""

from collections.abc import AsyncIterator, Mapping
from typing import Protocol, runtime_checkable

from zerobot.core.events import Outcome
from zerobot.core.places import Place


class Terminal(Protocol):
    """Somebody's terminal, in this process or at the other end of the control socket. It speaks plain JSON objects."""

    async def send(self, item: Mapping[str, object]) -> None:
        """Give the terminal something to show.

        Raises:
            OSError, TimeoutError: It is gone, or does not read.
        """
        ...

    def inputs(self) -> AsyncIterator[Mapping[str, object]]:
        """What the person does; ends when the terminal is closed."""
        ...


@runtime_checkable
class TakesTerminals(Protocol):
    """A channel that serves terminals."""

    async def attach(self, terminal: Terminal) -> None:
        """Serve a terminal until it is closed."""
        ...


@runtime_checkable
class FollowsTurns(Protocol):
    """A channel that shows when a turn has ended, beside its reply."""

    async def turn_ended(self, place: Place, reply_to: str, outcome: Outcome) -> None:
        """A turn ended and all of its reply was taken; called once a turn.

        Args:
            place: Where the turn was.
            reply_to: The platform's id of the message that it answered.
            outcome: How it ended.
        """
        ...
