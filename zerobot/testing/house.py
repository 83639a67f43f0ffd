"""The engine in a house of its own: a real store, the real loop, and a user, an operator and a model from a test."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path

from zerobot.core.admission import Admission
from zerobot.core.approvals import Approval, ApprovalState, Withdrawal
from zerobot.core.envelope import Acceptance, Attachment, InboundEnvelope
from zerobot.core.errors import StorageError
from zerobot.core.events import Final, TurnEvent
from zerobot.core.ids import ConversationId, TurnId
from zerobot.core.messages import History, StoredFile
from zerobot.core.places import ConversationKey, Identity, Place
from zerobot.store.approvals import Approvals, Decided
from zerobot.store.conversations import Conversations
from zerobot.store.database import open_database
from zerobot.store.history import load_history
from zerobot.store.inbox import Inbox
from zerobot.store.outbox import Outbox
from zerobot.store.summaries import Summaries
from zerobot.store.turn_rows import Turn
from zerobot.store.turns import Turns
from zerobot.testing.clock import ManualClock
from zerobot.testing.model import ScriptedModel, faults_of, lines_of
from zerobot.testing.settings import AccessDouble, Settings
from zerobot.testing.store import Fate, WatchedDatabase
from zerobot.testing.tools import Toolbox
from zerobot.turn.ending import final_of_superseded
from zerobot.turn.kit import ModelChoice, ModelRoute, StrayTasks, TurnKit, UnrecordedUsage
from zerobot.turn.loop import run_tool_call_loop
from zerobot.turn.stop import StopCause, StopSignal

PATIENCE = 20.0
"""Seconds of real time after which a house that does not come to rest is a failure."""
QUIET_PASSES = 30
"""Turns of the event loop without any work for the database after which nothing can be going on."""
EVERYBODY = Admission(everyone=True)


class House:
    """See the module. Made by `open_house`."""

    def __init__(self, directory: Path) -> None:
        self.settings = Settings()
        self.model = ScriptedModel()
        self.tools = Toolbox()
        self.events: list[TurnEvent] = []
        self.log: list[tuple[str, dict[str, object]]] = []
        self.clock = ManualClock(settle=self.settles)
        self.operator = OperatorDouble(self)
        self.crashed = False
        """Whether a process of this house has died: an event may be lost then, what is stored is not."""
        self._directory = directory
        self._processes = AsyncExitStack()
        self._engine: Engine | None = None
        self._numbers = count(1)

    @property
    def engine(self) -> "Engine":
        """The process that runs now."""
        assert self._engine is not None, "the house is not open"
        return self._engine

    @property
    def user(self) -> "UserDouble":
        """Somebody in a chat of his own with the bot."""
        return UserDouble(self, "ann")

    def other(self, name: str, chat: str = "") -> "UserDouble":
        """Somebody else, in a chat of his own, or in another one."""
        return UserDouble(self, name, chat)

    @property
    def finals(self) -> list[Final]:
        """The finals of all turns, in order."""
        return [event for event in self.events if isinstance(event, Final)]

    def seen(self, *kinds: type) -> list[TurnEvent]:
        """The events of some kinds, in order."""
        return [event for event in self.events if isinstance(event, kinds)]

    async def replies(self) -> list[str]:
        """All texts that were queued for people, in order."""
        return [reply.text for reply in await self.engine.outbox.unfinished() if reply.text]

    async def history(self, user: "UserDouble | None" = None) -> list[str]:
        """A conversation in short; see `lines_of`."""
        return lines_of((await self.messages(user)).messages)

    async def messages(self, user: "UserDouble | None" = None) -> History:
        """A conversation as the next turn will see it."""
        conversation = await (user or self.user).conversation()
        return await self.engine.database.read(lambda db: load_history(db, conversation))

    async def open(self) -> None:
        """Start a process on what is stored."""
        path = self._directory / "zerobot.db"
        database = await self._processes.enter_async_context(open_database(path, readers=1))
        self._engine = Engine(self, WatchedDatabase(database))
        await self._engine.turns.recover()

    async def close(self) -> None:
        """End the process, whatever it does."""
        await self.engine.die()
        await self._processes.aclose()

    async def restart(self, *, wait: bool = True) -> None:
        """The process dies, with all that is only in memory; another one takes up what is stored.

        Args:
            wait: Whether to return only when it has come to rest again.
        """
        self.crashed = True
        await self._reopen(wait=wait)

    async def stop_and_start(self) -> None:
        """The daemon stops gracefully, so that its turns are suspended, and starts again."""
        self.engine.shut_down()
        await self.idle()
        await self._reopen(wait=True)

    async def resume(self) -> None:
        """Work again on whatever can be worked on, as a daemon does when its store is well again."""
        for conversation in await self.engine.turns.runnable():
            self.engine.wake(conversation)
        await self.idle()

    def kill_at(self, point: str = "", *, after: bool = True, skip: int = 0) -> None:
        """Let the process die at a write; `idle` returns then, and nothing works before `restart`.

        Args:
            point: The store's method that writes, such as `Turns.start_call`; empty: any.
            after: Whether it dies when it is stored, or just before.
            skip: How many such writes pass before.
        """
        self.crashed = True
        self.engine.database.trap(Fate.DIES_AFTER if after else Fate.DIES_BEFORE, point, skip=skip)

    def store_refuses(self, point: str = "", *, skip: int = 0, times: int = 1) -> None:
        """Let the store refuse writes; see `kill_at`."""
        self.engine.database.trap(Fate.REFUSED, point, skip=skip, times=times)

    async def idle(self) -> None:
        """Wait until no conversation has anything to work on, or the process has died."""
        async with asyncio.timeout(PATIENCE):
            await self.engine.rest()

    async def settles(self) -> None:
        """Wait until nothing happens any more by itself: everything waits for the test, or for time."""
        quiet = 0
        while quiet < QUIET_PASSES:
            await asyncio.sleep(0)
            quiet = 0 if self.engine.database.busy else quiet + 1

    async def verify(self) -> None:
        """Check what holds whatever happened: sendable requests, valid histories, one final for each ended turn."""
        for model in (self.model, *self.settings.fallbacks):
            assert not model.violations, model.violations
        finals = [str(final.turn) for final in self.finals]
        assert len(finals) == len(set(finals)), f"more than one final for a turn: {self.finals}"
        ended, conversations = await self.engine.database.read(_ended_and_conversations)
        assert set(finals) <= set(ended), "a final for a turn that is still open"
        assert self.crashed or set(finals) == set(ended), "a turn has ended without a final"
        for conversation in conversations:
            history = await self.engine.database.read(partial(load_history, conversation=conversation))
            assert not (faults := faults_of(history.messages, sendable=False)), faults

    def note(self, event: TurnEvent) -> None:
        """Take an event of a turn."""
        self.events.append(event)
        self.settings.listener(event)

    def note_log(
        self, event: str, /, *, level: str = "info", error: BaseException | None = None, **fields: object
    ) -> None:
        """Take a line of the engine's log."""
        self.log.append((event, {**fields, "level": level, "error": error}))

    async def fetch(self, turn: Turn, attachment: Attachment) -> StoredFile | str:  # noqa: ARG002 - the seam's
        """Note in the log that an attachment is wanted, and give what the test has of it."""
        self.note_log("attachment.wanted", name=attachment.name)
        return self.settings.files.get(attachment.name, f"{attachment.name} could not be fetched.")

    def next_number(self) -> int:
        """A number that was not given before: ids of events and messages."""
        return next(self._numbers)

    async def _reopen(self, *, wait: bool) -> None:
        await self.close()
        await self.open()
        for conversation in await self.engine.turns.runnable():
            self.engine.wake(conversation)
        if wait:
            await self.idle()


