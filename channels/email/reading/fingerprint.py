"""What tells a mail from every other one, however often and by whatever way it arrives."""

from __future__ import annotations

import hashlib

from channels.email.mail import Mail
from channels.email.reading.body_hash import body_hash
from channels.email.reading.fields import read_header


def fingerprint(mail: Mail, raw: bytes) -> str:
    """Make the fingerprint of a mail.

    It is made of what nobody can change who passes a signed mail on: who wrote it, when, under which subject, and the
    words. The id is not among that, since many signatures leave it open (it is not in the list of RFC 6376, section
    5.4.1): a mail must not count once more under another one. Nor do blanks count, which may be changed in a mail
    that was signed in the relaxed way (section 3.4). Only a mail without a date is told by its id.

    Args:
        mail: The mail.
        raw: Its bytes.
    """
    digest = hashlib.sha256()
    sender = mail.sender.address if mail.sender is not None else " ".join(mail.values("from"))
    date = " ".join(mail.values("date")[:1])
    identity = "" if date else mail.message_id or " ".join(mail.values("message-id"))
    for said in (identity, sender, date, mail.subject):
        digest.update(" ".join(said.split()).encode("utf-8", "replace") + b"\0")
    digest.update(body_hash(raw[read_header(raw).body :], relaxed=True))
    return digest.hexdigest()
