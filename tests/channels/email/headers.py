"""Mails that are nothing but a header."""

from __future__ import annotations

from channels.email.mail import Mail
from channels.email.reading.mime import read_mail


def mail_of(header: str) -> Mail:
    """The mail that has this header and no text."""
    return read_mail((header.strip("\n") + "\n\n").encode())