@asynccontextmanager
async def open_house(directory: Path) -> AsyncIterator[House]:
    """A house in a directory; whatever runs in it is ended in the end, and what must always hold is checked."""
    house = House(directory)
    await house.open()
    try:
        yield house
        if not house.engine.database.died.is_set():
            await house.verify()
    finally:
        await house.tools.release()
        await house.close()


class Engine:
    """One process: its view of the store, and a worker for each conversation that has work."""

    def __init__(self, house: House, database: WatchedDatabase) -> None:
        self._house = house
        self.database = database
        self.turns = Turns(database, house.clock)
        self.inbox = Inbox(database, house.clock)
        self.outbox = Outbox(database, house.clock)
        self.approvals = Approvals(database, house.clock)
        self.conversations = Conversations(database)
        self.strays = StrayTasks()
        self._unrecorded = UnrecordedUsage()
        self._workers: dict[ConversationId, asyncio.Task[None]] = {}
        self._woken: set[ConversationId] = set()
        self._stops: dict[ConversationId, StopSignal] = {}

    def wake(self, conversation: ConversationId) -> None:
        """There may be work in a conversation."""
        self._woken.add(conversation)
        worker = self._workers.get(conversation)
        if worker is None or worker.done():
            self._workers[conversation] = asyncio.create_task(self._work(conversation))

    async def rest(self) -> None:
        """Wait until no worker works, or the process has died.

        Raises:
            Exception: What a worker has raised.
        """
        death = asyncio.create_task(self.database.died.wait())
        try:
            while working := {worker for worker in self._workers.values() if not worker.done()}:
                await asyncio.wait({*working, death}, return_when=asyncio.FIRST_COMPLETED)
                if self.database.died.is_set():
                    await self.die()
        finally:
            death.cancel()
        for worker in self._workers.values():
            if not worker.cancelled():
                worker.result()

    async def die(self) -> None:
        """End without another word to the store."""
        self.database.die()
        working = {worker for worker in self._workers.values() if not worker.done()}
        for worker in working:
            worker.cancel()
        if working:
            await asyncio.wait(working)
        await self.strays.close(0.05)

    def shut_down(self) -> None:
        """Ask every running turn to stop, because the daemon stops."""
        for stop in self._stops.values():
            stop.request(StopCause.SHUTDOWN)

    async def stop(self, conversation: ConversationId) -> bool:
        """Stop the turn of a conversation, running or paused; False: there is none."""
        if self.stop_now(conversation):
            return True
        taken = await self.turns.take_paused(conversation, Withdrawal.STOPPED)
        if taken is None:
            return False
        stop = StopSignal()
        stop.request(StopCause.USER)
        await run_tool_call_loop(self.kit(), taken, self._house.note, stop)
        self.wake(conversation)
        return True

    def stop_now(self, conversation: ConversationId) -> bool:
        """Stop the turn of a conversation if it runs, without a wait; False: none runs, or it was stopped before."""
        running = self._stops.get(conversation)
        return running is not None and running.request(StopCause.USER)

    async def _work(self, conversation: ConversationId) -> None:
        try:
            while conversation in self._woken:
                self._woken.discard(conversation)
                while await self._work_once(conversation):
                    pass
        except StorageError as error:
            self._house.note_log("storage.refused", error=error)

    async def _work_once(self, conversation: ConversationId) -> bool:
        """Take the next work and do it; False when there is none for now."""
        work = await self.turns.next(conversation, self._house.settings.supersedes)
        if work.superseded is not None:
            self._house.note(final_of_superseded(work.superseded))
        if work.turn is None:
            return False
        stop = self._stops[conversation] = StopSignal()
        try:
            work_on_it = run_tool_call_loop(self.kit(), work.turn, self._house.note, stop)
            end = await self._house.settings.around(work_on_it)
        finally:
            del self._stops[conversation]
        if end.final is None and stop.cause is not StopCause.SHUTDOWN:
            await self._house.operator.sees()
        return stop.cause is not StopCause.SHUTDOWN

    def kit(self) -> TurnKit:
        """What its turns work with, as the test has set it by now."""
        house = self._house
        settings = house.settings
        tries, cap = settings.max_retries, settings.retry_cap
        models = (house.model, *settings.fallbacks)
        choices = [ModelChoice(model, "test", max_retries=tries, retry_cap=cap, sees=settings.sees) for model in models]
        return TurnKit(
            turns=self.turns,
            summaries=Summaries(self.database, house.clock),
            route=ModelRoute(choices=choices),
            system="You are in a test.",
            tools=house.tools,
            access=AccessDouble(settings),
            operators=house.operator,
            fetch=house.fetch,
            receipt_key=b"k" * 32,
            clock=house.clock,
            log=house.note_log,
            limits=settings.limits,
            hooks=settings.hooks,
            guards=settings.guards,
            strays=self.strays,
            unrecorded=self._unrecorded,
            save_result=settings.save_result,
            cost=settings.cost,
            purse=settings.purse(self.database),
            recall=settings.recall,
            waiting_words=settings.waiting_words,
            joins=settings.joins,
            window=settings.window,
            compaction=settings.compaction,
        )


