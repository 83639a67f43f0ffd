"""The lane of chat commands: each carried out once, in order, whatever the store does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from zerobot.core.admission import Admission
from zerobot.core.envelope import InboundEnvelope
from zerobot.core.errors import StorageError
from zerobot.core.log import Level
from zerobot.core.places import ConversationKey, Identity, Place
from zerobot.daemon.clock import SystemClock
from zerobot.daemon.command_lane import CommandLane
from zerobot.store.database import Database, open_database
from zerobot.store.inbox import Inbox, WaitingCommand
from zerobot.testing.clock import ManualClock

PATIENCE = 10.0


class SlowInbox(Inbox):
    """An inbox whose list of left commands is read, and returned only when the test says so."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, ManualClock())
        self.has_read = asyncio.Event()
        self.may_return = asyncio.Event()

    async def commands_waiting(self) -> list[WaitingCommand]:
        """See `Inbox`."""
        found = await super().commands_waiting()
        self.has_read.set()
        await self.may_return.wait()
        return found


class Clerk:
    """Carries commands out, and keeps what was done; refuses as often as a test wants."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self.done: list[str] = []
        self.refusals = 0
        self.bugs = 0
        self.news = asyncio.Condition()

    async def carry_out(self, command: WaitingCommand) -> None:
        """Do one."""
        if self.refusals:
            self.refusals -= 1
            raise StorageError("full")
        if self.bugs:
            self.bugs -= 1
            raise RuntimeError("a bug")
        await self._inbox.command_done(command.id)
        async with self.news:
            self.done.append(command.envelope.text)
            self.news.notify_all()

    async def until(self, count: int) -> None:
        """Wait until so many are done."""
        async with asyncio.timeout(PATIENCE), self.news:
            await self.news.wait_for(lambda: len(self.done) >= count)


class Lane:
    """A lane with its clerk."""

    def __init__(self, database: Database) -> None:
        self.inbox = SlowInbox(database)
        self.clerk = Clerk(self.inbox)
        self.log: list[str] = []
        self.lane = CommandLane(self.inbox, self.clerk.carry_out, SystemClock(), self._note)
        self._numbers = iter(range(100))

    def _note(
        self, event: str, /, *, level: Level = "info", error: BaseException | None = None, **fields: object
    ) -> None:
        self.log.append(event)

    async def stores(self, text: str) -> WaitingCommand:
        """Store a command as an intake does."""
        number = next(self._numbers)
        envelope = InboundEnvelope(
            conversation=ConversationKey(Place("test", "ann")),
            sender=Identity("test", "ann"),
            event_id=f"e{number}",
            message_id=f"m{number}",
            text=text,
            direct=True,
        )
        accepted = await self.inbox.accept(envelope, Admission(everyone=True), is_command=True)
        assert accepted.inbox_id is not None
        assert accepted.conversation is not None
        return WaitingCommand(id=accepted.inbox_id, conversation=accepted.conversation, envelope=envelope)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run it inside of this scope."""
        task = asyncio.create_task(self.lane.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


@pytest.fixture
async def lane(tmp_path: Path) -> AsyncIterator[Lane]:
    """A lane on a real store, not yet running."""
    async with open_database(tmp_path / "zerobot.db", readers=1) as database:
        yield Lane(database)


async def test_commands_left_by_an_earlier_process_are_carried_out(lane: Lane) -> None:
    """They are in the store, and done in their order."""
    lane.inbox.may_return.set()
    for text in ("/status", "/whoami"):
        lane.lane.begin(await lane.stores(text))
    assert lane.clerk.done == []
    async with lane.running():
        await lane.clerk.until(2)
    assert lane.clerk.done == ["/status", "/whoami"]


async def test_a_command_that_comes_while_the_lane_starts_is_carried_out_once(lane: Lane) -> None:
    """B017: it is in the list of what was left, and it was begun by the intake; it counts once."""
    command = await lane.stores("/stop")
    async with lane.running():
        await lane.inbox.has_read.wait()
        lane.lane.begin(command)
        await lane.clerk.until(1)
        lane.inbox.may_return.set()
        lane.lane.begin(await lane.stores("/status"))
        await lane.clerk.until(2)
    assert lane.clerk.done == ["/stop", "/status"]


async def test_a_command_is_tried_again_when_the_store_takes_it_again(lane: Lane) -> None:
    """B195: a full disk delays a command, and does not swallow it until the next start."""
    lane.inbox.may_return.set()
    lane.clerk.refusals = 1
    async with lane.running():
        await lane.inbox.has_read.wait()
        lane.lane.begin(await lane.stores("/new"))
        await lane.clerk.until(1)
    assert lane.log == ["storage.failed"]


async def test_a_bug_in_one_command_does_not_stop_the_next(lane: Lane) -> None:
    """It is logged, and the lane goes on."""
    lane.inbox.may_return.set()
    lane.clerk.bugs = 1
    async with lane.running():
        await lane.inbox.has_read.wait()
        lane.lane.begin(await lane.stores("/usage"))
        lane.lane.begin(await lane.stores("/help"))
        await lane.clerk.until(1)
    assert lane.clerk.done == ["/help"]
    assert lane.log == ["command.crashed"]
