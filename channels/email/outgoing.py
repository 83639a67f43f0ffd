"""From what delivery says to a letter: to whom it goes, what it answers, what it is called. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from channels.email.correspondence import Heard, Thread
from channels.email.mail import Mailbox
from channels.email.settings import EmailSettings
from channels.email.writing.compose import reply_subject
from channels.email.writing.letter import Enclosure, Letter
from zerobot.core.channel import OutboundMessage

_TITLE = 60
"""Characters of a text's first line that make the subject of a mail that answers none."""


def letter_of(
    message: OutboundMessage,
    thread: Thread | None,
    settings: EmailSettings,
    date: datetime,
    *,
    subject: str = "",
    readers: tuple[str, ...] | None = None,
    files: tuple[Enclosure, ...] = (),
) -> Letter:
    """Make a letter.

    Args:
        message: What to say, and where.
        thread: What is remembered of the place; None: nothing, the mail goes to whom the place is named after.
        settings: The channel's table.
        date: Aware.
        subject: Its own; empty: that of the mail which it answers.
        readers: Whom alone it is for: in a thread those of them who wrote there, else all. None: it is an answer.
        files: What goes along.
    """
    heard = thread.answered(message.reply_to) if thread is not None else None
    to = heard.sender if heard is not None else message.place.chat
    cc: Iterable[str] = heard.others if heard is not None and settings.reply_to_all and readers is None else ()
    if readers and thread is not None:
        wrote = [each for each in reversed(thread.mails) if each.sender in readers]
        heard = wrote[0] if wrote else heard
        to, *cc = dict.fromkeys(each.sender for each in wrote) or readers
    before = (*heard.references, heard.id) if heard is not None else ()
    answered = message.reply_to if message.reply_to.startswith("<") else "".join(before[-1:])
    return Letter(
        key=message.key,
        thread=message.place.thread or "",
        sender=Mailbox(settings.display_name or "", settings.address),
        to=Mailbox("", to),
        cc=tuple(Mailbox("", each) for each in dict.fromkeys(cc) if each != to),
        subject=subject or _subject(message, heard),
        body=message.body,
        date=date,
        in_reply_to=answered,
        references=tuple(each for each in before if each != answered),
        files=files,
    )


def _subject(message: OutboundMessage, heard: Heard | None) -> str:
    if heard is not None:
        return reply_subject(heard.subject)
    line = next((line.strip() for line in message.body.text.splitlines() if line.strip()), "")
    return line if len(line) <= _TITLE else f"{line[: _TITLE - 1]}…"
