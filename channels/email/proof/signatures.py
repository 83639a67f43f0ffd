"""The `DKIM-Signature` fields of a mail that may speak for its From, before anything is computed; pure.

Whoever writes a signature decides what it covers. What is asked here is what makes "the domain has signed this mail"
true of the mail as it is read, and keeps the work small.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from channels.email.proof.domains import may_sign_for

HEADER_BYTES = 131_072
"""A longer header is not checked; the headers of mails that have come far have some 30,000."""
_FIELD_BYTES = 8_192
_LONG_FOLD = re.compile(rb"\s{64}")
"""The library's search for `b=` takes a time that grows by the square of such runs."""
_FIELDS = 1_000
_NAMES = 200
"""Names in `h=`."""
_TRIED = 3
"""Signatures whose keys are looked up; senders who change their algorithm have two."""
_READ = 20
_END = re.compile(rb"\r?\n\r?\n")
_LINE = re.compile(rb"\r?\n(?![ \t])")
_FIELD = re.compile(rb"([\x21-\x39\x3b-\x7e]+):(.*)", re.DOTALL)
_TAG = re.compile(r"([A-Za-z]\w*)\s*=\s*(.*?)", re.DOTALL | re.ASCII)
_DOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62})+", re.ASCII)
_SELECTOR = re.compile(r"(?=.{1,253}\Z)[a-z0-9_][a-z0-9_-]{0,62}(?:\.[a-z0-9_][a-z0-9_-]{0,62})*", re.ASCII)
_LARGEST_KEY = 1_500
"""Bytes of a key's record: one of 4,096 bits has some 800. Arithmetic with much larger ones would take long."""
_PRINTED = re.compile(rb"[\t\r\n -~]*")
_SECONDS = re.compile(r"\d{1,12}", re.ASCII)
_ONCE = ("from", "subject", "date", "to", "cc", "reply-to", "message-id", "in-reply-to", "references", "mime-version")
_FORM = ("content-type", "content-transfer-encoding")
"""Fields that say how the body is read. Many senders (Gmail) don't sign them, but a second one is never right."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature that is worth checking."""

    index: int
    """Which of the mail's `DKIM-Signature` fields it is, the topmost is 0."""
    domain: str
    """`d=`, in lower case."""
    key_name: str
    """Where its key stands in the DNS."""
    relaxed_body: bool
    """Whether blanks of the body count as one."""
    strict_identity: bool
    """Whether `i=` is of the very domain, which some keys ask for (`t=s`)."""


def split_mail(raw: bytes) -> tuple[bytes, bytes]:
    """Cut a mail into its header, without the empty line, and its body."""
    end = _END.search(raw)
    return (raw, b"") if end is None else (raw[: end.start()], raw[end.end() :])


def candidates(header: bytes, domain: str, now: float) -> tuple[list[Signature], str]:
    """Find the signatures that may prove From.

    Args:
        header: See `split_mail`.
        domain: From's.
        now: Seconds since 1970.

    Returns:
        At most three, topmost first; and, if there is none, why the best of the others is not: `no_signature`,
        `not_aligned`, `dkim_length` (`l=`: text may follow that nobody signed), `dkim_expired`, `dkim_algorithm`,
        `dkim_coverage` (From, Date or Subject not signed, or a field twice), `dkim_unreadable`, `dkim_too_large`.
    """
    lines = _LINE.split(header) if len(header) <= HEADER_BYTES else []
    fields = [match for line in lines if (match := _FIELD.fullmatch(line))]
    if not lines or len(fields) > _FIELDS:
        return [], "dkim_too_large"
    if len(fields) != len(lines):
        return [], "dkim_unreadable"
    count = Counter(match[1].decode("ascii").lower() for match in fields)
    values = [match[2] for match in fields if match[1].lower() == b"dkim-signature"][:_READ]
    found: list[Signature] = []
    reasons = ["no_signature"]
    for index, value in enumerate(values):
        judged = _judge(index, value, domain, count, now)
        if isinstance(judged, Signature):
            found.append(judged)
        else:
            reasons.append(judged)
    told = [each for each in reasons if each not in {"no_signature", "not_aligned"}]
    return found[:_TRIED], (told or reasons[-1:])[0]