class OperatorDouble:
    """The one operator; he sits in a room of his own, sees each request at once, and presses what a test tells him."""

    def __init__(self, house: House) -> None:
        self._house = house
        self.reachable = True
        self.looking = True
        """False: requests are not shown to him before he looks again."""
        self.resigned = False
        """Whether he is no operator any more, whatever he has pressed before."""

    async def routes(self, asker: Identity, place: Place) -> Sequence[Place]:  # noqa: ARG002 - he is the only one
        """See `Operators`."""
        return (Place("test", "operators"),) if self.reachable else ()

    async def nobody(self, conversation: ConversationId, turn: TurnId, place: Place) -> None:
        """See `Operators`."""
        self._house.note_log("operators.unreachable", conversation=conversation, turn=turn, place=place)

    def timeout(self, place: Place, shown: Sequence[Place]) -> timedelta:  # noqa: ARG002 - the same everywhere
        """See `Operators`."""
        return self._house.settings.approval_timeout

    def still_counts(self, approval: Approval) -> bool:  # noqa: ARG002 - he decides everything
        """See `Operators`."""
        return not self.resigned

    async def sees(self) -> list[Approval]:
        """Show him what is to be shown, if he looks; returns all that he may decide, oldest first."""
        approvals = self._house.engine.approvals
        for prompt in await approvals.unshown() if self.looking else ():
            await approvals.prompt_sending(prompt.id)
            await approvals.prompt_sent(prompt.id, f"prompt{prompt.id}")
        return await approvals.pending()

    async def presses(
        self, button: str, *, tool: str = "", approval: Approval | None = None, reason: str = ""
    ) -> Decided | None:
        """Press a button, and wait until the house has come to rest.

        Args:
            button: `Approve` or `Deny`.
            tool: Of the first pending request for it; empty: of the first pending request.
            approval: Of this request, whatever became of it.
            reason: What he says about it.

        Returns:
            What the store says; None: it knows no such request.
        """
        decided = await self.decides(button, tool=tool, approval=approval, reason=reason)
        await self._house.idle()
        return decided

    async def decides(
        self, button: str, *, tool: str = "", approval: Approval | None = None, reason: str = ""
    ) -> Decided | None:
        """Press a button and go away; see `presses`."""
        engine = self._house.engine
        if approval is None:
            pending = [each for each in await engine.approvals.pending() if tool in ("", each.tool)]
            assert pending, "nothing is asked"
            approval = pending[0]
        state = {"Approve": ApprovalState.APPROVED, "Deny": ApprovalState.DENIED}[button]
        operator = Identity("test", "olga")
        now = self._house.clock.now()
        decided = await engine.approvals.decide(approval.id, state, operator, "Olga", reason, now)
        if decided is not None and decided.all_decided:
            engine.wake(decided.approval.conversation)
        return decided

    async def lets_time_pass(self, seconds: float) -> list[Approval]:
        """Time goes by without him; returns what expired, and waits until the house has come to rest."""
        self._house.clock.jump(seconds)
        expired = await self._house.engine.approvals.expire_due(self._house.clock.now())
        for approval in expired:
            self._house.engine.wake(approval.conversation)
        await self._house.idle()
        return expired


