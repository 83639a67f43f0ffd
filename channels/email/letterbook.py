"""The threads that mail belongs to, as the channel's state keeps them; and how many mails a correspondent has sent."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from pydantic import TypeAdapter

from channels.email.correspondence import (
    Thread,
    likely_keys,
    new_thread,
    opening_key,
    read_thread,
    with_mail,
    with_stranger,
    within_hour,
    write_thread,
)
from channels.email.decode import Reading
from zerobot.core.channel import ChannelState
from zerobot.core.clock import Clock

PEER_SHARE = 3
"""A correspondent gets so many times the answers of one thread within an hour, over all threads."""


_TIMES = TypeAdapter(tuple[float, ...])


class TooManyError(Exception):
    """More mails within an hour than are answered."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A mail that was put into its thread."""

    thread: Thread
    """With the mail."""
    before: Thread
    """Without it; the same one, if it was in it already."""
    sender: str
    times: tuple[float, ...]
    """When the sender's other mails of this hour came in, in seconds of wall time."""
    opening: str | None = None
    """What the thread is found by when another mail names this one as its root; None: it cannot be one."""
    opened: str | None = None
    """The thread that was found by that before."""


class Letterbook:
    """Remembers threads.

    Args:
        state: The channel's.
        clock: The time.
        own: The bot's addresses.
        most: Mails that are answered in one thread within an hour.
    """

    def __init__(self, state: ChannelState, clock: Clock, own: frozenset[str], most: int) -> None:
        self._state = state
        self._clock = clock
        self._own = own
        self._most = most

    async def known(self, key: str) -> Thread | None:
        """A thread by its key.

        Raises:
            StorageError: It cannot be read now.
        """
        return read_thread(key, await self._state.get(_thread(key)))

    async def of(self, reading: Reading, sender: str) -> Thread:
        """The thread that a mail goes on or begins, without the mail in it.

        Raises:
            StorageError: It cannot be read now.
        """
        for key in dict.fromkeys(likely_keys(reading.mail, sender, self._own)):
            thread = await self.known(await self._state.get(_root(key)) or key)
            if thread is not None and sender in thread.people:
                return thread
        fresh = new_thread(reading.mail, reading.fingerprint, sender, self._own)
        return await self.known(fresh.key) or fresh

    async def add(self, thread: Thread, reading: Reading, sender: str, *, decides: bool) -> Entry:
        """Put a mail into its thread. One that is in it already, a crash having come between, is not counted again.

        Args:
            thread: Without the mail.
            reading: The mail.
            sender: Its proved sender.
            decides: Whether it answers a request of ours: however many of those a thread has, each wants an answer.

        Raises:
            TooManyError: There were too many within the hour; nothing is stored.
            StorageError: It is not stored.
        """
        if thread.has(reading.fingerprint):
            return Entry(thread, thread, sender, ())
        now = self._clock.now().timestamp()
        times = within_hour(await self._times(sender), now)
        too_many = len(within_hour(thread.times, now)) >= self._most and not decides
        if too_many or len(times) >= self._most * PEER_SHARE:
            raise TooManyError
        after = with_mail(thread, reading.mail, reading.fingerprint, sender, self._own, now)
        await self._state.set(_peer(sender), json.dumps([*times, now]))
        opening = opening_key(reading.mail, sender)
        opened = None if opening is None else await self._state.get(_root(opening))
        if opening is not None:
            await self._state.set(_root(opening), after.key)
        await self._state.set(_thread(after.key), write_thread(after))
        return Entry(after, thread, sender, times, opening, opened)

    async def take_back(self, entry: Entry) -> None:
        """Put everything back as it was before a mail was added: it was none to answer, and it is not counted.

        Raises:
            StorageError: It is still there.
        """
        if entry.thread is entry.before:
            return
        before = entry.before
        await self._restore(_peer(entry.sender), json.dumps(entry.times) if entry.times else None)
        await self._restore(_thread(before.key), write_thread(before) if before.mails else None)
        if entry.opening is not None:
            await self._restore(_root(entry.opening), entry.opened)

    async def keep_outside(self, entry: Entry) -> None:
        """The sender of an added mail is not let in, and is told so: it is kept for that, and brings nobody along.

        Nothing is kept of who begins a thread: the place tells whom the answer goes to.

        Raises:
            StorageError: It is not stored.
        """
        if not entry.before.mails:
            await self.take_back(entry)
        elif entry.thread is not entry.before:
            outside = with_stranger(entry.before, entry.thread)
            await self._state.set(_thread(outside.key), write_thread(outside))

    async def _restore(self, key: str, value: str | None) -> None:
        if value is None:
            await self._state.forget(key)
        else:
            await self._state.set(key, value)

    async def _times(self, sender: str) -> tuple[float, ...]:
        try:
            return _TIMES.validate_json(await self._state.get(_peer(sender)) or "[]")
        except ValueError:
            return ()


def _thread(key: str) -> str:
    return f"thread:{key}"


def _root(key: str) -> str:
    return f"root:{key}"


def _peer(sender: str) -> str:
    return f"peer:{hashlib.sha256(sender.encode()).hexdigest()[:16]}"
