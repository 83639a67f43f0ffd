"""The emergency stop: no tool runs anywhere, what runs is ended, and the chats where something goes on are told."""

from dataclasses import dataclass

from zerobot.core.log import EventLog
from zerobot.core.places import Place
from zerobot.daemon.access_state import DaemonAccess
from zerobot.delivery.delivery import Delivery
from zerobot.store.conversations import Conversations

STOPPED = "An operator has stopped all tools, also what was running here. I can still talk, but I cannot do anything."
RELEASED = "An operator lets tools run again, within their rules."


@dataclass(frozen=True, slots=True, kw_only=True)
class EmergencyStop:
    """The switch, and the word about it."""

    access: DaemonAccess
    conversations: Conversations
    delivery: Delivery
    log: EventLog

    async def throw(self, *, frozen: bool, here: Place | None = None) -> None:
        """Stop all tools, or let them run again.

        Args:
            frozen: Which of the two.
            here: Where it was asked for: that chat has its answer, and is not told again.

        Raises:
            StorageError: It is not on record. A stop holds nevertheless, until the next start.
        """
        await self.access.freeze(frozen=frozen)
        self.log("tools.frozen" if frozen else "tools.released", level="warning")
        for place in await self.conversations.at_work():
            if place != here:
                await self.delivery.notice(place, STOPPED if frozen else RELEASED)