@dataclass(frozen=True, slots=True)
class UserDouble:
    """Somebody who talks to the bot in a direct chat."""

    house: House
    name: str
    chat: str = ""

    @property
    def key(self) -> ConversationKey:
        """His conversation."""
        return ConversationKey(Place("test", self.chat or self.name))

    async def conversation(self) -> ConversationId:
        """The row of his conversation."""
        found = await self.house.engine.conversations.find(self.key)
        assert found is not None, f"{self.name} has said nothing yet"
        return found.id

    async def says(self, text: str, *, event: str = "") -> Acceptance:
        """Say something, and wait until the house has come to rest; see `writes`."""
        outcome = await self.writes(text, event=event)
        await self.house.idle()
        return outcome

    async def sends(self, *attachments: Attachment, text: str = "") -> Acceptance:
        """Send files, and wait until the house has come to rest."""
        outcome = await self.writes(text, attachments=attachments)
        await self.house.idle()
        return outcome

    async def writes(self, text: str, *, event: str = "", attachments: tuple[Attachment, ...] = ()) -> Acceptance:
        """Say something. A second of wall time passes before: no two things happen at the same moment.

        Args:
            text: What he says.
            event: The platform's id of the event; empty: a new one.
            attachments: Files.
        """
        self.house.clock.jump(1)
        number = self.house.next_number()
        envelope = InboundEnvelope(
            conversation=self.key,
            sender=Identity("test", self.name),
            event_id=event or f"e{number}",
            message_id=f"m{number}",
            text=text,
            attachments=attachments,
            sender_name=self.name.title(),
            direct=True,
        )
        engine, limit = self.house.engine, self.house.settings.queue_limit
        accepted = await engine.inbox.accept(envelope, EVERYBODY, is_command=False, queue_limit=limit)
        if accepted.outcome is Acceptance.ACCEPTED and accepted.conversation is not None:
            engine.wake(accepted.conversation)
        return accepted.outcome

    async def stops(self) -> bool:
        """Send /stop, and wait until the house has come to rest; False: there was nothing to stop."""
        stopped = await self.house.engine.stop(await self.conversation())
        await self.house.idle()
        return stopped


def _ended_and_conversations(db: sqlite3.Connection) -> tuple[list[str], list[ConversationId]]:
    ended = [row[0] for row in db.execute("SELECT id FROM turns WHERE state = 'finished'")]
    return ended, [ConversationId(row[0]) for row in db.execute("SELECT id FROM conversations")]
