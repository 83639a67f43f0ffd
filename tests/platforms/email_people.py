"""People who write mails to the bot and read its answers: their mailboxes are what the SMTP double took for them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import default
from email.utils import format_datetime
from functools import cached_property
from itertools import count
from typing import Any

from tests.platforms.email_house import received
from tests.platforms.imap_server import USER, ImapServer
from tests.platforms.signals import PATIENCE
from tests.platforms.smtp_checks import mailboxes, read
from tests.platforms.smtp_server import SmtpServer

TO_BOT = "@zero "
"""Before a text: the mail goes to the bot, and not only a copy of it."""
# The standard library puts ids into encoded words that do not fit into one of its lines.
_POLICY = default.clone(max_line_length=900, linesep="\r\n")
_CODE = re.compile(r"\[zerobot ([0-9A-Z]+)\]")
_DECIDED = ("Approved", "Denied")
LABELS = {"approve": "Approve", "always": "Always in this chat", "deny": "Deny"}
"""What the words of an answer to a request are called on buttons."""


@dataclass(eq=False)
class Letter:
    """A mail, of somebody or of the bot."""

    office: MailOffice = field(repr=False)
    raw: bytes = field(repr=False)
    recipients: tuple[str, ...]
    chat: Correspondence = field(init=False, repr=False)

    @cached_property
    def mail(self) -> EmailMessage:
        """As a mail program reads it."""
        return read(self.raw)

    @property
    def id(self) -> str:
        """Its Message-ID."""
        return str(self.mail["Message-ID"])

    @property
    def answers(self) -> str:
        """The Message-ID that it answers; empty: none."""
        return str(self.mail["In-Reply-To"] or "")

    @property
    def references(self) -> list[str]:
        """The thread as it says, oldest first."""
        return str(self.mail["References"] or "").split()

    @property
    def subject(self) -> str:
        """Of the mail."""
        return str(self.mail["Subject"])

    @property
    def sender(self) -> str:
        """Whose address is in From."""
        return mailboxes(self.raw, "From")[0][1]

    @property
    def from_bot(self) -> bool:
        """Whether the bot wrote it."""
        return self.sender == USER

    @property
    def plain(self) -> str:
        """Its own words."""
        body = self.mail.get_body(("plain",))
        return str(body.get_content()).strip().replace("\r\n", "\n") if body is not None else ""

    @property
    def text(self) -> str:
        """Its words; below a request stands what became of it, as it does in the thread of a mail program."""
        return "\n\n".join((self.plain, *(after.plain for after in self._outcome())))

    @property
    def code(self) -> str:
        """The code of a request; empty: it is none."""
        found = _CODE.search(self.subject)
        return found[1] if found else ""

    @property
    def buttons(self) -> list[str]:
        """What a request that is open offers, by the names that buttons have elsewhere."""
        if not self.from_bot or not self.code or self._outcome():
            return []
        offer = self.plain.rpartition("The first word counts:")[2]
        return [label for word, label in LABELS.items() if re.search(rf"\b{word}\b", offer)]

    @property
    def files(self) -> list[tuple[str, bytes]]:
        """Its attachments: name, bytes."""
        parts = [part for part in self.mail.walk() if part.get_filename()]
        return [(str(part.get_filename()), bytes(part.get_payload(decode=True))) for part in parts]

    def _outcome(self) -> list[Letter]:
        """What the bot wrote about a request of its own: behind it, or to whoever has decided it by mail."""
        if not self.from_bot or not self.code:
            return []
        decisions = {letter.id for letter in self.office.written if letter.answers == self.id}
        return [
            letter
            for letter in self.office.answers
            if letter.answers == self.id or (letter.answers in decisions and letter.plain.startswith(_DECIDED))
        ]


class Correspondence:
    """Mails about one subject among the bot and some people.

    Args:
        office: Carries them.
        subject: Of the mails.
        people: All who get each of them, the bot apart.
    """

    def __init__(self, office: MailOffice, subject: str, people: list[str]) -> None:
        self._office = office
        self.subject = subject
        self.people = people

    def __repr__(self) -> str:
        return f"<{self.subject}: {self.texts}>"

    @property
    def replies(self) -> list[Letter]:
        """What the bot wrote, in order."""
        return [letter for letter in self._office.answers if letter.chat is self]

    @property
    def texts(self) -> list[str]:
        """The texts of `replies`."""
        return [letter.text for letter in self.replies]

    @property
    def prompt(self) -> Letter | None:
        """The newest request that is open."""
        return next((letter for letter in reversed(self.replies) if letter.buttons), None)

    async def wait_for(self, condition: Callable[[Correspondence], Any], patience: float = PATIENCE) -> None:
        """Wait until something holds; looked at whenever the SMTP double sees something."""
        await self._office.until(lambda: condition(self), patience)

    async def reply(self, text: str = "", patience: float = PATIENCE) -> Letter:
        """Wait for a mail of the bot that contains a text, and return the newest one."""

        def fitting() -> list[Letter]:
            return [letter for letter in self.replies if text in letter.text]

        await self.wait_for(lambda _: fitting(), patience)
        return fitting()[-1]


class Correspondent:
    """Somebody with a mailbox. What he writes is in the bot's folder when this returns."""

    def __init__(self, office: MailOffice, name: str, address: str) -> None:
        self._office = office
        self.name = name
        self.id = address
        self.chat = Correspondence(office, f"From {name}", [address])

    def says(
        self,
        text: str,
        *,
        chat: Correspondence | None = None,
        reply_to: Letter | None = None,
        files: tuple[tuple[str, bytes], ...] = (),
        proved: bool = True,
        **fields: str,
    ) -> Letter:
        """Write a mail: in a correspondence that the bot has answered, an answer to what it said last.

        Args:
            text: `@zero ` before it puts the bot into To; else it is in CC, if there are others.
            chat: Which; without one, that of this person and the bot.
            reply_to: What it answers.
            files: Name, bytes.
            proved: Whether the mail server vouches for the sender.
            fields: More of the header; `_` stands for `-`.
        """
        where = chat or self.chat
        answered = reply_to or next((one for one in reversed(where.replies) if not one.code), None)
        others = [each for each in where.people if each != self.id]
        to_bot = text.startswith(TO_BOT) or not others or (reply_to is not None and reply_to.from_bot)
        mail = EmailMessage(_POLICY)
        mail["From"] = f"{self.name} <{self.id}>"
        mail["To"] = USER if to_bot else ", ".join(others)
        if others:
            mail["Cc"] = ", ".join(others) if to_bot else USER
        mail["Subject"] = where.subject if answered is None else f"Re: {answered.subject.removeprefix('Re: ')}"
        if answered is not None:
            mail["In-Reply-To"] = answered.id
            mail["References"] = " ".join((*answered.references, answered.id))
        mail["Date"] = format_datetime(datetime.now(UTC))
        mail["Message-ID"] = f"<{next(self._office.numbers)}@{self.id.rpartition('@')[2]}>"
        for name, value in fields.items():
            del mail[name.replace("_", "-")]
            mail[name.replace("_", "-")] = value
        mail.set_content(text.removeprefix(TO_BOT))
        for name, data in files:
            mail.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
        return self._office.post(mail, self.id, where, proved=proved)

    def presses(self, message: Letter, label: str) -> Letter:
        """Answer a request with the word for a button."""
        word = next(word for word, each in LABELS.items() if each == label)
        return self.answers(message, word)

    def answers(self, message: Letter, text: str, *, proved: bool = True) -> Letter:
        """Answer a mail, to its sender alone."""
        alone = Correspondence(self._office, message.subject, [self.id])
        letter = self.says(text, chat=alone, reply_to=message, proved=proved)
        letter.chat = message.chat
        return letter


