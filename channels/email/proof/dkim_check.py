"""Our own check of a mail's signatures (RFC 6376): keys by way of the DNS, the arithmetic by dkimpy, in a thread."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable

import dkim  # type: ignore[import-untyped]
import dns.exception
import dns.resolver
from dns.asyncresolver import Resolver

from channels.email.proof.authenticity import SignatureCheck, SignatureFinding
from channels.email.proof.signatures import Signature, candidates, key_fault, split_mail
from channels.email.reading.body_hash import body_hash
from zerobot.core.clock import Clock

TxtLookup = Callable[[str], Awaitable[bytes]]
"""Looks up the TXT record of a name, its strings joined; empty: there is none. `LookupFailedError`: nobody knows."""

_SMALLEST_KEY = 1_024
"""Bits (RFC 8301, section 3.2)."""
_LOOKUP_SECONDS = 5.0
_SECONDS = 10.0
"""For all of one mail."""
_QUIET = logging.getLogger(__name__)
"""The library writes what strangers' mails have at `error`; why a mail proves nothing is in our own log."""
_QUIET.setLevel(logging.CRITICAL + 1)


class LookupFailedError(Exception):
    """The DNS gave no answer; another try may get one."""


def txt_lookup(resolver: Callable[[], Resolver] = Resolver) -> TxtLookup:
    """Make the lookup that asks the DNS; of several records the first one counts.

    Args:
        resolver: Makes what is asked; one for each name, since a machine's name servers change while it runs.
    """

    async def lookup(name: str) -> bytes:
        try:
            answer = await resolver().resolve(name, "TXT", lifetime=_LOOKUP_SECONDS, search=False)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return b""
        except (dns.exception.DNSException, OSError) as error:
            raise LookupFailedError(str(error)) from error
        return b"".join(next(iter(answer)).strings)

    return lookup


def signature_check(clock: Clock, lookup: TxtLookup) -> SignatureCheck:
    """Make the check that `authenticity.prove` asks for.

    Args:
        clock: Tells when a signature has expired.
        lookup: Gets keys; see `txt_lookup`.
    """

    async def check(raw: bytes, domain: str) -> SignatureFinding:
        try:
            async with asyncio.timeout(_SECONDS):
                return await _check(raw, domain, clock.now().timestamp(), lookup)
        except TimeoutError:
            return SignatureFinding(None, "dkim_timeout", temporary=True)

    return check


async def _check(raw: bytes, domain: str, now: float, lookup: TxtLookup) -> SignatureFinding:
    header, body = split_mail(raw)
    signatures, reason = candidates(header, domain, now)
    missed = False
    for signature in signatures:
        try:
            key = await lookup(signature.key_name)
        except LookupFailedError:
            reason, missed = "dkim_lookup", True
            continue
        reason = key_fault(key, signature) or await asyncio.to_thread(_fault, header, body, signature, key)
        if not reason:
            return SignatureFinding(signature.domain, "dkim")
    return SignatureFinding(None, reason, temporary=missed)


def _fault(header: bytes, body: bytes, signature: Signature, key: bytes) -> str:
    """Do the arithmetic. Empty: the signature is valid.

    The body's hash is our own: the library works on the whole body in single calls, some of which take a time that
    grows by the square of its blanks, and no other thread runs meanwhile.
    """
    try:
        verifier = dkim.DKIM(header + b"\r\n\r\n", logger=_QUIET, minkey=_SMALLEST_KEY)
        tags, names, fields = verifier.verify_headerprep(signature.index)
        signed = base64.b64decode(b"".join(tags.pop(b"bh").split()))
        if signed != body_hash(body, relaxed=signature.relaxed_body):
            return "dkim_body"
        valid = verifier.verify_sig(tags, names, fields[signature.index], lambda name, timeout: key)  # noqa: ARG005
    except Exception:  # noqa: BLE001 -- whatever a stranger's mail or key makes the library do, it proves nothing
        return "dkim_invalid"
    return "" if valid is True else "dkim_invalid"
