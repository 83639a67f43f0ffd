"""Who wrote a mail, by what the receiving server found: the layouts of real servers, and forged ones."""

from __future__ import annotations

import re
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.email.mail import Mail
from channels.email.proof.authenticity import ProofRules, prove_by_results
from tests.channels.email import layouts
from tests.channels.email.headers import mail_of

RULES = ProofRules(method="authentication-results", own_domain="bots.test", trusted=("mx.bots.test",))
FORGED = "Authentication-Results: mx.bots.test; dmarc=pass header.from=good.test; dkim=pass header.d=good.test\n"
CASE = Path(__file__).parents[2] / "cases" / "eml" / "f33-xfrom-forged-ar.eml"
FASTMAIL_RELAYS = (ip_network("10.202.0.0/16"), ip_network("127.0.0.0/8"))
BORDER = layouts.POSTFIX[layouts.POSTFIX.index("Received: from mail.good.test") :]


def told(header: str, *trusted: str, relays: tuple[str, ...] = ()) -> tuple[str | None, str]:
    """Who is proved by a header, and the reason."""
    rules = replace(RULES, trusted=trusted or RULES.trusted, relays=tuple(map(ip_network, relays)))
    return told_of(mail_of(header), rules)


def told_of(mail: Mail, rules: ProofRules) -> tuple[str | None, str]:
    """Who is proved by a mail, and the reason."""
    proof = prove_by_results(mail, rules)
    return proof.address, proof.reason


def results(text: str, header: str = layouts.MAIL) -> str:
    """A mail with these results of our server, directly above its Received."""
    return f"Authentication-Results: mx.bots.test; {text}\n{BORDER}{header}"


@pytest.mark.parametrize(
    ("layout", "trusted", "relays"),
    [
        pytest.param(layouts.POSTFIX, "mx.bots.test", (), id="postfix"),
        pytest.param(layouts.DOVECOT, "mx.bots.test", (), id="dovecot"),
        pytest.param(layouts.GMAIL, "mx.google.com", (), id="gmail"),
        pytest.param(layouts.FASTMAIL, "mx2.messagingengine.com", ("10.202.0.0/16", "127.0.0.1"), id="fastmail"),
        pytest.param(layouts.FASTMAIL, "*.messagingengine.com", ("10.202.0.0/16", "127.0.0.1"), id="fastmail, any"),
        pytest.param(layouts.YAHOO, "*.yahoo.com", (), id="yahoo"),
        pytest.param(layouts.EXIM, "MX.Bots.Test", (), id="exim"),
    ],
)
def test_the_results_of_ones_own_server_prove_from(layout: str, trusted: str, relays: tuple[str, ...]) -> None:
    """Wherever servers put them above what a mail brought along."""
    assert told(layout + layouts.MAIL, trusted, relays=relays) == ("ann@good.test", "dmarc")


@pytest.mark.parametrize(
    ("layout", "trusted", "reason"),
    [
        pytest.param(layouts.FASTMAIL, "mx2.messagingengine.com", "below_border", id="fastmail without its relays"),
        pytest.param(layouts.EXCHANGE, "protection.outlook.com", "no_results", id="exchange has no id"),
        pytest.param(layouts.FETCHED, "mx.other.test", "below_border", id="fetched from another mailbox"),
        pytest.param(layouts.ICLOUD, "dmarc.icloud.com", "below_border", id="icloud without an address to trust"),
        pytest.param(layouts.POSTFIX, "mx.other.test", "untrusted", id="another id"),
        pytest.param(layouts.POSTFIX, "bots.test", "untrusted", id="the domain of an id"),
        pytest.param(layouts.POSTFIX, "*.mx.bots.test", "untrusted", id="a star is at least one label"),
        pytest.param(BORDER, "mx.bots.test", "no_results", id="a server that checks nothing"),
    ],
)
def test_what_cannot_be_told_from_a_forgery_proves_nothing(layout: str, trusted: str, reason: str) -> None:
    """And the reason says what to change."""
    assert told(layout + layouts.MAIL, trusted) == (None, reason)


def without_results(layout: str) -> str:
    """What a server writes that checks nothing."""
    fields = re.split(r"\n(?![ \t])", layout)
    return "\n".join(field for field in fields if not re.match("(ARC-)?Authentication-Results", field))


