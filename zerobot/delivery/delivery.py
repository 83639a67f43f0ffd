"""Everything that the bot says: drafts while a turn works, and the outbox, in order for each place."""

import asyncio
import bisect
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field

from zerobot.core.clock import Clock
from zerobot.core.command_text import USUAL_PREFIX
from zerobot.core.ids import ConversationId, ReplyId, TurnId
from zerobot.core.log import EventLog
from zerobot.core.places import Place
from zerobot.core.terminal import FollowsTurns
from zerobot.delivery.draft import NoView, TurnView, View
from zerobot.delivery.fence import fenced
from zerobot.delivery.line import Bench, Line, OnMoved, OpenChannel, TurnRef
from zerobot.delivery.outbox_sender import OutboxSender
from zerobot.delivery.pacing import Gate
from zerobot.delivery.patience import Jitter, Patience, full_jitter
from zerobot.delivery.waiting import event_or_timeout
from zerobot.store.outbox import Outbox, Reply, ReplyState

AT_WORK = "I am still at work on this; the answer comes as soon as I have it."


@dataclass(frozen=True, slots=True, order=True)
class _Due:
    """A reply that waits in its lane; older ones first."""

    reply: ReplyId
    view: TurnView | None = field(compare=False)
    last: bool = field(compare=False)
    """Nothing of its turn is queued behind it."""


