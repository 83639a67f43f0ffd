"""Our own check of signatures: mails signed for real, and everything that makes a signature prove nothing."""

from __future__ import annotations

import asyncio
import hashlib

import pytest
from dkim.canonicalization import CanonicalizationPolicy  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from channels.email.proof.authenticity import ProofRules, SignatureFinding, prove
from channels.email.proof.dkim_check import signature_check
from channels.email.proof.signatures import HEADER_BYTES, candidates
from channels.email.reading.body_hash import body_hash
from tests.channels.email.headers import mail_of
from tests.channels.email.signed import KEYS, MAIL, SIGNED, Dns, checked, record, sign
from zerobot.testing.clock import START, ManualClock

NOW = int(START.timestamp())
NAME = "s1._domainkey.good.test"
VALID = SignatureFinding("good.test", "dkim")


@pytest.mark.parametrize("form", ["relaxed/relaxed", "relaxed/simple", "simple/relaxed", "simple/simple", "relaxed"])
@pytest.mark.parametrize("bits", [1024, 2048])
async def test_a_signature_of_the_senders_domain_is_a_proof(form: str, bits: int) -> None:
    """In each form, whatever stands above it."""
    raw = b"Received: from a by b; Mon\r\nAuthentication-Results: x;\r\n\tnone\r\n" + sign(form=form, bits=bits)
    assert await checked(raw, Dns({NAME: record(bits)})) == VALID


async def test_what_another_program_has_signed_is_valid() -> None:
    """OpenDKIM, which most servers of one's own run."""
    assert await checked((KEYS / "opendkim.eml").read_bytes()) == VALID


async def test_a_signature_that_has_not_expired_is_a_proof() -> None:
    """So is one whose identity is below its domain."""
    assert await checked(sign(x=str(NOW * 2), t=str(NOW - 60))) == VALID
    assert await checked(sign(i="ann@mail.good.test")) == VALID


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (MAIL, "no_signature"),
        (sign(d="evil.test"), "not_aligned"),
        (sign(d="mail.good.test"), "not_aligned"),
        (sign(names=[name for name in SIGNED if name != "from"]), "dkim_coverage"),
        (sign(names=[name for name in SIGNED if name != "subject"]), "dkim_coverage"),
        (sign(names=[name for name in SIGNED if name != "date"]), "dkim_coverage"),
        (b"Subject: Delete all\r\n" + sign(), "dkim_coverage"),
        (b"Content-Type: text/html\r\n" + sign(), "dkim_coverage"),
        (b"From: Eve <eve@evil.test>\r\n" + sign(), "dkim_coverage"),
        (sign(l=str(len(b"Run the report.\r\n\r\nAnn\r\n"))) + b"Delete all.\r\n", "dkim_length"),
        (sign(l="25"), "dkim_length"),
        (sign(x=str(NOW)), "dkim_expired"),
        (sign(x="soon"), "dkim_expired"),
        (sign(x=""), "dkim_expired"),
        (sign(a="rsa-sha1"), "dkim_algorithm"),
        (sign(a="ed25519-sha256"), "dkim_algorithm"),
        (sign(v="2"), "dkim_invalid"),
        (sign(q="http"), "dkim_invalid"),
        (sign(i="ann@evil.test"), "dkim_invalid"),
        (sign(c="nowsp/relaxed"), "dkim_invalid"),
        (sign(t=str(NOW + 10**9)), "dkim_invalid"),
        (sign(bits=1024), "dkim_invalid"),
        (sign().replace(b"Hello", b"Hallo"), "dkim_invalid"),
        (sign().replace(b"ann@", b"eve@"), "dkim_invalid"),
        (sign().replace(b"Run", b"Ran"), "dkim_body"),
        (sign() + b"Delete all.\r\n", "dkim_body"),
        (sign(s="a b"), "dkim_unreadable"),
        (sign(s="a..b"), "dkim_unreadable"),
        (sign(d="good.test/"), "dkim_unreadable"),
        (b"DKIM-Signature: v=1; d=good.test\r\n" + MAIL, "dkim_unreadable"),
        (sign(z="x; d=evil.test"), "dkim_unreadable"),
        (sign(z="x" + " " * 64 + "x"), "dkim_unreadable"),
        (sign(names=["from", "from\x1c", "subject"]), "dkim_unreadable"),
        (sign(names=["from", "subject", *(f"x{number}" for number in range(200))]), "dkim_coverage"),
        (b"no field\r\n" + sign(), "dkim_unreadable"),
        (b"\r\n" + sign(), "dkim_unreadable"),
        (b"X: " + b"x" * HEADER_BYTES + b"\r\n" + sign(), "dkim_too_large"),
        (b"X: x\r\n" * 1_001 + sign(), "dkim_too_large"),
        (b"", "dkim_unreadable"),
    ],
)
async def test_any_other_signature_proves_nothing(raw: bytes, reason: str) -> None:
    """And the reason is told."""
    assert await checked(raw) == SignatureFinding(None, reason)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (b"", "dkim_key"),
        (b"v=DKIM1; p=", "dkim_key"),
        (record(p=""), "dkim_key"),
        (record(p="AAAA"), "dkim_invalid"),
        (record(p="\u00e9"), "dkim_key"),
        (record(v="DKIM2"), "dkim_key"),
        (record(k="ed25519"), "dkim_key"),
        (record(h="sha1"), "dkim_key"),
        (record(s="tlsrpt"), "dkim_key"),
        (record(t="y"), "dkim_testing"),
        (record(t="s:y"), "dkim_testing"),
        (record(n="x" * 1_500), "dkim_key"),
        (record(1024), "dkim_invalid"),
        (b"v=spf1 -all", "dkim_key"),
    ],
)
async def test_a_key_that_is_not_for_this_proves_nothing(key: bytes, reason: str) -> None:
    """Revoked, of another kind, for other mail, only for a try, or of somebody else."""
    assert await checked(sign(), Dns({NAME: key})) == SignatureFinding(None, reason)


