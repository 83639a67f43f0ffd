"""The e-mail adapter between doubles of both servers, in one process and without a daemon."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

from channels.email import KIND, EmailSettings
from channels.email.adapter import EmailChannel, signature_check_of
from tests.platforms.adapter_house import AdapterHouse
from tests.platforms.imap_server import PASSWORD, USER, ImapServer
from tests.platforms.smtp_checks import read
from tests.platforms.smtp_server import SmtpServer
from zerobot.core.channel import OutboundFile, OutboundMessage, SentMessage
from zerobot.core.places import Place
from zerobot.testing.intake import MemoryState

MX = "mx.example.test"
"""The mail server's own id."""


def table(imap: ImapServer, smtp: SmtpServer, **settings: Any) -> dict[str, Any]:
    """The table of a mailbox at two doubles."""
    return {
        "address": USER,
        "password": PASSWORD,
        "imap_host": "127.0.0.1",
        "imap_port": imap.port,
        "imap_security": "none",
        "smtp_host": "127.0.0.1",
        "smtp_port": smtp.port,
        "smtp_security": "none",
        "trusted_authserv": [MX],
        **settings,
    }


def received(raw: bytes, sender: str, at: datetime, *, proved: bool = True) -> bytes:
    """What the mail server puts above a mail: its results, and where it comes from."""
    domain = sender.rpartition("@")[2]
    result = "pass" if proved else "fail"
    lines = (
        f"Return-Path: <{sender}>",
        f"Authentication-Results: {MX}; dmarc={result} header.from={domain}",
        f"Received: from mail.{domain} (mail.{domain} [203.0.113.9]) by {MX} with ESMTPS id 1; {format_datetime(at)}",
    )
    return "".join(f"{line}\r\n" for line in lines).encode() + raw


class EmailHouse(AdapterHouse[EmailChannel]):
    """A channel with one mailbox, and everything around it recorded."""

    def __init__(
        self, imap: ImapServer, smtp: SmtpServer, *, state: MemoryState | None = None, **settings: Any
    ) -> None:
        super().__init__("email", state)
        self.imap = imap
        self.smtp = smtp
        settings_of = KIND.settings.model_validate(table(imap, smtp, **settings))
        assert isinstance(settings_of, EmailSettings)
        self.channel = EmailChannel(settings_of, self.services, signature_check_of(settings_of, self.services))
        self._written = 0

    def writes(
        self,
        text: str,
        *,
        sender: str = "ann@example.com",
        subject: str = "Question",
        to: str = USER,
        proved: bool = True,
        at: datetime | None = None,
        answers: bytes | None = None,
        folder: str = "INBOX",
        **fields: str,
    ) -> int:
        """Somebody writes a mail; returns its UID.

        Args:
            text: What it says.
            sender: Who says so.
            subject: Of the mail; of an answer, `Re: ` is put before it.
            to: Whom it names.
            proved: Whether the mail server vouches for the sender.
            at: When it came in; None: now.
            answers: The mail that is answered.
            folder: Where it comes in.
            fields: More of the header; `_` stands for `-`.
        """
        raw = self.mail(text, sender=sender, subject=subject, to=to, answers=answers, **fields)
        return self.imap.deliver(received(raw, sender, at or self.clock.now(), proved=proved), folder=folder)

    def mail(
        self,
        text: str,
        *,
        sender: str,
        subject: str = "Question",
        to: str = USER,
        answers: bytes | None = None,
        **fields: str,
    ) -> bytes:
        """A mail as its sender's program makes it; see `writes`."""
        self._written += 1
        mail = EmailMessage()
        mail["From"] = f"Somebody <{sender}>"
        mail["To"] = to
        mail["Subject"] = subject
        mail["Date"] = format_datetime(self.clock.now())
        mail["Message-ID"] = f"<{self._written}.{id(self)}@{sender.rpartition('@')[2]}>"
        if answers is not None:
            before = read(answers)
            del mail["Subject"]
            mail["Subject"] = f"Re: {before['Subject']}"
            mail["In-Reply-To"] = before["Message-ID"]
            mail["References"] = f"{before['References'] or ''} {before['Message-ID']}".strip()
        for name, value in fields.items():
            del mail[name.replace("_", "-")]
            mail[name.replace("_", "-")] = value
        mail.set_content(text)
        return mail.as_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")

    async def looked_at(self, uid: int) -> None:
        """Wait until a mail has been looked at, whatever became of it, and the next one is waited for."""
        await self.imap.until(
            lambda: (
                json.loads(self.state.values["position"])["uid"] >= uid
                and any(session.idling for session in self.imap.sessions)
            )
        )

    async def send(
        self, place: Place, text: str, *, key: str = "k1", reply_to: str = "", file: OutboundFile | None = None
    ) -> SentMessage:
        """Render a text and send its one mail."""
        (body,) = self.channel.render(text)
        return await self.channel.send(OutboundMessage(place=place, body=body, key=key, reply_to=reply_to, file=file))

    async def answer(self, text: str = "Answer.", *, key: str = "k1", number: int = -1) -> bytes:
        """Answer an envelope that was taken in; returns the mail that went out."""
        asked = self.intake.accepted[number]
        await self.send(asked.place, text, key=key, reply_to=asked.message_id)
        return self.smtp.mails[-1]


@contextlib.asynccontextmanager
async def email_house(state: MemoryState | None = None, **settings: Any) -> AsyncIterator[EmailHouse]:
    """A house beside its doubles, which note what is done wrong to them."""
    async with ImapServer() as imap, SmtpServer(accounts={USER: PASSWORD}) as smtp:
        imap.add_folder("Sent", "\\Sent")
        house = EmailHouse(imap, smtp, state=state, **settings)
        yield house
        await house.close()
        assert imap.faults == []
        assert smtp.notes.faults == []
