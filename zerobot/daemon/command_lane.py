"""Commands run beside the queues: each in a task of its own, one after another in a conversation."""

import asyncio
from collections.abc import Awaitable, Callable

from zerobot.core.errors import StorageError
from zerobot.core.ids import ConversationId
from zerobot.core.log import EventLog
from zerobot.store.inbox import Inbox, WaitingCommand


class CommandLane:
    """Carries out stored commands.

    Args:
        inbox: Knows the commands that a crash has left.
        carry_out: Does one, and marks it done.
        log: Gets what goes wrong.
    """

    def __init__(self, inbox: Inbox, carry_out: Callable[[WaitingCommand], Awaitable[None]], log: EventLog) -> None:
        self._inbox = inbox
        self._carry_out = carry_out
        self._log = log
        self._queues: dict[ConversationId, list[WaitingCommand]] = {}
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Take up what was left, and work until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for command in await self._inbox.commands_waiting():
                self.begin(command)
            await asyncio.Event().wait()

    def begin(self, command: WaitingCommand) -> None:
        """Carry out a command, after the earlier ones of its conversation. Before `run`, it is left in the store."""
        if self._group is None:
            return
        queue = self._queues.setdefault(command.conversation, [])
        queue.append(command)
        if len(queue) == 1:
            self._group.create_task(self._work(command.conversation), name=f"commands {command.conversation}")

    async def _work(self, conversation: ConversationId) -> None:
        queue = self._queues[conversation]
        try:
            while queue:
                await self._try(queue[0])
                del queue[0]
        finally:
            del self._queues[conversation]

    async def _try(self, command: WaitingCommand) -> None:
        try:
            await self._carry_out(command)
        except StorageError as error:
            # It stays in the store and is carried out at the next start.
            self._log("storage.failed", level="error", error=error, conversation=command.conversation)
        except Exception as error:  # noqa: BLE001 - one command's fault must not end the lane of all
            self._log("command.crashed", level="error", error=error, conversation=command.conversation)
