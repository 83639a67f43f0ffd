"""Mails made of the text of their headers, with no reader of our own in between."""

from __future__ import annotations

import re

from channels.email.mail import Mail, Mailbox

_FROM = re.compile(r'(?:(?:"[^"]*"|[\w.=? -]*)\s*)<([\w.+-]+@[\w.-]+)>|([\w.+-]+@[\w.-]+)')


def mail_of(header: str) -> Mail:
    """The fields of a header, and its one sender if From is of one of the two plain forms."""
    lines = re.split(r"\n(?![ \t])", header.strip("\n"))
    fields = tuple(
        (name.lower(), value.replace("\n", "").strip()) for name, _, value in (line.partition(":") for line in lines)
    )
    senders = [value for name, value in fields if name == "from"]
    match = _FROM.fullmatch(senders[0]) if len(senders) == 1 else None
    return Mail(fields=fields, sender=Mailbox("", (match[1] or match[2]).lower()) if match else None)
