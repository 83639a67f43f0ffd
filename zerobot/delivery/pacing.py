"""When a platform may be called next: two budgets, the chat's and the bot's, and windows in which nothing goes out.

`Scheduler` is pure: it is told the time and waits for nothing. `Gate` is what callers wait at.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from enum import IntEnum

from zerobot.core.channel import Pace
from zerobot.core.clock import Clock
from zerobot.core.errors import TryLaterError
from zerobot.core.places import Place
from zerobot.delivery.waiting import event_or_timeout

_EPSILON = 1e-6
"""Seconds by which a sum of floats may miss its moment."""

DRAFT_SHARE = 0.9
"""Of the bot's budget: the rest is kept for approvals and finals, which then don't wait for a window to pass."""
TYPING_SHARE = 0.125
"""Of the bot's budget: many turns that begin at once must not spend on signals what their first words need."""
SURELY_SEEN = 5.0
"""Seconds after which a call that has no answer yet counts as seen by the platform: a hanging one holds nobody up."""


class Priority(IntEnum):
    """Who goes first when not all can."""

    APPROVAL = 0
    ANSWER = 1
    """The first message of a reply without a draft. People pace these by writing, and most platforms bear such bursts:
    the budgets count them and do not hold them back, only a window that the platform has asked for does."""
    FINAL = 2
    OUTCOME = 3
    """A prompt that shows what was decided: the answer that the decision led to is wanted more."""
    DRAFT = 4
    TYPING = 5
    """Counts for the bot only: no platform counts signals as messages of a chat."""


@dataclass(frozen=True, slots=True, eq=False)
class Ticket:
    """Somebody who waits to call."""

    place: Place
    priority: Priority
    number: int


@dataclass(slots=True)
class _BotCalls:
    """The bot's calls; each takes its room from its beginning until a window after its end.

    The platform sees a call at any moment until its answer. If they were counted from their beginnings, calls that set
    out in time could arrive in one crowd, and be refused. One that has no answer for long keeps nobody: it was seen.
    """

    under_way: dict[int, float] = field(default_factory=dict)
    """Number of its ticket -> when it counts as ended, should no answer come before."""
    ended: deque[float] = field(default_factory=deque)
    """When the newest of the others did, oldest first; no more than the budget looks at."""

    def room_at(self, calls: int, seconds: float) -> float:
        """When there is room for one more of so many calls within `seconds`, if no other ends before."""
        return _room_at(sorted([*self.ended, *self.under_way.values()]), calls, seconds)


@dataclass(slots=True)
class _Chat:
    """What is known of one chat."""

    calls: deque[float] = field(default_factory=deque)
    """When the newest messages went out, oldest first; no more than the budget looks at."""
    held_until: float = 0.0
    drafted: float = float("-inf")
    """When it was last given a turn for a draft or a signal: who waited longest is next."""


