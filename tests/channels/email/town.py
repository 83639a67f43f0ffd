"""A town that writes mails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from channels.email import KIND
from tests.channels.email.test_render import Reader
from tests.channels.email.test_render import read as shown
from tests.channels.text.markdown_cases import Seen
from tests.channels.town import Told, Town
from tests.platforms.email_house import table
from tests.platforms.email_people import TO_BOT, Letter, MailOffice
from tests.platforms.imap_server import ImapServer
from tests.platforms.model_server import ModelServer
from tests.platforms.smtp_server import DROP, SmtpServer
from zerobot.core.channel import MessageBody

TEAM = "olga@example.com", "uma@example.com", "vic@example.com"


class EmailTown(Town):
    """One mailbox; the team writes to the bot and to one another, and all of it gets each answer."""

    corrects = False
    splits = False
    tells_of_unclear = False  # by default: see `sent_copy`
    tells_strangers = False

    def __init__(self, folder: Path, model: ModelServer, imap: ImapServer, smtp: SmtpServer) -> None:
        mailbox = table(imap, smtp, allowed_users=["uma@example.com", "vic@example.com"], reply_to_all=True)
        super().__init__(folder, model, KIND, mailbox, "email:olga@example.com")
        self.office = MailOffice(imap, smtp)
        self.olga, self.uma, self.vic = (
            self.office.person(address.partition("@")[0].title(), address) for address in TEAM
        )
        self.xen = self.office.person("Xen", "xen@example.org")
        self.team = self.office.correspondence("Team", self.olga, self.uma, self.vic)

    def to_bot(self, text: str) -> str:
        """The bot is in To."""
        return TO_BOT + text

    def thread(self) -> Any:
        """Mails about something else."""
        return self.office.correspondence(f"Subject {next(self.office.numbers)}", self.uma)

    async def told(self, press: Letter) -> Told:
        """The answer to a mail that decides is a mail to its writer."""
        await self.office.until(lambda: self._answer_to(press))
        (answer,) = self._answer_to(press)
        return Told(answer.plain, private=answer.recipients == (press.sender,))

    def _answer_to(self, press: Letter) -> list[Letter]:
        return [letter for letter in self.office.answers if letter.answers == press.id]

    def press_of(self, person: Any, message: Any, label: str) -> Callable[[], Any]:
        """A request can be answered for ever."""
        return lambda: person.presses(message, label)

    def tell_again(self, message: Letter) -> None:
        """Another copy in the folder."""
        self.office.imap.deliver(message.raw)

    def limit_next(self, what: str, seconds: float, chat: Any) -> None:
        """The server puts strangers off."""
        self.office.smtp.script("END", "451 4.7.1 Greylisted, please try again later")

    def break_next(self, what: str, chat: Any) -> None:
        """The connection is gone before the answer."""
        self.office.smtp.script("END", DROP)

    @property
    def refused(self) -> int:
        """Nobody counts mails by the second."""
        return 0

    def sends_file(self, person: Any, name: str, data: bytes, caption: str) -> Any:
        """As an attachment."""
        return person.says(caption, files=((name, data),))

    def files_of(self, chat: Any) -> list[tuple[str, bytes]]:
        """Of the bot's mails."""
        return [file for letter in chat.replies for file in letter.files]

    def place_of(self, chat: Any) -> str:
        """A person's address."""
        return str(chat.people[0])

    def notified(self, chat: Any) -> list[str]:
        """Who got a mail without being in the thread, and what in it would load or run."""
        known = {*chat.people, *(each.sender for each in self.office.written if each.chat is chat)}
        found = []
        for letter in chat.replies:
            found += [each for each in letter.recipients if each not in known]
            body = letter.mail.get_body(("html",))
            assert body is not None
            found += Reader(str(body.get_content())).bad
        return found

    def documents(self, message: Any) -> list[str]:
        """They go along with the request."""
        return [data.decode() for _, data in message.files]

    def seen(self, body: MessageBody) -> Seen:
        """As a mail program shows its HTML."""
        reader = shown(body)
        return Seen(reader.text, tuple(reader.spans))

    def broken_rules(self, body: MessageBody) -> Sequence[str]:
        """What is active in its HTML, or open; both forms say something."""
        empty = [] if body.text.strip() else ["says nothing as plain text"]
        return [*empty, *shown(body).bad]