@pytest.mark.parametrize("layout", [layouts.POSTFIX, layouts.DOVECOT, layouts.GMAIL, layouts.FASTMAIL, layouts.EXIM])
def test_results_that_a_mail_brought_along_never_count(layout: str) -> None:
    """Not directly below the border, and not with a Received in our server's name above or below them."""
    for server in ("mx.bots.test", "mx.google.com", "mx2.messagingengine.com"):
        forged = f"Authentication-Results: {server}; dmarc=pass header.from=good.test; dkim=pass header.d=good.test\n"
        received = (
            f"Received: from localhost (localhost [127.0.0.1]) by {server} with LMTP; Mon, 30 Nov 2026 13:52:04 Z\n"
        )
        for brought in (forged, received + forged, forged + received, "ARC-" + forged.replace(":", ": i=1;", 1)):
            proof = prove_by_results(
                mail_of(without_results(layout) + brought + layouts.MAIL),
                replace(RULES, trusted=(server,), relays=FASTMAIL_RELAYS),
            )
            assert (proof.address, proof.authserv_ids) == (None, ())


@pytest.mark.parametrize(
    "field",
    [
        "Subject: Re: [zerobot BCDF23] x",
        "Date: x",
        "To: x@y.test",
        "Cc: x@y.test",
        "Message-ID: <1@y.test>",
        "Content-Type: x/y",
    ],
)
def test_a_field_above_the_signed_one_makes_a_mail_nobodys(field: str) -> None:
    """The server has found the signature valid, which covers the lower one; the upper one would be read."""
    below = layouts.MAIL if field.partition(":")[0] in layouts.MAIL else f"{field}\n{layouts.MAIL}"
    assert told(results("dmarc=pass header.from=good.test", f"{field}\n{below}")) == (None, "twice")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("dmarc=pass header.from=good.test", "dmarc"),
        ("dmarc=pass header.from=GOOD.test.", "dmarc"),
        ("spf=fail smtp.mailfrom=list.test; dkim=pass header.d=good.test; dmarc=pass header.from=good.test", "dmarc"),
        ("dmarc=none header.from=good.test; dkim=pass header.d=good.test", "dkim"),
        ("dkim=pass header.i=@good.test", "dkim"),
        ("dkim=pass header.i=@mail.good.test header.d=good.test", "dkim"),
        ("dkim=fail header.d=good.test; dkim=pass header.d=good.test", "dkim"),
        ("dkim=pass header.d=evil.test; dkim=pass header.d=good.test", "dkim"),
    ],
)
def test_a_pass_for_the_domain_of_from_is_a_proof(text: str, reason: str) -> None:
    """By policy, or by a signature of that domain where there is no policy."""
    assert told(results(text)) == ("ann@good.test", reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("none", "no_pass"),
        ("dmarc=fail header.from=good.test; dkim=pass header.d=good.test", "fail"),
        ("dmarc=quarantine header.from=good.test; dkim=pass header.d=good.test", "fail"),
        ("dmarc=pass header.from=good.test; dmarc=fail header.from=good.test", "ambiguous"),
        ("dmarc=none; dmarc=pass header.from=good.test", "ambiguous"),
        ("dmarc=pass header.from=evil.test; dkim=pass header.d=good.test", "not_aligned"),
        ("dmarc=pass header.from=mail.good.test; dkim=pass header.d=good.test", "not_aligned"),
        ("dmarc=pass header.from=evil.test header.from=good.test", "no_pass"),
        ("dmarc=pass", "no_pass"),
        ("dkim=pass header.d=evil.test", "not_aligned"),
        ("dkim=pass header.d=mail.good.test", "not_aligned"),
        ("dkim=pass header.d=test", "not_aligned"),
        ("dkim=pass header.d=evilgood.test", "not_aligned"),
        ("dkim=pass header.d=evil.test header.i=@good.test", "not_aligned"),
        ("dkim=pass header.d=evil.test header.d=good.test", "not_aligned"),
        ("dkim=pass", "not_aligned"),
        ("dkim=neutral header.d=good.test", "no_pass"),
        ("dkim=policy header.d=good.test", "no_pass"),
        ("arc=pass header.d=good.test", "no_pass"),
        ("spf=pass smtp.mailfrom=good.test", "spf_only"),
        ("spf=pass smtp.mailfrom=evil.test", "no_pass"),
        ("x-dmarc=pass header.from=good.test", "no_pass"),
        ("dmarc=pass (header.from=good.test)", "no_pass"),
        ('spf=none smtp.mailfrom="a; dmarc=pass header.from=good.test"@evil.test', "no_pass"),
        ("dmarc=pass header.from=good.test; dkim=(", "no_results"),
    ],
)
def test_anything_else_is_a_no(text: str, reason: str) -> None:
    """What passes for somebody else, what is unclear, and what can't be read."""
    reason = "unreadable" if reason == "no_results" else reason
    assert told(results(text)) == (None, reason)


