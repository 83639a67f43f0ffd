"""What belongs together: the thread of a mail, its subject without what replies put before it, and the mail itself."""

from __future__ import annotations

import hashlib
import re

from channels.email.mail import Mail
from channels.email.reading.fields import read_header

# How mail programs mark answers and forwards in their languages. Those of a single letter (Italian) are left out: a
# subject may well begin like that.
_PREFIXES = (
    "re|fw|fwd|aw|antw|antwort|wg|sv|vs|vl|vb|vá|továbbítás|rv|res|enc|rif|tr|odp|pd|ynt|ilt|doorst|bls|trs|"
    "отв|ответ|пересл|απ|σχετ|προθ|תשובה|השב|הועבר|رد|回复|回覆|答复|答覆|转发|轉寄|轉發|返信|転送|회신|답장|전달"
)
_PREFIX = re.compile(rf"(?:{_PREFIXES})\s{{0,9}}(?:[\[(]\d{{1,4}}[\])])?\s{{0,9}}[:：]\s*+", re.IGNORECASE)
# The tag of a list: `[dev]`.
_TAG = re.compile(r"\[[^\[\]]{0,100}\]\s*+")
_TRAILER = re.compile(r"\(fwd\)\Z", re.IGNORECASE)
_FORWARDED = re.compile(r"\[fwd:(.*)\]\Z", re.IGNORECASE | re.DOTALL)
_TAIL_BYTES = 1_000


def thread_root(mail: Mail) -> str:
    """The id of the mail that began the thread, as this one says; empty when it has no id either."""
    return next(iter(mail.references), "") or mail.in_reply_to or mail.message_id


def base_subject(subject: str) -> str:
    """A subject without what answers and forwards put around it (RFC 5256, section 2.1, and other languages)."""
    rest = " ".join(subject.split())
    while True:
        shorter = _peeled(rest)
        if shorter == rest:
            return rest
        rest = shorter


def fingerprint(mail: Mail, raw: bytes) -> str:
    """What tells a mail from every other one, however often and by whatever way it arrives.

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


def _peeled(subject: str) -> str:
    """A subject without the outermost thing around it."""
    rest = _TRAILER.sub("", subject).rstrip()
    forwarded = _FORWARDED.match(rest)
    if forwarded is not None:
        return forwarded[1].strip()
    tag = _TAG.match(rest)
    prefix = _PREFIX.match(rest, tag.end() if tag else 0)
    if prefix is not None:
        return rest[prefix.end() :]
    # A subject that is nothing but a tag keeps it.
    return rest[tag.end() :] if tag is not None and tag.end() < len(rest) else rest


def _content_end(raw: bytes) -> int:
    """Where a mail ends without the empty lines that some servers add."""
    tail = raw[-_TAIL_BYTES:]
    return len(raw) - len(tail) + len(tail.rstrip())
