"""The draft of a turn: a message that is edited in place while the text grows.

Events are taken in at once and only change what should be shown; whenever the platform may be called, the newest state
is shown. So nothing is queued, a slow platform slows no model, and the last text is always shown in the end.
"""

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol, Self

from zerobot.core.channel import Channel, GrowsMessages, MessageBody, OutboundMessage, SentMessage, ShowsTyping
from zerobot.core.errors import DeliveryError, StorageError, TryLaterError, UnclearError
from zerobot.core.events import Final, TurnEvent
from zerobot.core.ids import ReplyId
from zerobot.delivery.fence import fenced
from zerobot.delivery.line import Bench, Line, Shown, TurnRef, part_key
from zerobot.delivery.pacing import Priority
from zerobot.delivery.segment import Segment
from zerobot.store.outbox import PartState

FIRST_DELAY = 0.25
"""Seconds from the first delta to the first draft: an answer that is complete by then is one call."""
HEAD_START = 0.1
"""Seconds before that in which the draft is put on record, so that no first word waits for a disk: with many turns at
once their commits queue up. The cost: a process that dies within them leaves a message that looks as if it was sent."""
FIRST_SIGNAL = 0.3
"""Seconds from the start of a turn to the first typing signal: the model is asked first, and an answer that is there by
then needs none. A signal on its way when the turn ends is broken off, and with it goes a connection."""
RENDER_SHARE = 0.05
"""Of the time, at most, goes into laying out one draft: a very long one is edited less often."""
LONGEST_BACKOFF = 30.0
"""Seconds between tries when a platform keeps failing."""


class View(Protocol):
    """What takes a turn's events."""

    def __call__(self, event: TurnEvent) -> None:
        """Take an event in. Never waits, never raises."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def close(self) -> None:
        """Show nothing more."""
        ...


class NoView:
    """Shows nothing: the channel is not open."""

    def __call__(self, event: TurnEvent) -> None:
        """Ignore an event."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """There is nothing to end."""

    def close(self) -> None:
        """There is nothing to end."""


class TurnView:
    """Shows one segment of a turn: call it with each event; it ends with the pause, the final, or `close`.

    Args:
        ref: The turn.
        line: Where it is shown.
        bench: The outbox, the clock, the log.
    """

    def __init__(self, ref: TurnRef, line: Line, bench: Bench) -> None:
        self.ref = ref
        self.line = line
        self.told = False
        """Whether the channel was told of the turn's end."""
        self._bench = bench
        self._segment = Segment()
        self._first_at: float | None = None
        self._bodies: list[MessageBody] | None = None
        """What the draft should show; None: that has changed since it was laid out."""
        self._layout_seconds = 0.0
        """What laying it out took the last time."""
        self._changed = asyncio.Event()
        self._ended = asyncio.Event()
        self._draft = Draft(ref, line, bench, self._ended)
        self._done = asyncio.Event()

    def __call__(self, event: TurnEvent) -> None:
        """Take an event in. Never waits, never raises."""
        if self._ended.is_set():
            return
        if self._segment.take(event):
            self._bodies = None
            if self._first_at is None and self._segment.begun:
                self._first_at = self._bench.clock.monotonic()
            self._changed.set()
        if self._segment.ended:
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Show nothing more: however a turn ends, no typing signal outlives it."""
        self._ended.set()

    @property
    def shown(self) -> Mapping[int, Shown]:
        """What stands on the platform, by position; stable once `finished` has returned."""
        place = self.ref.place
        return {
            at: Shown(each.id, None) if _is_growing(self.line.channel, each.at(place)) else each
            for at, each in self._draft.shown.items()
        }

    @property
    def final(self) -> Final | None:
        """The end of the turn, unless it paused or is left for a later start."""
        return self._segment.final

    def ends_with(self, reply: ReplyId) -> bool:
        """Whether this reply finishes what the view has shown; else it is something that is said beside it."""
        return self._ended.is_set() or self._draft.reply == reply

    @property
    def ended(self) -> asyncio.Event:
        """Set when nothing more is shown."""
        return self._ended

    async def finished(self) -> None:
        """Wait until the last call for it has ended."""
        await self._done.wait()

    async def run(self) -> None:
        """Show the turn until it ends. A call under way is never broken off, unless this task is cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                work = [group.create_task(self._signal()), group.create_task(self._show())]
                await self._ended.wait()
                work[0].cancel()
                async with self._draft.calling:
                    work[1].cancel()
            with fenced(self._bench.log, "draft.failed", "warning", turn=self.ref.turn):
                await self._draft.withdraw()
        finally:
            self._ended.set()
            self._done.set()

    async def _signal(self) -> None:
        """Show that work goes on, as long as nothing else shows it."""
        channel, interval = self.line.channel, self.line.open.kind.capabilities.typing_interval
        if interval is None or not isinstance(channel, ShowsTyping):
            return
        await self._bench.clock.sleep(FIRST_SIGNAL)
        while not self._draft.shown:
            async with self.line.gate.turn_to_call(self.ref.place, Priority.TYPING):
                with fenced(self._bench.log, "typing.failed", "debug", turn=self.ref.turn):
                    await channel.typing(self.ref.place)
            await self._bench.clock.sleep(interval)

    async def _show(self) -> None:
        if not self.line.open.drafts or self.line.editor is None:
            return
        with fenced(self._bench.log, "draft.failed", "warning", channel=self.ref.place.channel, turn=self.ref.turn):
            if await self._draft.adopt():
                await self._follow()

    async def _follow(self) -> None:
        """Bring the draft up to the newest text whenever its interval is over."""
        clock, place = self._bench.clock, self.ref.place
        interval = self.line.open.kind.pace.draft_interval_in(place)
        not_before = 0.0
        while True:
            await self._changed.wait()
            if self._first_at is None:
                self._changed.clear()
                continue
            first = self._first_at + FIRST_DELAY
            await clock.sleep(first - HEAD_START - clock.monotonic())
            if self._draft.reply is None and not await self._draft.prepare(self._laid_out()):
                return
            await clock.sleep(max(not_before, first) - clock.monotonic())
            self._changed.clear()
            if not self._draft.differs(self._laid_out()):
                continue
            await self._draft.announce(self._laid_out())
            async with self.line.gate.turn_to_call(place, Priority.DRAFT) as answered, self._draft.calling:
                not_before = clock.monotonic()
                self._changed.clear()
                wait = await self._draft.bring_up_to(self._laid_out(), answered)
            if wait is None:
                return
            not_before += max(interval, wait, self._layout_seconds / RENDER_SHARE)
            # A text that has grown over the limit takes a call for each of its messages.
            self._changed.set()

    def _laid_out(self) -> list[MessageBody]:
        """What the draft should show, laid out once for each text."""
        if self._bodies is None:
            began = self._bench.clock.monotonic()
            self._bodies = list(self.line.channel.render(self._segment.shown()))
            self._layout_seconds = self._bench.clock.monotonic() - began
        return self._bodies


