"""Handing mails to a server, over the real library, to a server that does what a test wants."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from channels.email.mail import Mailbox
from channels.email.smtp.line import Deadlines, SmtpAccount
from channels.email.smtp.sender import LATER_SECONDS, LONGEST_SECONDS, MOST_LINES, SmtpSender
from channels.email.writing.letter import Enclosure, Parcel
from tests.channels.email.letters import ANN, BEN, parcel
from tests.platforms.adapter_parts import HastyClock
from tests.platforms.certificates import Authority
from tests.platforms.smtp_server import DROP, HANG, SmtpServer
from zerobot.core.channel import MessageBody
from zerobot.core.errors import (
    ChannelFaultError,
    DeliveryError,
    RefusedError,
    TryLaterError,
    UnclearError,
    UnreachableError,
)

SHORT = Deadlines(connect=0.2, command=0.2, piece=0.2, end=0.2, alive=0.2)
LONG_TEXT = "\n".join(f".line {number} with some words in it" for number in range(60_000))


@dataclass
class Post:
    """A server, a sender, and what the operators were told."""

    server: SmtpServer
    sender: SmtpSender
    clock: HastyClock
    told: list[str]


@asynccontextmanager
async def post(
    *, client: ssl.SSLContext | None = None, deadlines: Deadlines | None = None, account: dict[str, Any] | None = None,
    **server: Any,
) -> AsyncIterator[Post]:  # fmt: skip
    """A server and a sender to it; in the end nothing was done wrong on the way."""
    async with SmtpServer(**server) as double:
        usual = SmtpAccount(
            host="127.0.0.1",
            port=double.port,
            security=server.get("security", "none"),
            tls=lambda: client or ssl.create_default_context(),
            username="bot@example.com",
            password="secret",
        )
        clock, told = HastyClock(), list[str]()

        async def tell(_: str, text: str) -> None:
            told.append(text)

        sender = SmtpSender(replace(usual, **account or {}), tell, clock, deadlines)
        try:
            yield Post(double, sender, clock, told)
        finally:
            await sender.close()
        assert double.notes.faults == []


async def failure(sender: SmtpSender, mail: Parcel | None = None) -> DeliveryError:
    with pytest.raises(DeliveryError) as caught:
        await sender.send(mail or parcel())
    return caught.value


async def test_a_mail_is_taken_as_it_is() -> None:
    """The server has the bytes that were composed, for the recipients of the envelope."""
    mail = parcel(text=".\n\n.. dots\n\n" + "word " * 500, cc=(BEN,))
    async with post() as here:
        await here.sender.send(mail)
        (taken,) = here.server.notes.taken
    assert taken.raw == mail.raw
    assert (taken.sender, taken.recipients) == (mail.sender, ("ann@example.com", "ben@example.com"))
    assert taken.account == "bot@example.com"


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_a_long_mail_goes_over_tls(security: str, authority: Authority) -> None:
    """Both ways to TLS work, and STARTTLS is spoken once (B104)."""
    tls = authority.server_context("IP:127.0.0.1")
    mail = parcel(body=MessageBody(LONG_TEXT))
    async with post(security=security, tls=tls, client=authority.client_context()) as here:
        await here.sender.send(mail)
        await here.sender.send(mail)
        assert here.server.mails == [mail.raw, mail.raw]
        verbs = [verb for _, verb in here.server.notes.commands]
        assert verbs.count("STARTTLS") == (security == "starttls")


@pytest.mark.parametrize("security", ["tls", "starttls"])
@pytest.mark.parametrize("name", ["DNS:elsewhere.example", ""])
async def test_a_certificate_that_proves_nothing_gets_no_mail(security: str, name: str, authority: Authority) -> None:
    """A wrong name or an unknown authority: no login, no mail, and the operators hear of it once."""
    tls = authority.server_context(name or "IP:127.0.0.1")
    client = authority.client_context() if name else None
    async with post(security=security, tls=tls, client=client) as here:
        error = await failure(here.sender)
        assert isinstance(error, TryLaterError)
        assert error.whole_bot
        await failure(here.sender)
        assert here.server.notes.logins == []
        assert len(here.told) == 1
        assert "certificate" in here.told[0]


async def test_without_starttls_nothing_is_said_in_the_open(authority: Authority) -> None:
    """A server, or somebody in between, that offers no TLS gets neither password nor mail."""
    async with post(account={"security": "starttls"}, client=authority.client_context()) as here:
        error = await failure(here.sender)
        assert isinstance(error, TryLaterError)
        assert here.server.notes.logins == []
        assert "STARTTLS" in here.told[0]


@pytest.mark.parametrize("method", ["PLAIN", "LOGIN"])
async def test_logging_in(method: str) -> None:
    """Either way of a password works."""
    async with post(methods=("CRAM-MD5", method)) as here:
        await here.sender.send(parcel())
        assert here.server.notes.logins == [method]


async def test_logging_in_by_access_token() -> None:
    """The token is asked for at each login; there is no password to fall back to."""
    tokens = ["first", "second"]

    async def next_token() -> str:
        return tokens.pop(0)

    async with post(tokens=["first"], account={"tokens": next_token}) as here:
        await here.sender.send(parcel())
        await here.sender.close()
        error = await failure(here.sender)
        assert isinstance(error, TryLaterError)
        assert here.server.notes.logins == ["XOAUTH2", "XOAUTH2"]
        assert "second" not in str(error) + here.told[0]


async def test_a_token_that_cannot_be_had() -> None:
    """What is wrong with the tokens is told, and mails wait."""

    async def none() -> str:
        raise ChannelFaultError("the refresh token was revoked", advice="get a new one")

    async with post(account={"tokens": none}) as here:
        error = await failure(here.sender)
        assert isinstance(error, TryLaterError)
        assert error.whole_bot
        assert "revoked" in here.told[0]


async def test_a_wrong_password_is_said_once_and_then_later() -> None:
    """Each failed login counts against the account: one try, then none before its time, whoever sends."""
    async with post(account={"password": "old"}) as here:
        errors = await asyncio.gather(*(failure(here.sender, parcel(f"k{number}")) for number in range(5)))
        assert all(isinstance(error, TryLaterError) and error.whole_bot for error in errors)
        assert here.server.notes.logins == ["PLAIN"]
        assert len(here.told) == 1
        assert "Username and Password not accepted" in here.told[0]
        here.clock.ahead += LATER_SECONDS + 1
        error = await failure(here.sender)
        assert isinstance(error, TryLaterError)
        assert error.retry_after == 2 * LATER_SECONDS
        assert here.server.notes.logins == ["PLAIN", "PLAIN"]
        assert len(here.told) == 1


async def test_a_relay_without_login_is_used_as_it_is() -> None:
    """A server on this machine that asks nobody needs no password."""
    async with post(methods=()) as here:
        await here.sender.send(parcel())
        assert len(here.server.mails) == 1


async def test_no_way_to_log_in_that_we_know() -> None:
    """The operators are told what the server would take."""
    async with post(methods=("GSSAPI", "NTLM")) as here:
        assert isinstance(await failure(here.sender), TryLaterError)
        assert "gssapi" in here.told[0]


async def test_a_server_that_is_not_there() -> None:
    """Surely not taken; nobody is told, it may be back in a moment."""
    async with post() as here:
        port = here.server.port
    async with post(account={"port": port}) as here:
        error = await failure(here.sender)
        assert isinstance(error, TryLaterError)
        assert error.whole_bot
        assert here.told == []


@pytest.mark.parametrize("stage", ["MAIL", "RCPT", "DATA", "END"])
async def test_later_is_later_and_each_wait_is_longer(stage: str) -> None:
    """Greylisting and the like: a minute, then longer, half an hour at most; then the mail goes out, once."""
    async with post() as here:
        here.server.script(stage, *["451 4.7.1 come back later"] * 8)
        waits = []
        for _ in range(8):
            error = await failure(here.sender)
            assert isinstance(error, TryLaterError)
            assert not error.whole_bot
            waits.append(error.retry_after)
        assert waits == [60.0, 120.0, 240.0, 480.0, 960.0, LONGEST_SECONDS, LONGEST_SECONDS, LONGEST_SECONDS]
        await here.sender.send(parcel())
        assert len(here.server.mails) == 1
        assert here.told == []
        here.server.script(stage, "451 4.7.1 come back later")
        error = await failure(here.sender)
        assert isinstance(error, TryLaterError)
        assert error.retry_after == LATER_SECONDS


@pytest.mark.parametrize(
    ("stage", "kind"),
    [("MAIL", RefusedError), ("RCPT", UnreachableError), ("DATA", RefusedError), ("END", RefusedError)],
)
async def test_never_is_told_once(stage: str, kind: type[DeliveryError]) -> None:
    """A refusal for good says whether it is the mail or the recipient; the operators hear of each mail once."""
    async with post() as here:
        here.server.script(stage, "550 5.1.1 no such\r thing", "550 5.1.1 no such thing")
        for _ in range(2):
            error = await failure(here.sender)
            assert type(error) is kind
        (text,) = here.told
        assert text == "The mail server refused an answer to `ann@example.com`: `550 5.1.1 no such thing`."
        assert here.server.mails == []


async def test_a_login_that_is_wanted_after_all() -> None:
    """530 is no refusal of a mail: mails wait until somebody mends it."""
    async with post() as here:
        here.server.script("MAIL", "530 5.7.0 Authentication required")
        error = await failure(here.sender)
        assert isinstance(error, TryLaterError)
        assert error.whole_bot
        assert len(here.told) == 1


async def test_who_is_in_cc_and_refused_is_told_and_the_mail_goes_out() -> None:
    """The one who asked gets the answer whatever becomes of the others."""
    async with post() as here:
        here.server.script("RCPT", "", "550 5.1.1 unknown", "451 later")
        await here.sender.send(parcel(cc=(BEN, Mailbox("", "cy@example.com"))))
        (taken,) = here.server.notes.taken
        assert taken.recipients == ("ann@example.com",)
        assert [text.split(" who", maxsplit=1)[0] for text in here.told] == [
            "A mail went out without `ben@example.com`,",
            "A mail went out without `cy@example.com`,",
        ]


@pytest.mark.parametrize("stage", ["GREETING", "EHLO", "AUTH", "MAIL", "RCPT", "DATA"])
async def test_a_break_before_the_end_means_not_taken(stage: str) -> None:
    """A connection that breaks before the final full stop has delivered nothing; the next try does, once."""
    async with post() as here:
        here.server.script(stage, DROP)
        error = await failure(here.sender)
        assert isinstance(error, TryLaterError)
        here.clock.ahead += 60
        await here.sender.send(parcel())
        assert here.server.mails == [parcel().raw]


async def test_a_break_within_a_mail_means_not_taken() -> None:
    """The full stop was not sent, so no server can have the mail."""
    # More than the system's buffers hold: else all of it is sent before the break is seen.
    mail = parcel(files=(Enclosure(name="a.bin", mime="application/pdf", data=b"x" * 9_000_000),))
    async with post() as here:
        here.server.script("TEXT", DROP)
        assert isinstance(await failure(here.sender, mail), TryLaterError)


@pytest.mark.parametrize("stage", ["GREETING", "EHLO", "AUTH", "MAIL", "RCPT", "DATA"])
async def test_no_answer_before_the_end_means_not_taken(stage: str) -> None:
    """A server that hangs is left, and not waited for."""
    async with post(deadlines=SHORT) as here:
        here.server.script(stage, HANG)
        assert isinstance(await failure(here.sender), TryLaterError)
        await here.server.notes.until("connected")


@pytest.mark.parametrize("end", [DROP, HANG, "354 what?"])
async def test_no_answer_after_the_end_is_unclear(end: str) -> None:
    """Only the server knows whether it took the mail; so nobody says that it did not."""
    async with post(deadlines=SHORT) as here:
        here.server.script("END", end)
        assert isinstance(await failure(here.sender), UnclearError)


async def test_a_refusal_after_the_end_is_a_refusal() -> None:
    """421 and the connection ends: it was not taken (RFC 5321, section 4.2.1)."""
    async with post() as here:
        here.server.script("END", "421 4.3.2 shutting down")
        assert isinstance(await failure(here.sender), TryLaterError)
        assert here.server.mails == []


async def test_a_connection_is_kept_for_the_next_mail() -> None:
    """Two mails in a row need one login; it is asked first whether the connection still works."""
    async with post() as here:
        await here.sender.send(parcel("a"))
        await here.sender.send(parcel("b"))
        assert here.server.notes.connections == 1
        assert [verb for _, verb in here.server.notes.commands].count("RSET") == 1


@pytest.mark.parametrize("end", [DROP, "421 4.4.2 idle too long"])
@pytest.mark.parametrize("stage", ["RSET", "MAIL"])
async def test_a_connection_that_went_stale_costs_no_try(stage: str, end: str) -> None:
    """The server may end a connection that was kept at any moment; the mail goes over a new one at once."""
    async with post() as here:
        await here.sender.send(parcel("a"))
        here.server.script(stage, end)
        await here.sender.send(parcel("b"))
        assert len(here.server.mails) == 2
        assert here.server.notes.connections == 2


async def test_a_connection_that_ended_while_it_was_kept_costs_no_try() -> None:
    """The server closes idle connections (B104)."""
    async with post() as here:
        await here.sender.send(parcel("a"))
        here.server.drop_all()
        await here.server.notes.until("disconnected")
        await here.sender.send(parcel("b"))
        assert len(here.server.mails) == 2


async def test_a_connection_that_nobody_needs_is_ended() -> None:
    """It is kept for a while, then we say good-bye."""
    async with post(deadlines=Deadlines(kept=0.01)) as here:
        await here.sender.send(parcel())
        await here.server.notes.until("QUIT")
        await here.server.notes.until("disconnected")


async def test_many_at_once_share_no_connection() -> None:
    """Ten answers at once arrive once each, over few connections, none of which carries two at a time (B104)."""
    async with post() as here:
        mails = [parcel(f"k{number}", to=replace(ANN, address=f"a{number}@example.com")) for number in range(10)]
        await asyncio.gather(*(here.sender.send(mail) for mail in mails))
        assert sorted(here.server.mails) == sorted(mail.raw for mail in mails)
        assert {taken.recipients for taken in here.server.notes.taken} == {mail.recipients for mail in mails}
        assert here.server.notes.connections <= MOST_LINES


async def test_one_that_hangs_holds_up_no_other() -> None:
    """A slow server for one mail is not slow for the next."""
    async with post() as here:
        here.server.script("END", HANG)
        slow = asyncio.ensure_future(here.sender.send(parcel("slow")))
        await here.server.notes.until("hangs at END")
        await here.sender.send(parcel("quick"))
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        assert len(here.server.mails) == 2


@pytest.mark.parametrize("stage", ["GREETING", "EHLO", "AUTH", "MAIL", "RCPT", "DATA", "END", "RSET"])
async def test_a_cancelled_send_leaves_no_connection_behind(stage: str) -> None:
    """Wherever it waits; what it was cancelled in is never used again, and the next mail goes out."""
    async with post() as here:
        if stage == "RSET":
            await here.sender.send(parcel("before"))
        here.server.script(stage, HANG)
        sending = asyncio.ensure_future(here.sender.send(parcel("first")))
        await here.server.notes.until(f"hangs at {stage}")
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        before = here.server.notes.connections
        await here.sender.send(parcel("second"))
        assert here.server.notes.connections == before + 1


async def test_an_address_beyond_ascii_needs_a_server_that_takes_it() -> None:
    """Where it is offered it is used; else nobody is reached, and that is told."""
    mail = parcel(to=Mailbox("", "jörg@example.com"))
    async with post(extensions=("8BITMIME", "SMTPUTF8")) as here:
        await here.sender.send(mail)
        assert here.server.mails == [mail.raw]
    async with post() as here:
        assert isinstance(await failure(here.sender, mail), UnreachableError)
        assert len(here.told) == 1
        await here.sender.send(parcel())


async def test_a_probe_logs_in_and_sends_nothing() -> None:
    """So doctor and a sender that waits for the end of an outage can ask."""
    async with post() as here:
        await here.sender.probe()
        assert here.server.notes.logins == ["PLAIN"]
        await here.sender.send(parcel())
        assert here.server.notes.connections == 1
    async with post(account={"password": "old"}) as here:
        with pytest.raises(TryLaterError):
            await here.sender.probe()


async def test_telling_that_fails_changes_nothing() -> None:
    """A refusal is a refusal even if nobody can be told."""

    async def tell(_: str, __: str) -> None:
        raise DeliveryError("nobody listens")

    async with post() as here:
        here.server.script("RCPT", "550 no")
        account: Callable[..., SmtpAccount] = SmtpAccount
        sender = SmtpSender(
            account(host="127.0.0.1", port=here.server.port, security="none", tls=ssl.create_default_context,
                    username="bot@example.com", password="secret"),
            tell, here.clock,
        )  # fmt: skip
        assert isinstance(await failure(sender), UnreachableError)
        await sender.close()
