"""Mails that are signed for real, and a DNS that has their keys."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dkim  # type: ignore[import-untyped]
from dkim.canonicalization import CanonicalizationPolicy  # type: ignore[import-untyped]
from dkim.crypto import parse_pem_private_key  # type: ignore[import-untyped]

from channels.email.proof.authenticity import SignatureFinding
from channels.email.proof.dkim_check import LookupFailedError, signature_check
from zerobot.testing.clock import ManualClock

KEYS = Path(__file__).parents[2] / "cases" / "dkim"
SIGNED = ("from", "from", "to", "subject", "date", "message-id", "content-type")
MAIL = (
    b"From: Ann <ann@good.test>\r\n"
    b"To: bot@bots.test\r\n"
    b"Subject: Hello\r\n"
    b"Date: Mon, 5 Jan 2026 08:59:00 +0000\r\n"
    b"Message-ID: <1@good.test>\r\n"
    b"Content-Type: text/plain\r\n"
    b"\r\n"
    b"Run the  report. \r\n"
    b"\r\n"
    b"Ann\r\n"
)


def sign(
    mail: bytes = MAIL,
    names: Sequence[str] = SIGNED,
    *,
    bits: int = 2048,
    form: str = "relaxed/relaxed",
    body: bytes | None = None,
    **tags: str,
) -> bytes:
    """Put a signature above a mail: `d=good.test; s=s1`, with other or more tags where they are given.

    Args:
        mail: With CRLF.
        names: The fields that are signed.
        bits: Which of the test keys.
        form: The canonicalizations of header and body.
        body: What is hashed instead of the mail's body.
        tags: Their values.
    """
    signer = dkim.DKIM(mail)
    signer.hasher = hashlib.sha256
    policy = CanonicalizationPolicy.from_c_value(form.encode())
    digest = hashlib.sha256(policy.canonicalize_body(signer.body if body is None else body)).digest()
    said = {
        "v": "1",
        "a": "rsa-sha256",
        "c": form,
        "d": "good.test",
        "s": "s1",
        "h": " : ".join(names),
        "bh": base64.b64encode(digest).decode(),
    }
    fields = [(name.encode(), value.encode()) for name, value in {**said, **tags}.items()]
    key = parse_pem_private_key((KEYS / f"rsa-{bits}.pem").read_bytes())
    names_signed = [name.encode() for name in names]
    header: bytes = signer.gen_header([*fields, (b"b", b"0" * 60)], names_signed, policy, b"DKIM-Signature", key)
    return b"DKIM-Signature: " + header.rstrip() + b"\r\n" + mail


def record(bits: int = 2048, **tags: str) -> bytes:
    """The DNS record of a test key; a tag that is given replaces what it has."""
    said = {"v": "DKIM1", "k": "rsa", "p": (KEYS / f"rsa-{bits}.txt").read_text(encoding="ascii"), **tags}
    return "; ".join(f"{name}={value}" for name, value in said.items()).encode()


@dataclass
class Dns:
    """A resolver that knows some names."""

    records: dict[str, bytes] = field(default_factory=lambda: {"s1._domainkey.good.test": record()})
    down: frozenset[str] = frozenset()
    """Names for which it gives no answer."""
    asked: list[str] = field(default_factory=list)

    async def lookup(self, name: str) -> bytes:
        """Answer as a `TxtLookup` does."""
        self.asked.append(name)
        if name in self.down:
            raise LookupFailedError(name)
        return self.records.get(name, b"")


async def checked(raw: bytes, dns: Dns | None = None, domain: str = "good.test") -> SignatureFinding:
    """What our check says of a mail at 9:00 on the 5th of January 2026."""
    return await signature_check(ManualClock(), (dns or Dns()).lookup)(raw, domain)
