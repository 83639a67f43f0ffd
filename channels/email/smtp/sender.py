"""Hands mails to the server, several at once, and says what its answers mean for them."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from channels.email.smtp.line import Deadlines, LineLostError, Refused, SmtpAccount, SmtpLine, SmtpRefusalError
from channels.email.writing.letter import Parcel
from zerobot.core.clock import Clock
from zerobot.core.errors import (
    DeliveryError,
    RefusedError,
    TryLaterError,
    UnreachableError,
    ZerobotError,
)

Tell: TypeAlias = Callable[[str, str], Awaitable[None]]
"""(what it is about, in plain words): tells the operators, once a day about one thing; over this mailbox as well. So
what it is about has no words of the server in it: word of a refusal may be refused too, and would go round for ever."""
_LOGIN = "smtp login"

MOST_LINES = 3
"""Connections at once; providers allow few (Exchange Online: 3, and refuses a mail over a fourth)."""
LATER_SECONDS = 60.0
"""The first wait after a `later`; who puts strangers off takes them after some minutes (RFC 6647, section 5)."""
BROKEN_SECONDS = 5.0
LONGEST_SECONDS = 1800.0
LONGEST_DOWN_SECONDS = 300.0
"""A server that cannot be reached is tried this often: nobody tells us when it is back."""
_TELL_SECONDS = 30.0
_MOST_TROUBLES = 1000
_LOGIN_WANTED = 530


@dataclass(slots=True)
class _Trouble:
    """What one mail met with so far."""

    waits: int = 0
    told: bool = False


@dataclass(frozen=True, slots=True)
class _Kept:
    """A connection that waits for the next mail."""

    line: SmtpLine
    end: asyncio.TimerHandle


class _Door:
    """How long the server is left alone after nobody could get in: each failed login counts against the account."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = 0.0
        self._faults = 0
        self.told = False

    def left(self) -> float:
        """Seconds for which nobody is to knock."""
        return self._until - self._clock.monotonic()

    def shut(self, first: float, longest: float) -> float:
        """It did not open; returns the seconds until it may be tried again."""
        wait = _grown(first, self._faults, longest)
        self._faults += 1
        self._until = self._clock.monotonic() + wait
        return wait

    def opened(self) -> None:
        """Somebody got in."""
        self._until, self._faults, self.told = 0.0, 0, False


