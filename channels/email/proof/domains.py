"""Domains of addresses and signatures: which one may speak for which; pure."""

from __future__ import annotations


def domain_of(address: str) -> str:
    """The part of an address behind its last `@`, in lower case."""
    return address.rpartition("@")[2].lower().rstrip(".")


def may_sign_for(signer: str, domain: str) -> bool:
    """Whether a signature of one domain speaks for the senders of another: it is the same, or above it.

    DMARC (RFC 7489, section 3.1) takes any domain of the same organisation, and needs the list of public suffixes to
    know what an organisation is: `a.co.uk` and `b.co.uk` are two. Without brothers and children none is needed. Who
    holds a zone can hand out every name below it, so that a parent's key proves no less than the child's own; and a
    key of a public suffix would stand at `NAME._domainkey.co.uk`, a name that only the registry can make. One label
    alone is nobody's sender. What it costs: a signature of `mail.good.test` does not speak for `good.test`, since a
    name below is often in other hands.

    Args:
        signer: The domain of the signature (`d=`).
        domain: The domain of From, in lower case and ASCII.
    """
    signer = signer.lower().rstrip(".")
    if not signer or not domain:
        return False
    return signer == domain or ("." in signer and domain.endswith("." + signer))


def is_trusted(authserv_id: str, trusted: tuple[str, ...]) -> bool:
    """Whether an authserv-id is one of those named; `*.good.test` names each below `good.test`.

    Large providers have an id for each of their machines.
    """
    authserv_id = authserv_id.lower().rstrip(".")
    return any(
        authserv_id.endswith(name[1:]) and len(authserv_id) > len(name) - 1
        if name.startswith("*.")
        else authserv_id == name
        for name in (each.lower().rstrip(".") for each in trusted)
        if name
    )