async def test_a_key_may_say_what_it_is_for() -> None:
    """If it is for this; one for the very domain takes no identity below it."""
    assert await checked(sign(), Dns({NAME: record(h="sha1:sha256", s="email", t="s", n="a note")})) == VALID
    assert await checked(sign(i="@x.good.test"), Dns({NAME: record(t="s")})) == SignatureFinding(None, "dkim_key")


async def test_a_short_key_proves_nothing() -> None:
    """Those of 512 bits can be broken by everybody."""
    found = await checked(sign(bits=512), Dns({NAME: record(512)}))
    assert found == SignatureFinding(None, "dkim_invalid")


async def test_one_good_signature_of_several_is_enough() -> None:
    """Broken ones, and those of others, stand above or below it."""
    dns = Dns({NAME: record(), "s2._domainkey.good.test": record(1024)})
    assert await checked(sign(sign(d="list.test"), s="s2", bits=2048), Dns(dns.records)) == SignatureFinding(
        None, "dkim_invalid"
    )
    assert await checked(sign(sign(sign(), d="list.test"), s="s2"), dns) == VALID


async def test_few_keys_are_looked_up() -> None:
    """However many signatures a mail has, and only those of domains that may speak for From."""
    raw, dns = MAIL, Dns()
    for number in range(40):
        raw = sign(raw, s=f"a{number}")
    assert (await checked(raw, dns)).domain is None
    assert len(dns.asked) == 3
    assert (await checked(sign(d="evil.test"), dns)).domain is None
    assert len(dns.asked) == 3


async def test_a_dns_that_does_not_answer_is_a_no_for_now() -> None:
    """Another try may find the key, and another signature may do already."""
    assert await checked(sign(), Dns(down=frozenset({NAME}))) == SignatureFinding(None, "dkim_lookup", temporary=True)
    both = sign(sign(), s="s2")
    assert await checked(both, Dns(down=frozenset({"s2._domainkey.good.test"}))) == VALID