class Draft:
    """The messages of a draft: what stands on the platform, and how it comes to show something else.

    Args:
        ref: The turn.
        line: Where it is shown.
        bench: The outbox, the clock, the log.
        ended: Set when the final is on its way: what is not sent by then is the final's to send.
    """

    def __init__(self, ref: TurnRef, line: Line, bench: Bench, ended: asyncio.Event) -> None:
        self.shown: dict[int, Shown] = {}
        self.calling = asyncio.Lock()
        """Held while a call is under way."""
        self._ref = ref
        self._line = line
        self._bench = bench
        self._ended = ended
        self.reply: ReplyId | None = None
        """In the outbox; None: nothing is on record yet."""
        self._prepared: MessageBody | None = None
        self._edited: set[int] = set()
        self._faults = 0

    async def adopt(self) -> bool:
        """Take over what the turn showed before a restart.

        Returns:
            Whether a draft may be shown. Not while a message of it is unclear: it has no id that could be edited.
        """
        reply = await self._bench.outbox.open_of_turn(self._ref.turn)
        if reply is None:
            return True
        self.reply = reply.id
        for part in reply.parts:
            if part.platform_id:
                self.shown[part.position] = Shown(part.platform_id, None)
        return not any(part.state is PartState.SENDING and not part.platform_id for part in reply.parts)

    async def prepare(self, bodies: list[MessageBody]) -> bool:
        """Put the first message on record before its time; False: the turn is over in the store."""
        if not bodies:
            return True
        async with self.calling:
            await self._begin(0, bodies[0])
            self._prepared = bodies[0]
        return self.reply is not None

    async def withdraw(self) -> None:
        """What was put on record and is not sent by the draft is the final's to send."""
        if self._prepared is not None and self.reply is not None:
            self._prepared = None
            await self._bench.outbox.release_part(self.reply, 0)

    def differs(self, bodies: list[MessageBody]) -> bool:
        """Whether something else stands on the platform."""
        return self._next(bodies) is not None

    async def announce(self, bodies: list[MessageBody]) -> None:
        """Put on record that a message will be edited, before the turn to call: no turn is to wait for a disk."""
        position = self._next(bodies)
        if position in self.shown:
            async with self.calling:
                await self._note_edit(position, bodies[position])

    async def bring_up_to(self, bodies: list[MessageBody], answered: Callable[[], None]) -> float | None:
        """Make the one call that brings the draft nearer to what should be shown.

        Args:
            bodies: What should be shown.
            answered: Told as soon as the platform has taken the call.

        Returns:
            Seconds to wait before the next; None when the draft is over, and only the final will say more.
        """
        position = self._next(bodies)
        if position is None:
            return 0.0
        shown = self.shown.get(position)
        try:
            if shown is None:
                over = not await self._send(position, bodies[position], answered)
            else:
                over = False
                await self._edit(position, shown, bodies[position])
        except TryLaterError as error:
            self._line.gate.hold_for(self._ref.place, error)
            self._faults += 1
            return max(error.retry_after or 0.0, min(2.0**self._faults, LONGEST_BACKOFF))
        except (DeliveryError, StorageError) as error:
            if isinstance(error, UnclearError) and shown is not None:
                self._faults += 1
                return min(2.0**self._faults, LONGEST_BACKOFF)
            self._bench.log(
                "draft.failed", level="warning", error=error, channel=self._ref.place.channel, turn=self._ref.turn
            )
            return None
        self._faults = 0
        return None if over else 0.0

    def _next(self, bodies: list[MessageBody]) -> int | None:
        """The first message that is missing or shows something else."""
        for position, body in enumerate(bodies):
            shown = self.shown.get(position)
            if shown is None or shown.body != body:
                return position
        return None

    async def _send(self, position: int, body: MessageBody, answered: Callable[[], None]) -> bool:
        """Send a new message; False: the turn is over, so nothing was sent."""
        outbox, ref = self._bench.outbox, self._ref
        prepared, self._prepared = self._prepared, None
        if prepared is None:
            await self._begin(position, body)
        if self.reply is None:
            return False
        if self._ended.is_set():
            await outbox.release_part(self.reply, position)
            return False
        message = OutboundMessage(
            place=ref.place,
            body=body,
            key=part_key(self.reply, position, ref.turn),
            reply_to=ref.reply_to if position == 0 else "",
            answers=ref.reply_to,
            growing=True,
        )
        try:
            sent = await self._line.channel.send(message)
        except UnclearError:
            raise
        except DeliveryError:
            await outbox.release_part(self.reply, position)
            raise
        answered()
        # Of what grows perhaps not all words are there yet.
        self.shown[position] = Shown(sent.id, None if _is_growing(self._line.channel, sent) else body)
        await self._record(self.reply, position, body, sent.id, same=prepared in (None, body))
        return True

    async def _record(self, reply: ReplyId, position: int, body: MessageBody, ident: str, *, same: bool) -> None:
        """Put on record what the platform has taken: without its id the final would have to repeat it."""
        outbox, stored = self._bench.outbox, self._bench.patience.stored
        if not same:
            # The record says what stands there: by it the final is compared.
            await stored(lambda: outbox.begin_part(reply, position, body))
        await stored(lambda: outbox.part_sent(reply, position, ident))

    async def _begin(self, position: int, body: MessageBody) -> None:
        """Put a message on record before it is sent; no reply afterwards: the turn is over in the store."""
        outbox, ref = self._bench.outbox, self._ref
        if self.reply is None:
            self.reply = await outbox.open_draft(ref.turn, ref.conversation, ref.place, ref.reply_to, body)
        else:
            await outbox.begin_part(self.reply, position, body)

    async def _edit(self, position: int, shown: Shown, body: MessageBody) -> None:
        """Change a message."""
        editor = self._line.editor
        assert editor is not None, "a channel without edits shows no draft"
        await self._note_edit(position, body)
        # Until the platform has answered nobody knows which of the two it shows.
        self.shown[position] = Shown(shown.id, None)
        channel, sent, whole = self._line.channel, shown.at(self._ref.place), True
        if isinstance(channel, GrowsMessages):
            whole = await channel.grow(sent, body)
        else:
            await editor.edit(sent, body)
        if whole:
            self.shown[position] = Shown(shown.id, body)

    async def _note_edit(self, position: int, body: MessageBody) -> None:
        """Put on record, once, that a message is edited: from then on the store cannot know what it shows."""
        assert self.reply is not None, "what is shown belongs to a reply"
        if position not in self._edited:
            await self._bench.outbox.begin_part(self.reply, position, body)
            self._edited.add(position)


def _is_growing(channel: Channel, sent: SentMessage) -> bool:
    return isinstance(channel, GrowsMessages) and channel.is_growing(sent)
