"""Commands run beside the queues: each in a task of its own, one after another in a conversation."""

import asyncio
from collections.abc import Awaitable, Callable

from zerobot.core.clock import Clock
from zerobot.core.errors import StorageError
from zerobot.core.ids import ConversationId, InboxId
from zerobot.core.log import EventLog
from zerobot.delivery.patience import Patience
from zerobot.store.inbox import Inbox, WaitingCommand


class CommandLane:
    """Carries out stored commands.

    Args:
        inbox: Knows the commands that a crash has left.
        carry_out: Does one, and marks it done.
        clock: Times the tries while the store refuses.
        log: Gets what goes wrong.
    """

    def __init__(
        self, inbox: Inbox, carry_out: Callable[[WaitingCommand], Awaitable[None]], clock: Clock, log: EventLog
    ) -> None:
        self._inbox = inbox
        self._carry_out = carry_out
        self._patience = Patience(clock, log)
        self._log = log
        self._queues: dict[ConversationId, list[WaitingCommand]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._early: set[InboxId] = set()
        """Begun while the commands of an earlier process are still being read; they may be among those."""
        self._ready = False

    async def run(self) -> None:
        """Take up what was left, and work until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for command in await self._patience.stored(self._inbox.commands_waiting):
                if command.id not in self._early:
                    self._queue(group, command)
            self._ready = True
            self._early.clear()
            await asyncio.Event().wait()

    def begin(self, command: WaitingCommand) -> None:
        """Carry out a command, after the earlier ones of its conversation. Before `run`, it is left in the store."""
        if self._group is None:
            return
        if not self._ready:
            self._early.add(command.id)
        self._queue(self._group, command)

    def _queue(self, group: asyncio.TaskGroup, command: WaitingCommand) -> None:
        queue = self._queues.setdefault(command.conversation, [])
        if any(each.id == command.id for each in queue):
            return
        queue.append(command)
        if len(queue) == 1:
            group.create_task(self._work(command.conversation), name=f"commands {command.conversation}")

    async def _work(self, conversation: ConversationId) -> None:
        queue = self._queues[conversation]
        try:
            while queue:
                await self._try(queue[0])
                del queue[0]
        finally:
            del self._queues[conversation]

    async def _try(self, command: WaitingCommand) -> None:
        """Carry out one; while the store refuses, again and again: each of them may be done twice."""
        faults = 0
        while True:
            try:
                await self._carry_out(command)
            except StorageError as error:
                faults += 1
                self._log("storage.failed", level="error", error=error, conversation=command.conversation)
            except Exception as error:  # noqa: BLE001 - one command's fault must not end the lane of all
                self._log("command.crashed", level="error", error=error, conversation=command.conversation)
                return
            else:
                return
            await self._patience.back_off(faults)
