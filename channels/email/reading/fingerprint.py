"""What tells a mail from every other one, however often and by whatever way it arrives."""

from __future__ import annotations

import hashlib

from channels.email.mail import Mail
from channels.email.reading.fields import read_header

_TAIL_BYTES = 1_000


def fingerprint(mail: Mail, raw: bytes) -> str:
    """Make the fingerprint of a mail.

    What servers add on the way is not looked at. An id alone does not do: anybody may write a mail with the id of
    another one, which must not make that one vanish.

    Args:
        mail: The mail.
        raw: Its bytes.
    """
    digest = hashlib.sha256()
    sender = mail.sender.address if mail.sender is not None else " ".join(mail.values("from"))
    date = " ".join(mail.values("date")[:1])
    identity = mail.message_id or " ".join(mail.values("message-id"))
    for said in (identity, sender, date, mail.subject):
        digest.update(said.encode("utf-8", "replace") + b"\0")
    digest.update(memoryview(raw)[read_header(raw).body : _content_end(raw)])
    return digest.hexdigest()


def _content_end(raw: bytes) -> int:
    """Where a mail ends without the empty lines that some servers add."""
    tail = raw[-_TAIL_BYTES:]
    return len(raw) - len(tail) + len(tail.rstrip())