def test_a_signature_of_the_domain_above_speaks_for_from() -> None:
    """But never one of a single label, nor that of a domain below it."""
    header = "From: Ann <ann@team.good.test>\n"
    assert told(results("dkim=pass header.d=good.test", header)) == ("ann@team.good.test", "dkim")
    assert told(results("dmarc=pass header.from=good.test; dkim=pass header.i=@team.good.test", header))[1] == "dkim"
    assert told(results("dmarc=pass header.from=good.test", header)) == (None, "no_pass")
    assert told(results("dkim=pass header.d=x.team.good.test", header)) == (None, "not_aligned")


def test_servers_of_ours_that_disagree_prove_nothing() -> None:
    """A no of one is a no, whatever the others say, in any order."""
    fails, passes = "mx.bots.test; dmarc=fail header.from=good.test", "mx2.bots.test; dmarc=pass header.from=good.test"
    broken, signed = "mx.bots.test; dkim=fail header.d=good.test", "mx2.bots.test; dkim=pass header.d=good.test"
    for one, other, reason in ((fails, passes, "fail"), (broken, signed, "disagreement")):
        for first, second in ((one, other), (other, one)):
            header = f"Authentication-Results: {first}\nAuthentication-Results: {second}\n{BORDER}{layouts.MAIL}"
            assert told(header, "mx.bots.test", "mx2.bots.test") == (None, reason)


def test_one_sender_by_the_grammar_or_none() -> None:
    """Whatever the server has found."""
    mail = replace(mail_of(layouts.POSTFIX + layouts.MAIL), sender=None)
    assert (prove_by_results(mail, RULES).address, prove_by_results(mail, RULES).reason) == (None, "no_from")


def test_a_header_without_received_is_judged_by_its_topmost_results() -> None:
    """Nobody but who may write into the mailbox brings such a mail; and below our results may stand forged ones."""
    ours = "Authentication-Results: mx.bots.test; dmarc=none header.from=good.test\n"
    assert told(FORGED + layouts.MAIL) == ("ann@good.test", "dmarc")
    assert told(ours + FORGED + layouts.MAIL) == (None, "not_aligned")
    assert told(ours + FORGED.partition("; dkim")[0] + "\n" + layouts.MAIL) == (None, "no_pass")
    assert told(FORGED + ours.replace("none", "fail") + layouts.MAIL) == (None, "fail")


