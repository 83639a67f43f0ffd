"""Asks the backend what fits the input of a turn. Whatever goes wrong there, the turn goes on without."""

import asyncio

from zerobot.core.clock import Clock
from zerobot.core.ids import TurnId
from zerobot.core.log import EventLog
from zerobot.core.memory import MemoryBackend, ScopeOf
from zerobot.memory.block import NO_BLOCK, MemoryBlock, render_block
from zerobot.memory.policy import injected_owners

POOL = 32
"""Entries that the backend may offer; decay, floor and skip set choose among them."""
PATIENCE = 5.0
"""Seconds that a backend has."""


class Recall:
    """Makes the block for a turn's input. Ask once a turn and keep what it says with the message.

    Args:
        backend: Where entries are.
        scope_of: What a turn may touch.
        clock: For decay.
        log: Gets `memory.recalled` and `memory.failed`; no text of an entry or a message.
        patience: Seconds that the backend has.
    """

    def __init__(
        self, backend: MemoryBackend, scope_of: ScopeOf, clock: Clock, log: EventLog, *, patience: float = PATIENCE
    ) -> None:
        self._backend = backend
        self._scope_of = scope_of
        self._clock = clock
        self._log = log
        self._patience = patience

    async def block(self, turn: TurnId, message: str, *, uses_memory: bool = True) -> MemoryBlock:
        """What is put before the input of a turn; nothing when there is nothing, or when memory does not work.

        Args:
            turn: A stored turn.
            message: Its input, as it was said.
            uses_memory: Off where the turn's schedule says so.
        """
        try:
            async with asyncio.timeout(self._patience):
                made = await self._made(turn, message, uses_memory=uses_memory)
        # A backend may be somebody else's package: whatever it raises, an answer without memory is better than none.
        except Exception as error:  # noqa: BLE001
            self._log("memory.failed", level="warning", error=error, turn=turn)
            return NO_BLOCK
        if made.entries:
            self._log("memory.recalled", level="debug", turn=turn, entries=list(made.entries))
        return made

    async def _made(self, turn: TurnId, message: str, *, uses_memory: bool) -> MemoryBlock:
        scope = await self._scope_of(turn)
        owners = () if scope is None else injected_owners(scope, uses_memory=uses_memory)
        if not owners:
            return NO_BLOCK
        found = await self._backend.recall(owners, message, POOL)
        # The backend was told whose entries are wanted; one that offers others must not leak them.
        allowed = [each for each in found if each.entry.owner in owners]
        return render_block(allowed, now=self._clock.now(), turn=turn, message=message)