def _judge(index: int, value: bytes, domain: str, count: Counter[str], now: float) -> Signature | str:
    """The signature, or why it proves nothing."""
    tags = read_tags(value) if len(value) <= _FIELD_BYTES and not _LONG_FOLD.search(value) else None
    if tags is None or not {"v", "a", "b", "bh", "d", "h", "s"} <= tags.keys():
        return "dkim_unreadable"
    signer, selector = tags["d"].lower(), tags["s"].lower()
    names = Counter(name.strip().lower() for name in tags["h"].split(":"))
    expires = tags.get("x", "0")
    faults = (
        ("dkim_unreadable", not (_DOMAIN.fullmatch(signer) and _SELECTOR.fullmatch(selector))),
        ("not_aligned", not may_sign_for(signer, domain)),
        ("dkim_algorithm", tags["a"].lower() != "rsa-sha256"),
        ("dkim_length", "l" in tags),
        ("dkim_expired", "x" in tags and not (_SECONDS.fullmatch(expires) and int(expires) > now)),
        ("dkim_coverage", names.total() > _NAMES or not _covers(names, count)),
    )
    for reason, is_so in faults:
        if is_so:
            return reason
    return Signature(
        index=index,
        domain=signer,
        key_name=f"{selector}._domainkey.{signer}",
        relaxed_body=tags.get("c", "").lower().endswith("/relaxed"),
        strict_identity=tags.get("i", "@" + signer).rpartition("@")[2].lower() == signer,
    )


def _covers(names: Counter[str], count: Counter[str]) -> bool:
    """Whether nothing that people read, or that says how to read, can be put into a mail that was signed.

    Of a field that comes twice, a signature covers the lower one, and who reads it may take the upper one. By its date
    a mail is known that somebody sends a second time, years later.
    """
    if not names["from"] or not names["date"] or (count["subject"] and not names["subject"]):
        return False
    return all(count[name] <= 1 for name in (*_ONCE, *_FORM))


def key_fault(record: bytes, signature: Signature) -> str:
    """Say what is wrong with the record of a key (RFC 6376, section 3.6.1); empty: nothing.

    Returns:
        `dkim_key`: there is none, it is revoked, or not for this. `dkim_testing`: the domain only tries signing, and
        asks that its mails be treated as if they were not signed.
    """
    tags = read_tags(record) if len(record) <= _LARGEST_KEY else None
    if not tags or not tags.get("p") or tags.get("v", "DKIM1") != "DKIM1" or tags.get("k", "rsa") != "rsa":
        return "dkim_key"
    flags = _words(tags.get("t", ""))
    if not (_words(tags.get("s", "*")) & {"*", "email"} and "sha256" in _words(tags.get("h", "sha256"))):
        return "dkim_key"
    if "s" in flags and not signature.strict_identity:
        return "dkim_key"
    return "dkim_testing" if "y" in flags else ""


def _words(value: str) -> set[str]:
    return {word.strip().lower() for word in value.split(":")}


def read_tags(value: bytes) -> dict[str, str] | None:
    """Read `tag=value; …` (RFC 6376, section 3.2), of a signature or of a key.

    Returns:
        None: it is not of that form, or a tag comes twice.
    """
    if not _PRINTED.fullmatch(value):
        return None
    parts = value.decode("ascii").split(";")
    if not parts[-1].strip():
        parts.pop()
    tags: dict[str, str] = {}
    for part in parts:
        match = _TAG.fullmatch(part.strip())
        if match is None or match[1] in tags:
            return None
        tags[match[1]] = match[2].strip()
    return tags
