"""Machines that answer each mail at once: an hour of them, in simulated time and over restarts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

import pytest

from tests.platforms.email_house import EmailHouse, email_house, received
from tests.platforms.imap_server import USER

MOST = 10
"""`answers_per_hour`, as it is unless it is set."""
OTHER = "helper@other.test"
HOUR = 3_600.0
PACE = 45.0
"""Seconds from a mail to its answer."""
RESTARTS_EVERY = 7
"""Mails."""

Forger = Callable[[bytes, int], bytes]
"""Makes of the mail with this number what comes in at the other side."""


def as_it_is(raw: bytes, number: int) -> bytes:
    """Mail as servers hand it on."""
    del number
    return raw


def unmarked(raw: bytes, number: int) -> bytes:
    """Without any word of being automatic, and with an id that is not the bot's; else the answer that it is."""
    mail = message_from_bytes(raw, policy=SMTP)
    for name in {name for name in mail.keys() if name.lower().startswith(("x-", "auto-", "precedence"))}:  # noqa: SIM118
        del mail[name]
    mail.replace_header("Message-ID", f"<{number}@machine.test>")
    return mail.as_bytes()


def unrelated(raw: bytes, number: int) -> bytes:
    """The same with another subject each time, and without a word of what it answers."""
    mail = message_from_bytes(unmarked(raw, number), policy=SMTP)
    del mail["References"], mail["In-Reply-To"]
    mail.replace_header("Subject", f"Ticket {number}")
    return mail.as_bytes()


def nameless(raw: bytes, number: int) -> bytes:
    """Without an id, and with one subject for all."""
    mail = message_from_bytes(unrelated(raw, number), policy=SMTP)
    del mail["Message-ID"]
    mail.replace_header("Subject", "Your ticket")
    return mail.as_bytes()


class Daemon:
    """A bot that answers whatever is let in, and is started anew from its state every few mails."""

    def __init__(self, house: EmailHouse, address: str) -> None:
        self.answers = 0
        self._address = address
        self._house = house
        self._mails = 0

    async def gets(self, raw: bytes, sender: str, seconds: float) -> bytes | None:
        """A mail comes in, so many seconds after the beginning; returns the answer, None: there is none."""
        self._mails += 1
        if self._mails % RESTARTS_EVERY == 0:
            await self._house.close()
            old = self._house
            self._house = EmailHouse(old.imap, old.smtp, state=old.state, address=self._address, username=USER)
        house = self._house
        house.clock.ahead, house.clock.wall = seconds, timedelta(seconds=seconds)
        before = len(house.intake.accepted)
        async with house.running() as intake:
            await house.looked_at(house.imap.deliver(received(raw, sender, house.clock.now())))
        if len(intake.accepted) == before:
            return None
        self.answers += 1
        return await house.answer(f"Answer {self.answers}.", key=f"answer {self.answers}")

    async def close(self) -> None:
        """Let go of the connections."""
        await self._house.close()


@asynccontextmanager
async def daemon(address: str) -> AsyncIterator[Daemon]:
    """A daemon with a mailbox of its own, in which it has begun to read."""
    async with email_house(address=address, username=USER) as house:
        async with house.running():
            pass
        daemon = Daemon(house, address)
        yield daemon
        await daemon.close()


def machine_mail(number: int, seconds: float) -> bytes:
    """A mail of a machine to the bot, as a bot of ours would write it."""
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = OTHER, USER, "Your ticket"
    mail["Date"] = format_datetime(datetime.now(UTC) + timedelta(seconds=seconds))
    mail["Message-ID"] = f"<begun.{number}@machine.test>"
    mail.set_content(f"Ticket {number} is worked on.")
    return mail.as_bytes(policy=SMTP)


@pytest.mark.parametrize(("forge", "most"), [(as_it_is, 1), (unmarked, MOST), (nameless, MOST), (unrelated, 3 * MOST)])
async def test_two_daemons_that_write_to_each_other_stop(forge: Forger, most: int) -> None:
    """At once by their marks; where something between them takes those away, at the limit of either of them."""
    async with daemon(USER) as one, daemon(OTHER) as other:
        pair = ((one, OTHER), (other, USER))
        raw, number = machine_mail(0, 0.0), 0
        while answer := await pair[number % 2][0].gets(raw, pair[number % 2][1], number * PACE):
            number += 1
            assert number * PACE < HOUR, "they go on for an hour"
            raw = forge(answer, number)
        assert max(one.answers, other.answers) == most


@pytest.mark.parametrize(("forge", "most"), [(unmarked, MOST), (nameless, MOST), (unrelated, 3 * MOST)])
async def test_a_machine_that_never_stops_gets_no_more_than_its_share(forge: Forger, most: int) -> None:
    """It writes for an hour, whether it is answered or not."""
    async with daemon(USER) as bot:
        for number in range(int(HOUR / PACE)):
            await bot.gets(forge(machine_mail(number, number * PACE), number), OTHER, number * PACE)
        assert bot.answers == most
