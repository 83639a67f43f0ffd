"""Who sent it: mails with known right answers, from their headers to who may talk."""

from __future__ import annotations

from typing import Any

import pytest

from channels.email.proof.authenticity import Proof, ProofRules, prove
from channels.email.proof.dkim_check import signature_check
from tests.channels.email.headers import mail_of
from tests.channels.email.signed import MAIL, Dns, record, sign
from tests.channels.security_cases import cases, check_sender
from tests.platforms.email_house import email_house
from tests.platforms.imap_server import USER
from zerobot.testing.clock import ManualClock

ELSEWHERE = {"I073": "what is not answered, whoever wrote it, is the business of the loop guard"}
SIGNED = [case for case in cases("senders", "email") if case.get("verify_sender") == "dkim"]
CASES = [case for case in cases("senders", "email") if case["id"] not in ELSEWHERE]

AFTER = (
    "Authentication-Results: mx.good.test; dmarc=pass header.from=good.test\r\n"
    f"From: bea@good.test\r\nTo: {USER}\r\n\r\nafter it\r\n"
).encode()


def values(said: str | list[str]) -> list[str]:
    """A field's values, topmost first."""
    return [said] if isinstance(said, str) else said


def header_of(event: dict[str, Any]) -> str:
    """The header that a case tells."""
    fields = [(name, value) for name in event if name != "dkim" for value in values(event[name])]
    return "".join(f"{name}: {value}\n" for name, value in sorted(fields, key=lambda field: field[0] == "From"))


def signed(header: str, facts: dict[str, Any]) -> bytes:
    """A mail with this header and a signature as a case tells it; each domain has a key."""
    mail = header.replace("\n", "\r\n").encode() + MAIL[MAIL.index(b"To:") :]
    return sign(mail, facts["h"].split(":"), d=facts["d"])


async def proof_of(case: dict[str, Any]) -> Proof:
    """What is proved of a case."""
    event, header = case["event"], header_of(case["event"])
    dns = Dns({f"s1._domainkey.{event['dkim']['d']}": record()} if "dkim" in event else {})
    rules = ProofRules(
        method=case.get("verify_sender", "authentication-results"), own_domain="bots.test", trusted=("mx.good.test",)
    )
    raw = signed(header, event["dkim"]) if "dkim" in event else header.encode()
    return await prove(mail_of(header), raw, rules, signature_check(ManualClock(), dns.lookup))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
async def test_a_mail_counts_for_who_is_proved_to_have_written_it(case: dict[str, Any]) -> None:
    """By the receiving server's results or a signature; else for nobody."""
    address = (await proof_of(case)).address
    allowed = address is not None and {address, f"@{address.rpartition('@')[2]}"} & set(case["allowed_users"])
    assert ("accept" if allowed else "refuse") in case["accept"]
    if address is not None and "identity" in case:
        assert f"email:{address}" == case["identity"]


@pytest.mark.parametrize(
    "case", [case for case in cases("senders", "email") if case not in SIGNED], ids=lambda case: str(case["id"])
)
async def test_a_mail_in_the_mailbox_counts_for_who_is_proved_to_have_written_it(case: dict[str, Any]) -> None:
    """The same through the whole adapter, up to who may talk; those that are signed would ask the real DNS."""
    raw = f"{header_of(case['event'])}To: {USER}\nSubject: Hello\n\nhello\n".replace("\n", "\r\n").encode()
    async with email_house(trusted_authserv=["mx.good.test"]) as house, house.running() as intake:
        house.imap.deliver(raw)
        house.imap.deliver(AFTER)
        await intake.until(lambda: intake.texts[-1:] == ["after it"])
    said = intake.accepted[:-1]
    if not said and "identity" in case:
        # Who is not proved is nobody; the log has whom the mail names.
        assert dict(house.log.events)["envelope.refused"]["sender"] == case["identity"]
    check_sender(case if said else {key: case[key] for key in case if key != "identity"}, said)
