"""A letter, and what a server is handed: plain values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from channels.email.mail import Mailbox
from zerobot.core.channel import MessageBody


@dataclass(frozen=True, slots=True, kw_only=True)
class Enclosure:
    """A file that goes along, read already."""

    name: str
    mime: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """What a mail is made of. Words that came from outside may be anything; they are brought to one clean line."""

    key: str
    """Of the outbox: the same for every try of the same mail, so its id is the same too."""
    thread: str = ""
    """The key of the conversation that it belongs to; its id names it, so that answers to it find back."""
    sender: Mailbox
    to: Mailbox
    cc: tuple[Mailbox, ...] = ()
    subject: str
    """As it will stand there; `reply_subject` makes the one of an answer."""
    body: MessageBody
    date: datetime
    """Aware."""
    in_reply_to: str = ""
    """The id of the mail that is answered, with its brackets; empty when the mail answers none."""
    references: tuple[str, ...] = ()
    """The ids of the mail that is answered, oldest first; its own id is added."""
    files: tuple[Enclosure, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A mail as it is handed to a server."""

    key: str
    message_id: str
    sender: str
    """An address as the envelope has it (RFC 5321, section 4.1.2)."""
    recipients: tuple[str, ...]
    """The first is the one that is answered; no address twice."""
    raw: bytes
    """Its lines end with CR LF, the last one too."""

    @property
    def needs_utf8(self) -> bool:
        """Whether an address has letters beyond ASCII, which not every server takes (RFC 6531)."""
        return not all(each.isascii() for each in (self.sender, *self.recipients))