class Scheduler:
    """Who may call now, and if nobody, when. All times are monotonic seconds.

    Args:
        pace: The platform's numbers.
    """

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._waiting: list[Ticket] = []
        self._chats: dict[str, _Chat] = {}
        self._bot_calls = _BotCalls()
        self._held_until = 0.0
        self._number = 0

    @property
    def chats(self) -> int:
        """How many chats something is remembered of."""
        return len(self._chats)

    def ask(self, place: Place, priority: Priority) -> Ticket:
        """Queue for a call."""
        self._number += 1
        ticket = Ticket(place, priority, self._number)
        self._waiting.append(ticket)
        return ticket

    def drop(self, ticket: Ticket) -> None:
        """Wait no longer."""
        self._waiting.remove(ticket)

    def grant(self, now: float) -> Ticket | None:
        """Take the next who may call now, and count the call; whoever makes it tells by `called` that it has ended."""
        able = [ticket for ticket in self._waiting if self._free_at(ticket) <= now + _EPSILON]
        if not able:
            self._forget_idle(now)
            return None
        ticket = min(able, key=self._rank)
        self._waiting.remove(ticket)
        self._count(ticket, now)
        return ticket

    def next_chance(self) -> float | None:
        """When somebody who waits may call; None when nobody waits."""
        return min((self._free_at(ticket) for ticket in self._waiting), default=None)

    def called(self, ticket: Ticket, now: float) -> None:
        """A call has ended. The platform saw it at some time before `now`: its windows count from here."""
        self._bot_calls.under_way.pop(ticket.number, None)
        _note(self._bot_calls.ended, now, self._pace.bot_calls[0])
        chat = self._chats.get(ticket.place.chat)
        if chat is not None and chat.calls and ticket.priority is not Priority.TYPING:
            chat.calls[-1] = max(chat.calls[-1], now)

    def hold(self, place: Place | None, until: float) -> None:
        """No call at all to this place's chat, or (None) of the whole bot, before `until`."""
        if place is None:
            self._held_until = max(self._held_until, until)
        else:
            chat = self._chat(place)
            chat.held_until = max(chat.held_until, until)

    def _rank(self, ticket: Ticket) -> tuple[int, float, int]:
        # Drafts: who was served longest ago; everything else: who came first.
        drafted = self._chat(ticket.place).drafted if ticket.priority >= Priority.DRAFT else 0.0
        return ticket.priority, drafted, ticket.number

    def _free_at(self, ticket: Ticket) -> float:
        chat = self._chats.get(ticket.place.chat)
        if ticket.priority is Priority.ANSWER and not self._pace.strict:
            return max(self._held_until, chat.held_until if chat else 0.0)
        bot_calls, bot_seconds = self._pace.bot_calls
        allowed = _share(bot_calls, ticket.priority)
        times = [self._held_until, self._bot_calls.room_at(allowed, bot_seconds)]
        if chat is not None:
            times.append(chat.held_until)
            if ticket.priority is not Priority.TYPING:
                times.append(_room_at(chat.calls, *self._pace.calls_in(ticket.place)))
        return max(times)

    def _count(self, ticket: Ticket, now: float) -> None:
        self._bot_calls.under_way[ticket.number] = now + SURELY_SEEN
        chat = self._chat(ticket.place)
        if ticket.priority >= Priority.DRAFT:
            chat.drafted = now
        if ticket.priority is not Priority.TYPING:
            _note(chat.calls, now, self._pace.calls_in(ticket.place)[0])

    def _chat(self, place: Place) -> _Chat:
        return self._chats.setdefault(place.chat, _Chat())

    def _forget_idle(self, now: float) -> None:
        """Drop what has no influence any more, so that a bot in many chats does not grow."""
        window = max(self._pace.bot_calls[1], self._pace.chat_calls[1], (self._pace.group_calls or (0, 0.0))[1])
        busy = {ticket.place.chat for ticket in self._waiting}
        for name, chat in list(self._chats.items()):
            last = max(chat.calls[-1] if chat.calls else 0.0, chat.drafted) + window
            if name not in busy and max(last, chat.held_until) <= now:
                del self._chats[name]


def _share(calls: int, priority: Priority) -> int:
    """How many of the bot's calls in its window this priority may be the last of."""
    share = {Priority.DRAFT: DRAFT_SHARE, Priority.TYPING: TYPING_SHARE}.get(priority, 1.0)
    return max(1, int(calls * share))


def _room_at(times: Sequence[float], calls: int, seconds: float) -> float:
    """When there are fewer than `calls` of these times within the last `seconds`."""
    return times[-calls] + seconds if len(times) >= calls else 0.0


def _note(times: deque[float], now: float, calls: int) -> None:
    times.append(now)
    while len(times) > calls:
        times.popleft()


class Gate:
    """Where everybody waits who wants to call one bot's platform.

    Args:
        pace: The platform's numbers.
        clock: Its monotonic time counts.
    """

    def __init__(self, pace: Pace, clock: Clock) -> None:
        self._scheduler = Scheduler(pace)
        self._clock = clock
        self._turns: dict[Ticket, asyncio.Future[None]] = {}
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Let callers through as time passes, until cancelled. Who need not wait passes without it."""
        while True:
            self._changed.clear()
            self._grant()
            chance = self._scheduler.next_chance()
            wait = None if chance is None else max(chance - self._clock.monotonic(), _EPSILON)
            await event_or_timeout(self._changed, self._clock, wait)

    @asynccontextmanager
    async def turn_to_call(self, place: Place, priority: Priority) -> AsyncIterator[Callable[[], None]]:
        """Wait for a turn; the body makes one call, and what must be committed just before it.

        Yields:
            What ends the turn before the body does, if that has more to do once the platform has answered.
        """
        ticket = self._scheduler.ask(place, priority)
        turn = self._turns[ticket] = asyncio.get_running_loop().create_future()
        self._grant()
        self._changed.set()
        try:
            await turn
        except asyncio.CancelledError:
            # A turn that was given just then is lost to nobody but this caller.
            if self._turns.pop(ticket, None) is not None:
                self._scheduler.drop(ticket)
            raise
        with ExitStack() as under_way:
            under_way.callback(self._called, ticket)
            yield under_way.close

    def _called(self, ticket: Ticket) -> None:
        self._scheduler.called(ticket, self._clock.monotonic())
        self._changed.set()

    def hold_for(self, place: Place, error: TryLaterError) -> None:
        """Obey a platform that asks us to wait: nothing goes out, a typing signal neither, before that has passed."""
        if error.retry_after is None:
            return
        self._scheduler.hold(None if error.whole_bot else place, self._clock.monotonic() + error.retry_after)
        self._changed.set()

    def _grant(self) -> None:
        while (ticket := self._scheduler.grant(self._clock.monotonic())) is not None:
            turn = self._turns.pop(ticket)
            if not turn.done():
                turn.set_result(None)
