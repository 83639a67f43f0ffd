"""Whether From is who wrote a mail; pure, but for the check of signatures.

A mail says anything in its From. It counts when our own server found it proved (`trace` says which of its words are
our server's), or when a signature that we check ourselves proves it. Whatever is unclear is a no.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Literal, Self

from channels.email.mail import Mail
from channels.email.proof.auth_results import AuthResults, MethodResult, read_results
from channels.email.proof.domains import domain_of, is_trusted, may_sign_for
from channels.email.proof.trace import Hop, Network, Trace, trace_of
from channels.email.settings import EmailSettings

_PLAIN, _CHAINED = "authentication-results", "arc-authentication-results"
_NO_POLICY = frozenset({"none", "temperror", "permerror", "bestguesspass"})
"""What `dmarc` says where it could not decide: signatures count by themselves then. Other words but `pass` are a no."""
_ONCE = ("subject", "date", "to", "cc", "message-id", "in-reply-to", "references")
_FORM = ("content-type", "content-transfer-encoding")
_SHOWN_IDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofRules:
    """What counts as a proof on one channel."""

    method: Literal["authentication-results", "dkim", "off"]
    own_domain: str
    """The domain of the bot's own address."""
    trusted: tuple[str, ...] = ()
    """The authserv-ids of our own server."""
    relays: tuple[Network, ...] = ()
    """The addresses from which our own servers hand mail to one another."""
    trust_submitted: bool = False
    """Whether mail counts that another account handed in at our own server, in a name of its domain."""

    @classmethod
    def of(cls, settings: EmailSettings) -> Self:
        """The rules that a channel's table sets."""
        return cls(
            method=settings.verify_sender,
            own_domain=domain_of(settings.address),
            trusted=settings.trusted_authserv,
            relays=tuple(ip_network(each) for each in settings.trusted_relays),
            trust_submitted=settings.trust_submitted,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The answer to one mail."""

    address: str | None
    """Who wrote it; None: nobody that is proved."""
    reason: str
    """Why, in a word for the log.

    Of a proof: `dmarc`, `dkim`, `account` (handed in by an account, which is trusted), `unchecked`. Else `no_from`;
    `twice` (a field that mails have once); `no_results`, `unreadable`, `untrusted` (of other ids only), `below_border`
    (of a trusted id, where anybody may have written them); `fail`, `ambiguous`, `not_aligned`, `disagreement`,
    `spf_only`, `no_pass`; `submitted`, `other_account`; of signatures `no_signature`, `dkim_…` (see `signatures`),
    `dkim_body`, `dkim_invalid`, `dkim_lookup`, `dkim_timeout`.
    """
    authserv_ids: tuple[str, ...] = ()
    """Whose results our own servers' fields have, topmost first and at most ten; what the mail brought along is not
    among them, so that nobody is advised to trust it."""
    border: Hop | None = None
    """How the mail came to our own servers, for advice on what to trust."""
    temporary: bool = False
    """Whether another try may end otherwise: keys could not be looked up."""


@dataclass(frozen=True, slots=True)
class SignatureFinding:
    """What the check of a mail's signatures found."""

    domain: str | None
    """Whose valid signature speaks for From; None: there is none."""
    reason: str
    """`dkim`, or why there is none."""
    temporary: bool = False
    """Whether another try may end otherwise."""


SignatureCheck = Callable[[bytes, str], Awaitable[SignatureFinding]]
"""Checks the signatures of a raw mail for a domain."""


async def prove(mail: Mail, raw: bytes, rules: ProofRules, check: SignatureCheck) -> Proof:
    """Find out who wrote a mail, by the way that is configured.

    Args:
        mail: As it was read.
        raw: As it came, byte for byte.
        rules: See there.
        check: Called with `dkim` only.
    """
    if rules.method == "authentication-results" or mail.sender is None:
        return prove_by_results(mail, rules)
    trace = trace_of(mail, rules.relays)
    ids = _ids(_fields(trace.own))
    if rules.method == "off":
        return Proof(address=mail.sender.address, reason="unchecked", authserv_ids=ids, border=trace.border)
    domain = domain_of(mail.sender.address)
    found = await check(raw, domain)
    address, reason = (mail.sender.address, found.reason) if found.domain is not None else (None, found.reason)
    if found.domain == rules.own_domain and not rules.trust_submitted:
        # Our server signs whatever its accounts hand in: it proves the server, and not which account.
        address, reason = None, "submitted"
    return Proof(address=address, reason=reason, authserv_ids=ids, border=trace.border, temporary=found.temporary)


def prove_by_results(mail: Mail, rules: ProofRules) -> Proof:
    """Find out who wrote a mail by what our own server found when it took it.

    `dmarc=pass` for From's domain is a proof, and so is `dkim=pass` of a domain that may sign for it. `spf=pass` alone
    is none: it speaks of the return path and of a machine, which often serves many customers. A no of DMARC, results
    of a From that is not ours, and a signature that one server found valid and another one broken are a no, whatever
    else passes. A sealed chain (`arc=pass`) is none.

    A field that mails have once (RFC 5322, section 3.6) and this one twice is a no as well: a signature covers the
    lower one, and the upper one, which is read here, may be put above it by whoever passes the mail on.

    Where no field shows the border, only the topmost field of a trusted id proves something: our server, if it writes
    any, writes its own above those that a mail brings along.
    """
    trace = trace_of(mail, rules.relays)
    fields = _fields(trace.own)
    address, reason = None, "no_from"
    if any(len(mail.values(name)) > 1 for name in (*_ONCE, *_FORM)):
        reason = "twice"
    elif mail.sender is not None:
        found = [each for each in fields if each is not None and is_trusted(each.authserv_id, rules.trusted)]
        if trace.border is not None and trace.border.submitted:
            reason = _of_account(trace.border, mail.sender.address, found, rules)
        elif found:
            proving = found if trace.border is not None else found[:1]
            domain = domain_of(mail.sender.address)
            reason = _objection(domain, found) or _verdict(domain, found, proving)
        else:
            reason = _missing(mail, trace, fields, rules)
        address = mail.sender.address if reason in {"dmarc", "dkim", "account"} else None
    return Proof(address=address, reason=reason, authserv_ids=_ids(fields), border=trace.border)


def _fields(own: tuple[tuple[str, str], ...]) -> list[AuthResults | None]:
    """Our own servers' results, topmost first; None: a field that can't be read."""
    return [read_results(value, chained=name == _CHAINED) for name, value in own if name in {_PLAIN, _CHAINED}]


def _ids(fields: list[AuthResults | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.authserv_id for each in fields if each is not None))[:_SHOWN_IDS]


def _missing(mail: Mail, trace: Trace, fields: list[AuthResults | None], rules: ProofRules) -> str:
    """Why there are no results of a trusted id."""
    if any(each is not None for each in fields):
        return "untrusted"
    if fields:
        return "unreadable"
    below = _fields(mail.fields[len(trace.own) :])
    if any(each is not None and is_trusted(each.authserv_id, rules.trusted) for each in below):
        return "below_border"
    return "no_results"


def _objection(domain: str, found: list[AuthResults]) -> str:
    """Why results of our own servers are a no, whatever else passes; empty: they are none."""
    policies = [each for field in found for each in field.of("dmarc")]
    valid = [any(_speaks(each, domain, "pass") for each in field.of("dkim")) for field in found]
    broken = [any(_speaks(each, domain, "fail") for each in field.of("dkim")) for field in found]
    if any(len(field.of("dmarc")) > 1 for field in found):
        # A mail has one From. Two verdicts on it in one field: something got in there that is not our server's.
        return "ambiguous"
    if any(each.result != "pass" and each.result not in _NO_POLICY for each in policies):
        return "fail"
    # Gmail names the domain of the policy, which may be above From's.
    if any(not may_sign_for(domain_of(each.about("header.from") or domain), domain) for each in policies):
        return "not_aligned"
    if any(valid) and any(bad and not good for bad, good in zip(broken, valid, strict=True)):
        return "disagreement"
    return ""


def _verdict(domain: str, found: list[AuthResults], proving: list[AuthResults]) -> str:
    """What results of our own servers, to which nothing speaks against, prove: `dmarc`, `dkim`, or why nothing.

    Args:
        domain: From's.
        found: All of a trusted id.
        proving: Those of them that count.
    """
    policies = [each for field in proving for each in field.of("dmarc")]
    if any(each.result == "pass" and domain_of(each.about("header.from") or "") == domain for each in policies):
        return "dmarc"
    if any(_speaks(each, domain, "pass") for field in proving for each in field.of("dkim")):
        return "dkim"
    if any(each.result == "pass" for field in found for each in field.of("dkim")):
        return "not_aligned"
    returns = [each.about("smtp.mailfrom") for field in found for each in field.of("spf") if each.result == "pass"]
    return "spf_only" if any(may_sign_for(domain_of(each or ""), domain) for each in returns) else "no_pass"


def _speaks(result: MethodResult, domain: str, word: str) -> bool:
    """Whether a result is of a signature that may speak for a domain, and is this word."""
    signer = result.about("header.d") or domain_of(result.about("header.i") or "")
    return result.result == word and may_sign_for(signer, domain)


def _of_account(hop: Hop, address: str, found: list[AuthResults], rules: ProofRules) -> str:
    """Whether a mail counts that a client handed in at our own server, having logged in.

    The server knows the account, and not whether From is its name: that is taken on trust where it is configured, and
    even then only for a name of the server's own domain, and not if the server tells the account and it is another.
    """
    host, own = hop.host.rstrip("."), rules.own_domain
    logged_in = [each.about("smtp.auth") for field in found for each in field.of("auth") if each.result == "pass"]
    accounts = {each.lower() for each in (hop.account, *logged_in) if each}
    if hop.local or not rules.trust_submitted:
        # What a program of the machine hands in is anybody's: a form on the web, say.
        return "submitted"
    if domain_of(address) != own:
        return "not_aligned"
    if not (is_trusted(host, rules.trusted) or host == own or host.endswith("." + own)):
        return "untrusted"
    if accounts - {address, address.rpartition("@")[0]}:
        return "other_account"
    return _objection(own, found) or "account"
