"""One mail as it is read: plain values, whatever the bytes were."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Mailbox:
    """A name and an address of a header."""

    name: str
    """For people to read: decoded, on one line, without control characters. Never compared with anything."""
    address: str
    """`local@domain`: the domain in lower case and ASCII (RFC 5891), the local part in lower case as well, since no
    mail provider tells people apart by case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """One inline text part, decoded."""

    text: str
    """Its lines end with a line feed alone; without NUL."""
    html: bool = False
    flowed: bool = False
    """`format=flowed` (RFC 3676)."""
    delsp: bool = False
    """`DelSp=yes` (RFC 3676)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MailFile:
    """A part that is a file."""

    path: str
    """Where it stands in the tree, as IMAP numbers parts: `2.1` (RFC 9051, section 6.4.5.1)."""
    name: str
    """As the sender named it, decoded, on one line; empty when it has no name. Never a path to write to."""
    mime: str
    """`type/subtype` in lower case, as the mail says."""
    size: int
    """Bytes, decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """What a mail says of itself. Nothing here is proved; see `authenticity`."""

    fields: tuple[tuple[str, str], ...]
    """All fields of the header, topmost first: the name in lower case, the value unfolded and otherwise as it came."""
    sender: Mailbox | None
    """The one mailbox of the one From field; None when there is not exactly one by the grammar."""
    to: tuple[Mailbox, ...] = ()
    cc: tuple[Mailbox, ...] = ()
    subject: str = ""
    """Decoded, on one line, without control and bidirectional characters."""
    message_id: str = ""
    """With its angle brackets; empty when there is none that is well-formed."""
    in_reply_to: str = ""
    references: tuple[str, ...] = ()
    """Oldest first; at most 100."""
    sent_at: datetime | None = None
    """What the mail says, UTC; None: nothing that can be read."""
    bodies: tuple[Body, ...] = ()
    """The text parts to read, in order: of alternatives the one that says most."""
    files: tuple[MailFile, ...] = ()
    """In the order of the mail, at most 100."""
    named: tuple[str, ...] = ()
    """What is there and not opened, for people: `a calendar invitation`, `an S/MIME signature`."""
    calendar: str = ""
    """The method of its calendar part (RFC 5546), in upper case: `REQUEST`, `REPLY`; empty when it has none."""
    cut: bool = False
    """Whether something was left out because a limit was reached."""

    def values(self, name: str) -> tuple[str, ...]:
        """The values of all fields of a name (in lower case), topmost first."""
        return tuple(value for field, value in self.fields if field == name)