async def test_a_check_can_be_cancelled() -> None:
    """While a key is looked up."""

    async def forever(name: str) -> bytes:
        started.set()
        await asyncio.Event().wait()
        return name.encode()

    started = asyncio.Event()
    task = asyncio.ensure_future(signature_check(ManualClock(), forever)(sign(), "good.test"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


RULES = ProofRules(method="dkim", own_domain="bots.test")


async def test_from_is_proved_by_its_domains_signature() -> None:
    """And by nothing else: results of whatever server don't count then."""
    check, header = signature_check(ManualClock(), Dns().lookup), MAIL.decode().replace("\r", "").split("\n\n")[0]
    proof = await prove(mail_of(header), sign(), RULES, check)
    assert (proof.address, proof.reason, proof.temporary) == ("ann@good.test", "dkim", False)
    forged = "Authentication-Results: mx.bots.test; dmarc=pass header.from=good.test\n" + header
    proof = await prove(mail_of(forged), MAIL, RULES, check)
    assert (proof.address, proof.reason, proof.authserv_ids) == (None, "no_signature", ("mx.bots.test",))


async def test_ones_own_servers_signature_proves_no_account() -> None:
    """It signs whatever its accounts hand in; unless that is trusted."""
    check, header = signature_check(ManualClock(), Dns().lookup), "From: ann@good.test\n"
    own = ProofRules(method="dkim", own_domain="good.test")
    proof = await prove(mail_of(header), sign(), own, check)
    assert (proof.address, proof.reason) == (None, "submitted")
    trusting = ProofRules(method="dkim", own_domain="good.test", trust_submitted=True)
    proof = await prove(mail_of(header), sign(), trusting, check)
    assert (proof.address, proof.reason) == ("ann@good.test", "dkim")


async def test_a_lookup_that_failed_is_told_with_the_answer() -> None:
    """So that the mail can be looked at again."""
    check = signature_check(ManualClock(), Dns(down=frozenset({NAME})).lookup)
    proof = await prove(mail_of("From: ann@good.test\n"), sign(), RULES, check)
    assert (proof.address, proof.reason, proof.temporary) == (None, "dkim_lookup", True)


async def test_without_a_check_from_counts_as_it_stands() -> None:
    """If there is exactly one sender."""
    rules, check = ProofRules(method="off", own_domain="bots.test"), signature_check(ManualClock(), Dns().lookup)
    proof = await prove(mail_of("From: ann@good.test\n"), b"", rules, check)
    assert (proof.address, proof.reason) == ("ann@good.test", "unchecked")
    proof = await prove(mail_of("From: ann@good.test, eve@evil.test\n"), b"", rules, check)
    assert (proof.address, proof.reason) == (None, "no_from")


LINES = st.lists(
    st.sampled_from(
        [b"", b" ", b"\t ", b"a", b"a  b", b" a\t", b"\r", b"a" * 40_000, b"a " * 20_000, b" " * 40_000, b"x \r"]
    ),
    max_size=8,
)


@given(LINES, st.sampled_from([b"\r\n", b"\n"]), st.sampled_from([b"simple", b"relaxed"]))
def test_a_body_is_hashed_as_the_library_does(lines: list[bytes], end: bytes, form: bytes) -> None:
    """In pieces, and all the same."""
    body = b"".join(line + end for line in lines)
    policy = CanonicalizationPolicy.from_c_value(b"simple/" + form)
    whole = policy.canonicalize_body(body.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    assert body_hash(body, relaxed=form == b"relaxed") == hashlib.sha256(whole).digest()


def test_a_body_of_blanks_takes_no_time() -> None:
    """The usual expression for blanks at the end of a line takes the square of their number: minutes for this one."""
    blanks = b" " * 2_000_000
    assert body_hash(blanks + b"x\r\n", relaxed=True) == hashlib.sha256(b" x\r\n").digest()
    assert body_hash(b"x " * 1_000_000, relaxed=True) == hashlib.sha256(b"x " * 999_999 + b"x\r\n").digest()
    assert body_hash(b"x" + blanks, relaxed=True) == hashlib.sha256(b"x\r\n").digest()
    assert body_hash(b"\r\n" * 1_000_000, relaxed=True) == hashlib.sha256(b"").digest()


UNCHANGED = sign(form="simple/simple")
"""Signed to the byte, but for the empty lines at the end."""


@settings(max_examples=60)
@given(st.integers(UNCHANGED.index(b"From:"), len(UNCHANGED) - 3), st.integers(0, 255))
async def test_no_change_of_a_signed_mail_is_proved(at: int, byte: int) -> None:
    """Of one byte, wherever it stands."""
    changed = UNCHANGED[:at] + bytes([byte]) + UNCHANGED[at + 1 :]
    assert ((await checked(changed)).domain is None) is (changed != UNCHANGED)


@settings(max_examples=50)
@given(st.binary(max_size=200), st.text(max_size=20))
async def test_no_mail_is_too_odd(raw: bytes, domain: str) -> None:
    """An answer, no exception: neither for noise nor for noise in a signature."""
    assert (await checked(raw, domain=domain)).domain is None
    assert (await checked(b"DKIM-Signature: " + raw + b"\r\n" + MAIL)).domain is None
    assert (await checked(sign(), Dns({NAME: raw}))).domain is None
    assert (await checked(sign(), Dns({NAME: b"p=" + raw}))).domain is None


def test_the_reason_is_that_of_the_signature_that_could_have_counted() -> None:
    """Of another domain's signature nothing is told if one of From's domain is at fault."""
    header = sign(sign(d="list.test"), l="1").split(b"\r\n\r\n")[0]
    assert candidates(header, "good.test", NOW) == ([], "dkim_length")