@pytest.mark.parametrize(
    ("received", "is_border"),
    [
        ("from a (a [10.1.2.3]) by b with ESMTP id 1 for <c@d.test>; Mon", False),
        ("from a ([10.1.2.3]) by b with ESMTPS; Mon", False),
        ("from a (a [IPv6:fd00::5]) by b with ESMTPS; Mon", False),
        ("from a (a [203.0.113.9]) by b with LMTPS; Mon", False),
        ("by 2002:a05::1 with SMTP id 1; Mon", False),
        ("by mx.bots.test (Postfix) id 1; Mon", False),
        ("from a (a [203.0.113.9]) by b with ESMTP; Mon", True),
        ("from a (a [10.1.2.3]) by b with ESMTPSA; Mon", True),
        ("from a (a [10.1.2.3]) (Authenticated sender: eve) by b with ESMTP; Mon", True),
        ("from a (a [127.0.0.1]) by b with ESMTP; Mon", True),
        ("from [10.1.2.3] (evil [203.0.113.9]) by b with ESMTP; Mon", True),
        ("from a (a [10.1.2.3]) (evil [203.0.113.9]) by b with ESMTP; Mon", True),
        ("from a (evil [203.0.113.9] (a [10.1.2.3])) by b with ESMTP; Mon", True),
        ("from a (a [10.1.2.999]) by b with ESMTP; Mon", True),
        ("from a by b with ESMTP; Mon", True),
        ("from a (a [10.1.2.3]) with ESMTP; Mon", True),
        ("from a (a [10.1.2.3]) by b with HTTP; Mon", True),
        ("from a (a [10.1.2.3]) by b with ESMTP with LMTP; Mon", True),
        ("from a (a [10.1.2.3] by b with ESMTP; Mon", True),
        ('from a (a [10.1.2.3]) by b with ESMTP for <"x; Mon', True),
        ("by mx.bots.test (Postfix, from userid 1000) id 1; Mon", True),
        ("(from eve@localhost) by mx.bots.test (8.15.2/8.15.2/Submit) id 1; Mon", True),
        ("(qmail 123 invoked from network); Mon", True),
        ("from eve by mx.bots.test with local (Exim 4.96) id 1; Mon", True),
        ("by mx.bots.test with HTTP; Mon", True),
        ("", True),
        ("by mx.bots.test " + "(" * 9000, True),
    ],
)
def test_the_border_is_where_a_mail_came_from_somebody_else(received: str, *, is_border: bool) -> None:
    """Everything that does not surely come from one of our own servers is the border; results below it don't count."""
    header = f"Received: {received}\n{FORGED}{BORDER}{layouts.MAIL}"
    address, _ = told(header, relays=("10.0.0.0/8", "fd00::/8"))
    assert (address is None) is is_border


@pytest.mark.parametrize(
    ("account", "results", "reason"),
    [
        ("", "", "account"),
        ("(Authenticated sender: ann@bots.test)\n\t", "", "account"),
        ("(Authenticated sender: Ann)\n\t", "", "account"),
        ("(Authenticated sender: eve@bots.test)\n\t", "", "other_account"),
        ("(Authenticated sender: ann@other.test)\n\t", "", "other_account"),
        ("", "auth=pass smtp.auth=ann@bots.test", "account"),
        ("", "auth=pass smtp.auth=eve@bots.test", "other_account"),
        ("", "dmarc=fail header.from=bots.test", "fail"),
        ("", "dmarc=pass header.from=bots.test", "account"),
    ],
)
def test_mail_that_an_account_handed_in_counts_only_where_configured(account: str, results: str, reason: str) -> None:
    """The server signs it whoever wrote it; where the server tells the account, it must be the one of From."""
    header = layouts.SUBMITTED.replace("ACCOUNT", account)
    if results:
        header = header.replace(
            "Received: from [", f"Authentication-Results: mx.bots.test; {results}\nReceived: from [", 1
        )
    mail = mail_of(header)
    assert prove_by_results(mail, RULES).reason == "submitted"
    proof = prove_by_results(mail, replace(RULES, trust_submitted=True))
    assert (proof.address, proof.reason) == ("ann@bots.test" if reason == "account" else None, reason)


@pytest.mark.parametrize("found", ["dmarc=pass header.from=bots.test", "dkim=pass header.d=bots.test"])
def test_ones_own_domain_is_proved_like_any_other_where_the_mail_came_from_outside(found: str) -> None:
    """The bot and its people are often of one domain; what an account hands in at the same server is another matter."""
    mail = mail_of(results(found, layouts.MAIL.replace("ann@good.test", "ann@bots.test")))
    assert told_of(mail, RULES)[0] == "ann@bots.test"


def test_trust_in_accounts_reaches_no_further_than_ones_own_domain_and_server() -> None:
    """A name of another domain stays unproved, and so does what another server's accounts hand in."""
    rules = replace(RULES, trust_submitted=True)
    header = layouts.SUBMITTED.replace("ACCOUNT", "")
    other = mail_of(header.replace("From: ann@bots.test", "From: ann@good.test"))
    assert prove_by_results(other, rules).reason == "not_aligned"
    strange = mail_of(header.replace("by mx.bots.test (Postfix) with ESMTPSA", "by mx.evil.test with ESMTPSA"))
    assert prove_by_results(strange, rules).reason == "untrusted"
    deep = mail_of(BORDER + header)
    assert prove_by_results(deep, rules).address is None
    user = mail_of(
        header.replace("from [192.168.1.5] (unknown [192.168.1.5])", "").replace("(using", "(from userid 7, using")
    )
    assert (prove_by_results(user, RULES).reason, prove_by_results(user, rules).reason) == ("submitted", "submitted")


