"""The threads that mail belongs to, as the channel's state keeps them; and how many mails a correspondent has sent."""

from __future__ import annotations

import hashlib
import json

from channels.email.correspondence import (
    HOUR,
    Thread,
    likely_keys,
    new_thread,
    opening_key,
    read_thread,
    with_mail,
    write_thread,
)
from channels.email.decode import Reading
from zerobot.core.channel import ChannelState
from zerobot.core.clock import Clock

PEER_SHARE = 3
"""A correspondent gets so many times the answers of one thread within an hour, over all threads."""


class TooManyError(Exception):
    """More mails within an hour than are answered."""


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

    async def add(self, thread: Thread, reading: Reading, sender: str, *, decides: bool) -> Thread:
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
            return thread
        now = self._clock.now().timestamp()
        times = [time for time in await self._times(sender) if time > now - HOUR]
        too_many = thread.count_since(now - HOUR) >= self._most and not decides
        if too_many or len(times) >= self._most * PEER_SHARE:
            raise TooManyError
        after = with_mail(thread, reading.mail, reading.fingerprint, sender, self._own, now)
        await self._state.set(_peer(sender), json.dumps([*times, now]))
        if (opening := opening_key(reading.mail, sender)) is not None:
            await self._state.set(_root(opening), after.key)
        await self._state.set(_thread(after.key), write_thread(after))
        return after

    async def forget(self, thread: Thread, reading: Reading, sender: str) -> None:
        """Take back what was added: whoever wrote may not talk to the bot, so nothing of theirs is kept.

        Args:
            thread: As it was before.
            reading: The mail.
            sender: Who wrote.

        Raises:
            StorageError: It is still there.
        """
        if (opening := opening_key(reading.mail, sender)) is not None:
            await self._state.forget(_root(opening))
        if thread.mails:
            await self._state.set(_thread(thread.key), write_thread(thread))
        else:
            await self._state.forget(_thread(thread.key))
            await self._state.forget(_peer(sender))

    async def _times(self, sender: str) -> list[float]:
        try:
            return [float(time) for time in json.loads(await self._state.get(_peer(sender)) or "[]")]
        except (ValueError, TypeError):
            return []


def _thread(key: str) -> str:
    return f"thread:{key}"


def _root(key: str) -> str:
    return f"root:{key}"


def _peer(sender: str) -> str:
    return f"peer:{hashlib.sha256(sender.encode()).hexdigest()[:16]}"
