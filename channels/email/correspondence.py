"""Correspondence: which conversation a mail belongs to, and to whom an answer to it goes. Pure.

A thread belongs to whoever began it. Others who were written to in it may go on in it; anybody else who names its ids
gets a thread of his own, since ids are no secret.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pydantic import TypeAdapter

from channels.email.mail import Mail
from channels.email.own_ids import read_own_id
from channels.email.reading.msgids import first_and_newest
from channels.email.subjects import base_subject

MAILS_KEPT = 20
"""Mails of a thread that an answer can still refer to: the newest ones."""
REFERENCES_KEPT = 20
PEOPLE_KEPT = 50
HOUR = 3_600.0
KEY_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A mail of a thread that was taken in."""

    id: str
    """Its Message-ID with brackets; empty when it has none."""
    fingerprint: str
    """What tells it from all other mails."""
    sender: str
    """The proved address; an answer goes there and nowhere else, but for `others`."""
    others: tuple[str, ...] = ()
    """Who else it was written to, without the bot."""
    references: tuple[str, ...] = ()
    subject: str = ""
    let_in: bool = True
    """Whether its sender may talk to the bot; else it is kept for the one answer that tells so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """What is remembered of a thread."""

    key: str
    owner: str
    """Who began it."""
    people: frozenset[str]
    """Who may go on in it."""
    mails: tuple[Heard, ...] = ()
    """The newest ones, oldest first."""
    times: tuple[float, ...] = ()
    """When mails were taken in within the last hour, in seconds of wall time."""

    def answered(self, name: str) -> Heard | None:
        """The mail that an answer refers to; when none is known by that name, the newest one of who may talk to us."""
        named = (mail for mail in self.mails if name and name in (mail.fingerprint, mail.id))
        newest = next((mail for mail in reversed(self.mails) if mail.let_in), None)
        return next(named, newest)

    def name_of(self, mail: Mail, fingerprint: str) -> str:
        """What answers call a mail: its id, unless another one of the thread came with the same id before it."""
        first = next((each for each in self.mails if each.id and each.id == mail.message_id), None)
        return mail.message_id if first is None or first.fingerprint == fingerprint else fingerprint

    def has(self, fingerprint: str) -> bool:
        """Whether a mail is among those that are remembered."""
        return any(mail.fingerprint == fingerprint for mail in self.mails)


def within_hour(times: Iterable[float], now: float) -> tuple[float, ...]:
    """Those of some moments (seconds of wall time) that are less than an hour away.

    One that lies further ahead is of a clock that was put back since: it must not count until that day comes.
    """
    return tuple(time for time in times if abs(now - time) < HOUR)


_STORED = TypeAdapter(Thread)


def others_of(mail: Mail, sender: str, own: frozenset[str]) -> tuple[str, ...]:
    """Who else a mail was written to.

    Args:
        mail: The mail.
        sender: Its proved sender.
        own: The bot's addresses.
    """
    listed = (box.address for box in (*mail.to, *mail.cc))
    return tuple(dict.fromkeys(each for each in listed if each not in own and each != sender))[:PEOPLE_KEPT]


def thread_root(mail: Mail) -> str:
    """The id of the mail that began the thread, as this one says; empty when it has no id either."""
    return next(iter(mail.references), "") or mail.in_reply_to or mail.message_id


def likely_keys(mail: Mail, sender: str, own: frozenset[str]) -> Iterator[str]:
    """The threads that a mail may go on, the likeliest first: by our own ids, by its root, by subject and people."""
    for ident in (mail.in_reply_to, *reversed(mail.references)):
        if key := read_own_id(ident, own):
            yield key
    others = others_of(mail, sender, own)
    if _answers(mail):
        yield from (_by_root(mail, person) for person in (sender, *others))
    if base_subject(mail.subject):
        yield _by_subject(mail, sender, others)


def opening_key(mail: Mail, sender: str) -> str | None:
    """What the thread of a mail is found by when another names that mail as its root; None: it cannot be one."""
    return None if _answers(mail) or not mail.message_id else _by_root(mail, sender)


def new_thread(mail: Mail, fingerprint: str, sender: str, own: frozenset[str]) -> Thread:
    """The thread that a mail begins, whatever others it names.

    Args:
        mail: The mail.
        fingerprint: What tells it from all other mails.
        sender: Its proved sender.
        own: The bot's addresses.
    """
    if _answers(mail):
        key = _by_root(mail, sender)
    elif base_subject(mail.subject):
        key = _by_subject(mail, sender, others_of(mail, sender, own))
    else:
        key = _digest("alone", fingerprint, sender)
    return Thread(key=key, owner=sender, people=frozenset({sender}))


def with_mail(thread: Thread, mail: Mail, fingerprint: str, sender: str, own: frozenset[str], now: float) -> Thread:
    """A thread after a mail of it was taken in.

    Args:
        thread: The thread before.
        mail: The mail.
        fingerprint: What tells it from all other mails.
        sender: Its proved sender, one of the thread's people.
        own: The bot's addresses.
        now: Seconds of wall time.
    """
    others = others_of(mail, sender, own)
    ids = [each for each in dict.fromkeys((*mail.references, mail.in_reply_to)) if each]
    heard = Heard(
        id=mail.message_id,
        fingerprint=fingerprint,
        sender=sender,
        others=others,
        references=first_and_newest(ids, REFERENCES_KEPT),
        subject=mail.subject,
    )
    people = [*sorted(thread.people), *(each for each in (sender, *others) if each not in thread.people)]
    return replace(
        thread,
        people=frozenset(people[:PEOPLE_KEPT]) | {thread.owner},
        mails=_kept((*thread.mails, heard)),
        times=(*within_hour(thread.times, now), now),
    )


def with_stranger(thread: Thread, after: Thread) -> Thread:
    """A thread after a mail of it came in whose sender is not let in yet: it is known, and brings nobody along.

    Args:
        thread: The thread before.
        after: The same with the mail, as `with_mail` gives it.
    """
    return replace(thread, mails=(*after.mails[:-1], replace(after.mails[-1], let_in=False)), times=after.times)


def _kept(mails: tuple[Heard, ...]) -> tuple[Heard, ...]:
    """Without what is too much: the oldest one of who wrote most, so that nobody writes the others' mails away."""
    if len(mails) <= MAILS_KEPT:
        return mails
    (most, _), *_ = Counter(mail.sender for mail in mails).most_common(1)
    place = next(place for place, mail in enumerate(mails) if mail.sender == most)
    return mails[:place] + mails[place + 1 :]


def write_thread(thread: Thread) -> str:
    """A thread as text, for the store."""
    return _STORED.dump_json(thread).decode()


def read_thread(key: str, text: str | None) -> Thread | None:
    """A thread of the store; None: there is none, or nothing that can be read."""
    try:
        thread = _STORED.validate_json(text or "")
    except ValueError:
        return None
    return thread if thread.key == key else None


def _answers(mail: Mail) -> bool:
    return bool(mail.references or mail.in_reply_to)


def _by_root(mail: Mail, person: str) -> str:
    return _digest("root", thread_root(mail), person)


def _by_subject(mail: Mail, sender: str, others: Iterable[str]) -> str:
    return _digest("subject", base_subject(mail.subject).casefold(), *sorted({sender, *others}))


def _digest(*parts: str) -> str:
    text = json.dumps(parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:KEY_DIGITS]
