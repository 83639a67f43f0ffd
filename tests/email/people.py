"""People who write to the bot over the real servers, and what comes back into their mailboxes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path

from tests.email.servers import MailServers
from tests.platforms.smtp_checks import read

DOMAIN = "example.test"
PATIENCE = 60.0
"""Seconds after which waiting for a mail is a failure."""
LOOK = 0.05
"""Seconds between two looks into a folder of files, which tells nobody of news."""


class Maildir:
    """The mails in an account's inbox, read as files.

    Args:
        folder: A Maildir; it need not be there yet.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, bytes] = {}

    def mails(self) -> Sequence[bytes]:
        """All mails so far, the oldest first."""
        for name in ("new", "cur"):
            directory = self._folder / name
            for path in sorted(directory.iterdir()) if directory.is_dir() else ():
                # What stands behind the colon is flags, which change.
                ident = path.name.partition(":")[0]
                if ident not in self._read:
                    try:
                        self._read[ident] = path.read_bytes()
                    except FileNotFoundError:
                        continue  # it moves from new to cur, and is found there
        return list(self._read.values())


class Person:
    """Somebody with an address of its own, whose mailbox is Ann's.

    Args:
        servers: Where mails are handed in, and where answers arrive.
        tag: What tells this address from others.
    """

    def __init__(self, servers: MailServers, tag: str = "") -> None:
        self.tag = tag or os.urandom(6).hex()
        self.address = f"ann+{self.tag}@{DOMAIN}"
        self._servers = servers
        self._mailbox = Maildir(servers.homes / "ann/Maildir")
        self._written = 0

    def mail(
        self,
        text: str,
        to: str,
        *,
        subject: str = "Question",
        answers: EmailMessage | None = None,
        file: bytes | None = None,
    ) -> EmailMessage:
        """A mail as a mail program makes it.

        Args:
            text: What it says.
            to: Whom it goes to.
            subject: Of a mail that answers none.
            answers: A mail that is answered.
            file: What is attached.
        """
        self._written += 1
        mail = EmailMessage()
        mail["From"] = f"Ann {self.tag} <{self.address}>"
        mail["To"] = to
        mail["Subject"] = f"Re: {answers['Subject'].removeprefix('Re: ')}" if answers is not None else subject
        mail["Date"] = format_datetime(datetime.now(UTC))
        mail["Message-ID"] = f"<{self._written}.{self.tag}@{DOMAIN}>"
        if answers is not None:
            mail["In-Reply-To"] = answers["Message-ID"]
            mail["References"] = f"{answers['References']} {answers['Message-ID']}"
        mail.set_content(text)
        if file is not None:
            mail.add_attachment(file, maintype="application", subtype="octet-stream", filename="data.bin")
        return mail

    async def writes(
        self, text: str, to: str = f"bot@{DOMAIN}", *, answers: EmailMessage | None = None, file: bytes | None = None
    ) -> EmailMessage:
        """Write a mail; when this returns Postfix has it."""
        mail = self.mail(text, to, answers=answers, file=file)
        await asyncio.to_thread(self._servers.deliver, mail.as_bytes(), to, self.address)
        return mail

    @property
    def answers(self) -> list[EmailMessage]:
        """The mails that came back."""
        mark = self.address.encode()
        mails = [read(raw) for raw in self._mailbox.mails() if mark in raw]
        return [mail for mail in mails if mail["To"].addresses[0].addr_spec == self.address]

    @property
    def reads(self) -> list[str]:
        """What the mails say that came back."""
        return [said(mail) for mail in self.answers]

    async def gets(self, count: int = 1, patience: float = PATIENCE) -> EmailMessage:
        """Wait for the `count`th answer, and return it."""
        async with asyncio.timeout(patience):
            while len(self.answers) < count:  # noqa: ASYNC110 -- nobody tells when a file appears
                await asyncio.sleep(LOOK)
        return self.answers[count - 1]


def said(mail: EmailMessage) -> str:
    """The plain text of a mail."""
    body = mail.get_body(("plain",))
    assert body is not None, "an answer has a text"
    text: str = body.get_content()
    return text.replace("\r\n", "\n").strip()