class Delivery:
    """The one way out. What it is told before `run` or after its end is in the store, and goes out at the next start.

    Args:
        channels: The open channels by the name of their table.
        outbox: The store's.
        clock: Times drafts and tries.
        log: Gets `delivery.sent` and `delivery.failed`.
        on_moved: Told that a chat has a new id, before anything is sent there.
        jitter: Draws the waits between tries.
    """

    def __init__(
        self,
        channels: Mapping[str, OpenChannel],
        outbox: Outbox,
        clock: Clock,
        log: EventLog,
        on_moved: OnMoved,
        jitter: Jitter = full_jitter,
    ) -> None:
        self._patience = Patience(clock, log, jitter)
        self._bench = Bench(outbox=outbox, clock=clock, log=log, on_moved=on_moved, patience=self._patience)
        self._lines = {
            name: Line(open=channel, gate=Gate(channel.kind.pace, clock)) for name, channel in channels.items()
        }
        self._sender = OutboxSender(self._bench, self._patience)
        self._lanes: dict[Place, list[_Due]] = {}
        self._views: dict[TurnId, TurnView] = {}
        self._looking = 0
        """Look-ups under way of what the store has queued."""
        self._group: asyncio.TaskGroup | None = None
        self._progress = asyncio.Event()

    def line(self, channel: str) -> Line | None:
        """An open channel with the gate that every call to its platform goes through; None: it is not open."""
        return self._lines.get(channel)

    def lines(self) -> Sequence[Line]:
        """All open channels."""
        return tuple(self._lines.values())

    def command_prefix(self, channel: str) -> str:
        """What our texts name commands by on a channel."""
        line = self._lines.get(channel)
        return line.command_prefix if line else USUAL_PREFIX

    async def moved(self, place: Place, chat: str) -> None:
        """Tell that a chat has a new id, before anything is sent there."""
        await self._bench.on_moved(place, chat)

    async def quiet(self, place: Place, turn: TurnId, seconds: float) -> None:
        """Wait until what a turn has said so far stands in its place, at most some seconds."""
        end = self._bench.clock.monotonic() + seconds
        while turn in self._views or place in self._lanes:
            left = end - self._bench.clock.monotonic()
            if left <= 0:
                return
            await event_or_timeout(self._progress, self._bench.clock, left)

    async def run(self) -> None:
        """Deliver until cancelled, beginning with what an earlier process left."""
        try:
            async with asyncio.TaskGroup() as group:
                for name, line in self._lines.items():
                    group.create_task(line.gate.run(), name=f"gate {name}")
                self._group = group
                for reply in await self._patience.stored(self._bench.outbox.unfinished):
                    self._put(reply, None)
                await asyncio.Event().wait()
        finally:
            self._group = None

    def view(self, ref: TurnRef) -> View:
        """Begin to show a turn, or a turn that goes on after a pause or a restart.

        Returns:
            What takes the turn's events; use it in a `with`, so that it ends however the turn's run ends. When it has
            seen the pause or the final, what the store has queued by then is delivered, as by `settle`.
        """
        line = self._lines.get(ref.place.channel)
        if line is None or self._group is None:
            return NoView()
        view = TurnView(ref, line, self._bench)
        before = self._views.get(ref.turn)
        self._views[ref.turn] = view
        self._group.create_task(self._show(view, before), name=f"draft {ref.turn}")
        if line.open.notice_after is not None:
            self._group.create_task(self._say_at_work(view, line.open.notice_after), name=f"notice {ref.turn}")
        return view

    def settle(self, turn: TurnId) -> None:
        """Deliver what the store has queued for a turn; its draft is finished by it. To be called after the commit."""
        self._look(self._find_replies(turn, self._views.get(turn)))

    def reply_queued(self, reply: ReplyId) -> None:
        """Deliver one reply that the store has queued. To be called after the commit."""
        self._look(self._find_reply(reply))

    async def notice(self, place: Place, text: str, reply_to: str = "") -> ReplyId:
        """Say something that belongs to no turn: stored when this returns, then sent.

        Raises:
            StorageError: It could not be stored; it will not be sent.
        """
        reply = await self._bench.outbox.notice(place, text, reply_to)
        self.reply_queued(reply)
        return reply

    async def notice_once(
        self, place: Place, text: str, conversation: ConversationId, turn: TurnId, reply_to: str = ""
    ) -> None:
        """Say something that a turn gives rise to, unless it was said since the turn began.

        Raises:
            StorageError: It could not be stored; it will not be sent.
        """
        reply = await self._bench.outbox.notice_once(place, text, conversation, turn, reply_to)
        if reply is not None:
            self.reply_queued(reply)

    async def drain(self, timeout: float) -> bool:  # noqa: ASYNC109 -- of the manual clock too
        """End the drafts and let what is queued go out, for a graceful stop.

        Args:
            timeout: Seconds; what is left then goes out at the next start.

        Returns:
            Whether nothing is left.
        """
        end = self._bench.clock.monotonic() + timeout
        for view in self._views.values():
            view.close()
        while self._lanes or self._views or self._looking:
            left = end - self._bench.clock.monotonic()
            if left <= 0:
                return False
            await event_or_timeout(self._progress, self._bench.clock, left)
        return True

    async def _show(self, view: TurnView, before: TurnView | None) -> None:
        """Run a view, after the one that the turn had before; then deliver what the turn has left in the outbox."""
        turn = view.ref.turn
        try:
            if before is not None:
                before.close()
                await before.finished()
            await view.run()
            if view.final is not None:
                # Nothing is open then, but a draft of a turn that ended without a word: it is taken back.
                await self._patience.stored(lambda: self._bench.outbox.drop_open(turn))
            if not await self._find_replies(turn, view):
                await self._say_ended(view)
        finally:
            if self._views.get(turn) is view:
                del self._views[turn]
            self._advance()

    def _look(self, find: Coroutine[None, None, object]) -> None:
        """Look into the store for something that was queued there."""
        if self._group is None:
            find.close()
            return
        self._looking += 1
        self._group.create_task(self._looked(find), name="look into the outbox")

    async def _looked(self, find: Coroutine[None, None, object]) -> None:
        try:
            with fenced(self._bench.log, "delivery.failed", "error", reason="fault"):
                await find
        finally:
            self._looking -= 1
            self._advance()

    async def _find_replies(self, turn: TurnId, view: TurnView | None) -> bool:
        """Queue what a turn has left in the outbox; False: nothing."""
        replies = await self._patience.stored(lambda: self._bench.outbox.of_turn(turn))
        queued = [reply for reply in replies if reply.state is ReplyState.QUEUED]
        for reply in queued:
            self._put(reply, view, last=reply is queued[-1])
        return bool(queued)

    async def _find_reply(self, reply: ReplyId) -> None:
        found = await self._patience.stored(lambda: self._bench.outbox.get(reply))
        self._put(found, self._views.get(found.turn) if found.turn else None)

    def _put(self, reply: Reply, view: TurnView | None, *, last: bool = False) -> None:
        """Queue a reply in the lane of its place, behind the older ones."""
        if reply.state is not ReplyState.QUEUED:
            return
        line = self._lines.get(reply.place.channel)
        if line is None:
            self._bench.log(
                "delivery.failed",
                level="warning",
                channel=reply.place.channel,
                turn=reply.turn,
                reply=reply.id,
                reason="channel_not_open",
            )
            return
        lane = self._lanes.get(reply.place)
        if lane is None:
            assert self._group is not None, "replies are put while it runs"
            lane = self._lanes[reply.place] = []
            self._group.create_task(self._drive(reply.place, lane, line), name=f"lane {reply.place}")
        if all(due.reply != reply.id for due in lane):
            # The first is being sent.
            view = view if view is not None and view.ends_with(reply.id) else None
            bisect.insort(lane, _Due(reply.id, view, last), lo=min(len(lane), 1))

    async def _drive(self, place: Place, lane: list[_Due], line: Line) -> None:
        """Send what is in a lane until it is empty; then nothing of it is left in memory."""
        try:
            while lane:
                await self._deliver(lane[0], line)
                del lane[0]
        finally:
            del self._lanes[place]
            self._advance()

    async def _deliver(self, due: _Due, line: Line) -> None:
        """Send one reply. Its draft has ended by then: no edit of it can come after the last."""
        outbox = self._bench.outbox
        shown = None
        if due.view is not None:
            due.view.close()
            await due.view.finished()
            shown = due.view.shown
        try:
            reply = await self._patience.stored(lambda: outbox.get(due.reply))
            notice = await self._sender.deliver(reply, line, shown)
            if notice is not None:
                await self._find_reply(notice)
        except Exception as error:  # noqa: BLE001 -- one chat's trouble, whatever it is, must not end the others' lanes
            self._bench.log("delivery.failed", level="error", error=error, reply=due.reply, reason="fault")
            await self._patience.stored(lambda: outbox.fail(due.reply, "a fault of my own"))
        if due.view is not None and due.last:
            await self._say_ended(due.view)

    async def _say_at_work(self, view: TurnView, after: float) -> None:
        """Say once a turn that it goes on, when it takes long and nothing else shows it."""
        if await event_or_timeout(view.ended, self._bench.clock, after) or view.shown:
            return
        ref = view.ref
        with fenced(self._bench.log, "notice.failed", "warning", turn=ref.turn):
            await self.notice_once(ref.place, AT_WORK, ref.conversation, ref.turn, ref.reply_to)

    async def _say_ended(self, view: TurnView) -> None:
        """Tell a channel that follows turns that one has ended, and all of it was said. Once a turn."""
        channel = view.line.channel
        if view.final is None or view.told or not isinstance(channel, FollowsTurns):
            return
        view.told = True
        ref, outcome = view.ref, view.final.outcome
        with fenced(self._bench.log, "turn_ended.failed", "debug", turn=ref.turn):
            await channel.turn_ended(ref.place, ref.reply_to, outcome)

    def _advance(self) -> None:
        """Wake whoever waits for delivery to come further; who begins to wait now waits for the next time."""
        self._progress.set()
        self._progress = asyncio.Event()
