"""Handing mails to a real Postfix, which delivers them into the mailboxes of a real Dovecot."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from channels.email.mail import Mailbox
from channels.email.settings import Security
from channels.email.smtp.line import SmtpAccount
from channels.email.smtp.sender import SmtpSender
from channels.email.tls import make_context
from channels.email.writing.letter import Enclosure, Parcel
from tests.channels.email.letters import parcel
from tests.email.servers import MailServers
from tests.platforms.adapter_parts import HastyClock
from tests.platforms.smtp_checks import complaints, mailboxes, read
from zerobot.core.errors import RefusedError, TryLaterError, UnreachableError

pytestmark = pytest.mark.slow

BOT, ANN, BEN = (f"{name}@example.test" for name in ("bot", "ann", "ben"))
PORTS: Mapping[Security, str] = {"tls": "smtps", "starttls": "smtp_starttls", "none": "smtp"}


def account(servers: MailServers, security: Security = "starttls") -> SmtpAccount:
    """The bot's."""
    return SmtpAccount(
        host=servers.host,
        port=servers.ports[PORTS[security]],
        security=security,
        tls=lambda: make_context(servers.ca_file),
        username=BOT,
        password=servers.accounts[BOT],
    )


def sender(given: SmtpAccount, told: list[str] | None = None) -> SmtpSender:
    async def tell(_: str, text: str) -> None:
        assert told is not None, text
        told.append(text)

    return SmtpSender(given, tell, HastyClock())


def to_ann(key: str, **changes: Any) -> Parcel:
    """A mail of this run of the tests only."""
    return parcel(f"{os.urandom(8).hex()}.{key}", sender=Mailbox("Zero", BOT), to=Mailbox("Ann", ANN), **changes)


async def delivered(servers: MailServers, person: str, mail: Parcel, most: int = 1) -> bytes:
    """Wait until a mail is in somebody's mailbox, and only once; what is there."""
    home = servers.homes / person
    while True:
        files = [path.read_bytes() for path in home.rglob("*") if path.is_file() and path.parent.name in {"new", "cur"}]
        found = [raw for raw in files if mail.message_id.encode() in raw]
        assert len(found) <= most
        if found:
            return found[0]
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("security", ["tls", "starttls", "none"])
async def test_a_mail_arrives_over_each_kind_of_connection(mail_servers: MailServers, security: Security) -> None:
    """What is in the mailbox is well-formed and says what was sent."""
    here = sender(account(mail_servers, security))
    mail = to_ann(
        "a", text="Grüße **an** dich\n\n.dot\n\n" + "日本語" * 500, subject="Re: Größe", cc=(Mailbox("", BEN),)
    )
    await here.send(mail)
    await here.close()
    for person in ("ann", "ben"):
        raw = await delivered(mail_servers, person, mail)
        assert complaints(raw.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")) == []
        assert mailboxes(raw, "From") == [("Zero", BOT)]
        found = read(raw)
        assert found["Subject"] == "Re: Größe"
        plain = found.get_body(("plain",))
        assert plain is not None
        assert "Grüße an dich\n\n.dot\n" in plain.get_content().replace("\r\n", "\n")


async def test_a_file_of_25_megabytes_arrives_whole(mail_servers: MailServers) -> None:
    """Over TLS, byte by byte, while a short mail goes by."""
    data = os.urandom(25_000_000)
    here = sender(account(mail_servers, "tls"))
    large = to_ann("large", files=(Enclosure(name="a.bin", mime="application/pdf", data=data),))
    small = to_ann("small")
    await asyncio.gather(here.send(large), here.send(small))
    await here.close()
    await delivered(mail_servers, "ann", small)
    (file,) = read(await delivered(mail_servers, "ann", large)).iter_attachments()
    assert file.get_payload(decode=True) == data


async def test_fifty_at_once_arrive_once_each(mail_servers: MailServers) -> None:
    """Whatever the server allows at once."""
    here = sender(account(mail_servers))
    mails = [to_ann(str(number)) for number in range(50)]
    await asyncio.gather(*(here.send(mail) for mail in mails))
    await here.close()
    for mail in mails:
        await delivered(mail_servers, "ann", mail)


@contextmanager
def refusal(servers: MailServers, reply: str) -> Iterator[None]:
    """The server says this to each recipient."""
    servers.refusal_file.write_text(f"{reply}\n")
    try:
        yield
    finally:
        servers.refusal_file.unlink()


async def test_greylisting_is_waited_out(mail_servers: MailServers) -> None:
    """450 to each recipient, until it is over."""
    mail = to_ann("grey")
    here = sender(account(mail_servers))
    with refusal(mail_servers, "450 4.7.1 come again"):
        for wait in (60.0, 120.0):
            with pytest.raises(TryLaterError) as caught:
                await here.send(mail)
            assert caught.value.retry_after == wait
    await here.send(mail)
    await here.close()
    await delivered(mail_servers, "ann", mail)


async def test_somebody_who_is_not_there(mail_servers: MailServers) -> None:
    """A recipient that the server does not know is told; one in CC does not hold up the mail."""
    told: list[str] = []
    here = sender(account(mail_servers), told)
    nobody = Mailbox("", "nobody@example.test")
    with pytest.raises(UnreachableError):
        await here.send(replace(to_ann("x"), recipients=(nobody.address,)))
    mail = to_ann("cc", cc=(nobody,))
    await here.send(mail)
    await here.close()
    await delivered(mail_servers, "ann", mail)
    assert [nobody.address in text for text in told] == [True, True]


async def test_a_mail_that_is_too_large_is_refused(mail_servers: MailServers) -> None:
    """The server's limit is asked before anything is sent."""
    told: list[str] = []
    here = sender(account(mail_servers), told)
    with pytest.raises(RefusedError, match="552"):
        await here.send(to_ann("huge", files=(Enclosure(name="a", mime="a/b", data=bytes(31_000_000)),)))
    await here.close()
    assert len(told) == 1


async def test_a_wrong_password_and_an_unknown_authority(mail_servers: MailServers) -> None:
    """Neither gets a mail out; both are told in words."""
    for given, word in (
        (replace(account(mail_servers), password="wrong"), "authentication failed"),
        (replace(account(mail_servers), tls=ssl.create_default_context), "certificate"),
        (replace(account(mail_servers), host="127.0.0.1"), "certificate"),
    ):
        told: list[str] = []
        with pytest.raises(TryLaterError) as caught:
            await sender(given, told).send(to_ann("no"))
        assert caught.value.whole_bot
        assert word in told[0]
