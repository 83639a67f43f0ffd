"""From a mail whose sender is proved to an envelope. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from channels.email.buttons import answer
from channels.email.correspondence import Thread, others_of
from channels.email.mail import Mail, MailFile
from channels.email.said.words import Spoken
from channels.email.subjects import base_subject
from channels.email.whereabouts import FileRef, Whereabouts, write_ref
from zerobot.core.envelope import Attachment, InboundEnvelope
from zerobot.core.places import ConversationKey, Identity, Place

PLATFORM = "email"
EARLIER = "earlier"
"""In place of a part's number: the quoted mails and the signature that were taken out of the text."""
EARLIER_NAME = "earlier-messages.txt"
_UNSEEN = (
    "[The HTML of this mail can hide its first line from who looks at it, so I did not take that line as an order. "
    "Plain text is always taken.]"
)
_KINDS = ("image", "audio", "video")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A mail, read."""

    mail: Mail
    spoken: Spoken
    fingerprint: str
    """What tells it from all other mails, and from no copy of its own."""


def envelope_of(
    reading: Reading,
    thread: Thread,
    where: Whereabouts,
    channel: str,
    own: frozenset[str],
    commands: Collection[str],
    escape: Callable[[str], str],
) -> InboundEnvelope:
    """Bring a mail into the common form.

    Args:
        reading: The mail; it has one sender, who is proved.
        thread: Its conversation, with the mail in it.
        where: Where it lies.
        channel: The channel's table.
        own: The bot's addresses.
        commands: The names of the chat's commands.
        escape: Makes characters visible that could deceive.
    """
    mail = reading.mail
    assert mail.sender is not None, "who is proved is known"
    sender = mail.sender.address
    files = tuple(_attachment(file, mail, where) for file in mail.files)
    order = _command(reading, commands)
    text = order if reading.spoken.seen else None
    if text is None:
        text = _text(reading, escape, opens=len(thread.mails) <= 1 or _turns(thread))
        if order is not None:
            text = f"{_UNSEEN}\n\n{text}"
        if reading.spoken.removed:
            size = len(reading.spoken.removed.encode("utf-8", "replace"))
            earlier = MailFile(path=EARLIER, name=EARLIER_NAME, mime="text/plain", size=size)
            files = (*files, _attachment(earlier, mail, where))
    return InboundEnvelope(
        conversation=ConversationKey(Place(channel, thread.owner, thread.key)),
        sender=Identity(PLATFORM, sender),
        sender_name=mail.sender.name,
        event_id=reading.fingerprint,
        message_id=thread.name_of(mail, reading.fingerprint),
        text=text,
        attachments=files,
        direct=not others_of(mail, sender, own),
        addressed=any(box.address in own for box in mail.to),
        sent_at=mail.sent_at,
    )


def says_nothing(reading: Reading) -> bool:
    """Whether there is nothing to answer: no new words, no file, and a subject that is an old one or empty."""
    mail = reading.mail
    fresh = bool(mail.subject.strip()) and not (mail.references or mail.in_reply_to)
    return not (reading.spoken.new.strip() or mail.files or mail.named or fresh)


def _command(reading: Reading, commands: Collection[str]) -> str | None:
    """The first line, if it is a command, or an answer to a request of ours."""
    if (decided := answer(reading.mail, reading.spoken.new)) is not None:
        return decided
    line = reading.spoken.new.strip().partition("\n")[0].strip()
    word = line[1:].partition(" ")[0].lower()
    return line if line[:1] in {"/", "!"} and word in commands else None


def _text(reading: Reading, escape: Callable[[str], str], *, opens: bool) -> str:
    mail = reading.mail
    parts = [reading.spoken.new.strip()]
    if opens and mail.subject.strip():
        parts.insert(0, f"Subject: {escape(mail.subject.strip())}")
    if mail.named:
        parts.append(f"[This mail also has {_listed(mail.named)}, which I do not open.]")
    if mail.cut:
        parts.append("[This mail is larger than what I read of it; something of its end is missing.]")
    return "\n\n".join(part for part in parts if part)


def _turns(thread: Thread) -> bool:
    """Whether the newest mail of a thread has another subject than the one before."""
    before, newest = thread.mails[-2:]
    return base_subject(before.subject) != base_subject(newest.subject)


def names_us(mail: Mail, own: frozenset[str]) -> bool:
    """Whether the bot is in To or CC. A mail to somebody else that is sent on to the bot proves its writer as well."""
    return any(box.address in own for box in (*mail.to, *mail.cc))


def _attachment(file: MailFile, mail: Mail, where: Whereabouts) -> Attachment:
    major = file.mime.partition("/")[0]
    return Attachment(
        kind=major if major in _KINDS else "file",
        name=file.name or f"part-{file.path}",
        mime=file.mime,
        size=file.size,
        ref=write_ref(FileRef(mail=where, message_id=mail.message_id, path=file.path)),
    )


def _listed(things: tuple[str, ...]) -> str:
    *others, last = dict.fromkeys(things)
    return f"{', '.join(others)} and {last}" if others else last
