"""The mailboxes of the IMAP double: folders, mails, flags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import Message
from email.policy import compat32

from tests.platforms.imap_grammar import GrammarError, Text, Word, numbers, text


@dataclass(slots=True, eq=False)
class StoredMail:
    """A mail in a folder."""

    uid: int
    raw: bytes
    flags: set[str] = field(default_factory=set)
    came_in: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def header(self) -> bytes:
        """With the empty line behind it."""
        head, line, _ = self.raw.partition(b"\r\n\r\n")
        return head + line

    def fields(self, names: set[str]) -> bytes:
        """The header's fields of these names, in lower case."""
        found = re.findall(rb"(?ms)^([^\s:]+):(.*?\r\n)(?=[^ \t]|\Z)", self.header)
        kept = [name + b":" + value for name, value in found if name.decode().lower() in names]
        return b"".join(kept) + b"\r\n"


@dataclass(slots=True, eq=False)
class Mailbox:
    """A folder."""

    name: str
    """As it is on the wire."""
    validity: int = 1
    next_uid: int = 1
    attributes: tuple[str, ...] = ()
    mails: list[StoredMail] = field(default_factory=list)

    def add(self, raw: bytes, *flags: str) -> StoredMail:
        """A mail comes in."""
        mail = StoredMail(self.next_uid, raw, set(flags))
        self.next_uid += 1
        self.mails.append(mail)
        return mail

    def renumber(self) -> None:
        """The folder was restored from a copy: everything has a new number."""
        self.validity += 1
        for uid, mail in enumerate(self.mails, 1):
            mail.uid = uid
        self.next_uid = len(self.mails) + 1

    def by_uids(self, word: Word) -> list[StoredMail]:
        """The mails of a set of UIDs."""
        last = max((mail.uid for mail in self.mails), default=0)
        wanted = {uid for each in numbers(word, last) for uid in range(each.start, min(each.stop, last + 1))}
        return [mail for mail in self.mails if mail.uid in wanted]

    def search(self, words: list[Word]) -> list[StoredMail]:
        """The mails that a search finds. It knows the keys that are asked for and no more."""
        found, rest = list(self.mails), list(words)
        while rest:
            key = str(rest.pop(0)).upper()
            if key == "UID":
                wanted = {mail.uid for mail in self.by_uids(rest.pop(0))}
                found = [mail for mail in found if mail.uid in wanted]
            elif key == "UNSEEN":
                found = [mail for mail in found if "\\Seen" not in mail.flags]
            elif key == "SINCE":
                day = datetime.strptime(str(rest.pop(0)) + " +0000", "%d-%b-%Y %z").date()
                found = [mail for mail in found if mail.came_in.date() >= day]
            elif key == "HEADER":
                name, value = text(rest.pop(0)), text(rest.pop(0))
                found = [mail for mail in found if value in str(_message(mail).get(name, ""))]
            else:
                raise GrammarError(f"no key of a search that is known: {key}")
        return found


def _message(mail: StoredMail) -> Message:
    return message_from_bytes(mail.header, policy=compat32)


def fetched(mail: StoredMail, items: list[Word]) -> Iterator[bytes]:
    """What FETCH answers for each of its items."""
    for item in items:
        if not isinstance(item, str):
            raise GrammarError("no item of a fetch")
        name = item.upper()
        if name == "UID":
            yield b"UID %d" % mail.uid
        elif name == "FLAGS":
            yield b"FLAGS (%s)" % " ".join(sorted(mail.flags)).encode()
        elif name == "RFC822.SIZE":
            yield b"RFC822.SIZE %d" % len(mail.raw)
        else:
            yield _body(mail, name)


def _body(mail: StoredMail, item: str) -> bytes:
    match = re.fullmatch(r"BODY\.PEEK\[([^]]*)\](?:<(\d+)\.(\d+)>)?", item)
    if match is None:
        raise GrammarError(f"no item of a fetch that is known, or one that marks a mail as read: {item}")
    section = match[1]
    names = re.fullmatch(r"HEADER\.FIELDS \(([^)]+)\)", section)
    if section == "":
        body = mail.raw
    elif section == "HEADER":
        body = mail.header
    elif names:
        body = mail.fields({name.lower() for name in names[1].split()})
    else:
        raise GrammarError(f"no section that is known: {section}")
    if match[2] is None:
        return b"BODY[%s] {%d}\r\n%s" % (section.encode(), len(body), body)
    start = int(match[2])
    body = body[start : start + int(match[3])]
    return b"BODY[%s]<%d> {%d}\r\n%s" % (section.encode(), start, len(body), body)


def flags_of(word: Word) -> set[str]:
    """The flags of a list."""
    if not isinstance(word, list) or any(isinstance(each, Text | list) for each in word):
        raise GrammarError("no list of flags")
    return {str(each) for each in word}