def test_the_ids_of_our_own_servers_are_told() -> None:
    """For whoever configures the channel: never those that a mail brought along."""
    forged = "Authentication-Results: evil.test; dmarc=pass header.from=good.test\n"
    proof = prove_by_results(mail_of(layouts.POSTFIX + forged + layouts.MAIL), replace(RULES, trusted=("other.test",)))
    assert proof.authserv_ids == ("mx.bots.test",)
    assert proof.border is not None
    assert str(proof.border.peer) == "203.0.113.9"


TEXT = st.text(st.sampled_from('ab;="()\\<>@. \t1/'), max_size=40)
PIECES = (
    *(
        "mx.bots.test",
        "evil.test",
        ";",
        "dmarc=pass",
        "dmarc=fail",
        "dkim=pass",
        "spf=fail",
        "none",
        "1",
        "i=1;",
        '"',
        "(",
    ),
    *("header.from=good.test", "header.d=good.test", ")", "\\", "from", "by", "with", "LMTP", "(a [10.1.2.3])", "b"),
)
WORDS = st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join)
FIELDS = st.lists(
    st.tuples(
        st.sampled_from(["authentication-results", "arc-authentication-results", "received", "from", "x-other"]),
        TEXT | WORDS | st.text(max_size=20),
    ),
    max_size=8,
)
SENDER = mail_of(layouts.MAIL).sender


@given(FIELDS)
def test_no_header_is_too_odd(fields: list[tuple[str, str]]) -> None:
    """Whatever stands there: an answer, no exception."""
    mail = Mail(fields=tuple(fields), sender=SENDER)
    assert prove_by_results(mail, RULES).reason
    assert prove_by_results(mail, replace(RULES, trust_submitted=True)).reason


@given(FIELDS, FIELDS, st.sampled_from([BORDER, layouts.POSTFIX, layouts.DOVECOT, layouts.GMAIL, layouts.EXCHANGE]))
def test_nothing_below_the_border_changes_the_answer(
    above: list[tuple[str, str]], below: list[tuple[str, str]], layout: str
) -> None:
    """What a mail brings along turns no no into a yes, and no yes into another one."""
    rules = replace(RULES, trusted=("mx.bots.test", "mx.google.com"), trust_submitted=True)
    ours = (*above, *mail_of(layout).fields)
    alone = prove_by_results(Mail(fields=ours, sender=SENDER), rules)
    proof = prove_by_results(Mail(fields=(*ours, *below), sender=SENDER), rules)
    assert (proof.address, proof.authserv_ids) == (alone.address, alone.authserv_ids)


OWN = st.sampled_from(
    (
        *("dmarc=pass header.from=good.test", "dmarc=fail header.from=good.test", "dmarc=none header.from=good.test"),
        *("dkim=pass header.d=good.test", "dkim=fail header.d=good.test", "spf=pass smtp.mailfrom=good.test"),
    )
)
OTHERS = st.sampled_from(
    (
        *("dmarc=pass header.from=evil.test", "dkim=pass header.d=evil.test", "spf=pass smtp.mailfrom=evil.test"),
        *("dkim=pass header.d=x.good.test", "dkim=pass header.i=@evil.test", "arc=pass header.d=good.test"),
    )
)


@given(st.lists(OWN, max_size=4), OTHERS, st.sampled_from(["its own field", "the same"]))
def test_a_pass_of_another_domain_never_helps(found: list[str], other: str, place: str) -> None:
    """Beside whatever was found for From's own domain."""
    texts = ["; ".join(["mx.bots.test", *found])]
    texts = [*texts, f"mx.bots.test; {other}"] if place == "its own field" else [f"{texts[0]}; {other}"]
    plain = told(f"Authentication-Results: mx.bots.test; {'; '.join(found) or 'none'}\n{BORDER}{layouts.MAIL}")
    more = told("".join(f"Authentication-Results: {text}\n" for text in texts) + BORDER + layouts.MAIL)
    assert plain[0] is not None or more[0] is None


def test_a_forged_field_of_the_cases_proves_nothing() -> None:
    """The results that the mail brought along are of nobody whom we trust."""
    header = CASE.read_text(encoding="utf-8").split("\n\n")[0]
    assert told(header, "mx.example.test", "mx.bots.test") == (None, "untrusted")