class MailOffice:
    """Carries mails between people and the bot.

    Args:
        imap: The bot's mailbox.
        smtp: Takes what the bot writes.
    """

    def __init__(self, imap: ImapServer, smtp: SmtpServer) -> None:
        self.imap = imap
        self.smtp = smtp
        self.numbers = count(1)
        self.people: dict[str, Correspondent] = {}
        self.written: list[Letter] = []
        """What people wrote."""
        self._answers: list[Letter] = []

    def person(self, name: str, address: str) -> Correspondent:
        """Somebody with a mailbox."""
        self.people[address] = Correspondent(self, name, address)
        return self.people[address]

    def correspondence(self, subject: str, *people: Correspondent) -> Correspondence:
        """Mails about something, among people and the bot."""
        return Correspondence(self, subject, [person.id for person in people])

    @property
    def answers(self) -> list[Letter]:
        """All that the bot wrote, in order."""
        for taken in self.smtp.notes.taken[len(self._answers) :]:
            letter = Letter(self, taken.raw, taken.recipients)
            letter.chat = self._chat_of(letter)
            self._answers.append(letter)
        return self._answers

    def post(self, mail: EmailMessage, sender: str, chat: Correspondence, *, proved: bool = True) -> Letter:
        """Bring a mail into the bot's mailbox."""
        raw = received(mail.as_bytes(), sender, datetime.now(UTC), proved=proved)
        letter = Letter(self, raw, (USER,))
        letter.chat = chat
        self.written.append(letter)
        self.imap.deliver(raw)
        return letter

    async def until(self, condition: Callable[[], Any], patience: float = PATIENCE) -> None:
        """Wait until something holds; looked at whenever the SMTP double sees something."""
        try:
            async with asyncio.timeout(patience):
                while not condition():
                    await self.smtp.notes.changed()
        except TimeoutError:
            seen = [(letter.subject, letter.plain) for letter in self.answers]
            raise AssertionError(f"it did not happen within {patience} s; the bot wrote: {seen}") from None

    def _chat_of(self, letter: Letter) -> Correspondence:
        """The correspondence that a mail of the bot's goes on; that of the bot and its reader if it answers nothing."""
        known = {each.id: each.chat for each in (*self.written, *self._answers)}
        thread = (letter.answers, *reversed(letter.references))
        found = next((known[ident] for ident in thread if ident in known), None)
        return found or self.people[letter.recipients[0]].chat