class SmtpSender:
    """Sends mails. A connection serves one of them at a time, and is kept for a short while for the next.

    Args:
        account: Where, and as whom.
        tell: Tells the operators of what is refused for good.
        clock: For the waits that are asked for.
        deadlines: How long the server may take.
    """

    def __init__(self, account: SmtpAccount, tell: Tell, clock: Clock, deadlines: Deadlines | None = None) -> None:
        self._account = account
        self._tell = tell
        self._deadlines = deadlines or Deadlines()
        self._slots = asyncio.Semaphore(MOST_LINES)
        self._opening = asyncio.Lock()
        self._door = _Door(clock)
        self._kept: list[_Kept] = []
        self._troubles: OrderedDict[str, _Trouble] = OrderedDict()

    async def send(self, parcel: Parcel) -> None:
        """Hand a mail over; when this returns the server has taken it, for its main recipient at least.

        Raises:
            TryLaterError: It was not taken, and may be later. `whole_bot`: the server lets nobody in.
            UnclearError: The connection broke after the whole mail was sent.
            RefusedError: It will never take this mail.
            UnreachableError: It will never take a mail for this recipient.
        """
        async with self._slots:
            try:
                refused = await self._hand_over(parcel)
            except SmtpRefusalError as error:
                raise await self._meaning(parcel, error) from error
            except LineLostError as error:
                wait = self._next_wait(parcel.key, BROKEN_SECONDS)
                raise TryLaterError(f"smtp: {error}", retry_after=wait) from error
        self._troubles.pop(parcel.key, None)
        for each in refused:
            await self._say(
                f"smtp {each.address}",
                f"A mail went out without {_code(each.address)}, who was in CC: {_reply(each.error)}",
            )

    async def probe(self) -> None:
        """Log in, and send nothing.

        Raises:
            TryLaterError: The server cannot be reached, or does not let us in.
        """
        async with self._slots:
            self._keep(await self._kept_line() or await self._open())

    async def close(self) -> None:
        """Let go of the connections that wait."""
        while self._kept:
            kept = self._kept.pop()
            kept.end.cancel()
            kept.line.leave()
        await asyncio.sleep(0)  # that is when they are gone

    async def _hand_over(self, parcel: Parcel) -> Sequence[Refused]:
        line = await self._kept_line()
        if line is not None:
            try:
                return await self._carry(line, parcel)
            except LineLostError:
                pass  # it was not taken; a connection that was kept may end at any moment
            except SmtpRefusalError as error:
                if not error.ends_line:
                    raise
        return await self._carry(await self._open(), parcel)

    async def _carry(self, line: SmtpLine, parcel: Parcel) -> Sequence[Refused]:
        """Send a mail over a connection that nobody else has."""
        try:
            refused = await line.hand_over(parcel)
        except SmtpRefusalError as error:
            if error.ends_line:
                line.drop()
            else:
                self._keep(line)
            raise
        except BaseException:
            line.drop()
            raise
        self._keep(line)
        return refused

    async def _open(self) -> SmtpLine:
        """Make a connection; one at a time, so that a wrong password is said once."""
        async with self._opening:
            left = self._door.left()
            if left > 0:
                raise TryLaterError("smtp: the server let nobody in before", retry_after=left, whole_bot=True)
            try:
                line = await SmtpLine.open(self._account, self._deadlines)
            except LineLostError as error:
                wait = self._door.shut(BROKEN_SECONDS, LONGEST_DOWN_SECONDS)
                raise TryLaterError(f"smtp: {error}", retry_after=wait, whole_bot=True) from error
            except SmtpRefusalError as error:
                why = f"The mail server at {self._account.host} does not let me send: {_reply(error)}"
                raise await self._locked_out(error, why, told=not error.passing) from error
            except ZerobotError as error:
                why = f"I cannot log in to send mail: {error}"
                raise await self._locked_out(error, why, told=True) from error
            self._door.opened()
            return line

    async def _locked_out(self, error: Exception, why: str, *, told: bool) -> TryLaterError:
        wait = self._door.shut(LATER_SECONDS, LONGEST_SECONDS)
        if told and not self._door.told:
            self._door.told = True
            await self._say(_LOGIN, f"{why} Answers by mail wait, for a day at most.")
        return TryLaterError(f"smtp: {error}", retry_after=wait, whole_bot=True)

    async def _kept_line(self) -> SmtpLine | None:
        """A connection that was kept and still works."""
        while self._kept:
            kept = self._kept.pop()
            kept.end.cancel()
            alive = False
            try:
                alive = await kept.line.is_alive()
            finally:
                if not alive:
                    kept.line.drop()
            if alive:
                return kept.line
        return None

    def _keep(self, line: SmtpLine) -> None:
        end = asyncio.get_running_loop().call_later(self._deadlines.kept, self._let_go, line)
        self._kept.append(_Kept(line, end))

    def _let_go(self, line: SmtpLine) -> None:
        self._kept = [kept for kept in self._kept if kept.line is not line]
        line.leave()

    async def _meaning(self, parcel: Parcel, error: SmtpRefusalError) -> DeliveryError:
        """What a refusal means for a mail; the operators are told of one for good, once for each mail."""
        text = f"smtp: {error}"
        if error.passing:
            return TryLaterError(text, retry_after=self._next_wait(parcel.key, LATER_SECONDS))
        if error.code == _LOGIN_WANTED:
            why = f"The mail server at {self._account.host} takes no mail from me: {_reply(error)}"
            return await self._locked_out(error, why, told=True)
        trouble = self._trouble(parcel.key)
        if not trouble.told:
            trouble.told = True
            to = parcel.recipients[0]
            await self._say(f"smtp {to}", f"The mail server refused an answer to {_code(to)}: {_reply(error)}")
        return UnreachableError(text) if error.stage == "recipient" else RefusedError(text)

    def _next_wait(self, key: str, first: float) -> float:
        trouble = self._trouble(key)
        trouble.waits += 1
        return _grown(first, trouble.waits - 1, LONGEST_SECONDS)

    def _trouble(self, key: str) -> _Trouble:
        trouble = self._troubles.setdefault(key, _Trouble())
        self._troubles.move_to_end(key)
        while len(self._troubles) > _MOST_TROUBLES:
            self._troubles.popitem(last=False)
        return trouble

    async def _say(self, subject: str, text: str) -> None:
        """Tell the operators; whether it worked changes nothing for the mail."""
        with contextlib.suppress(ZerobotError, TimeoutError):
            async with asyncio.timeout(_TELL_SECONDS):
                await self._tell(subject, text)


def _grown(first: float, faults: int, longest: float) -> float:
    """A wait that doubles with each fault."""
    return min(first * 2.0 ** min(faults, 16), longest)


def _reply(error: SmtpRefusalError) -> str:
    """A server's words, for people."""
    return f"{_code(error.reply.rstrip('.'))}."


def _code(words: str) -> str:
    """Words of others as Markdown code: nothing in them is mark-up."""
    return f"`{words.replace('`', '?')}`"
