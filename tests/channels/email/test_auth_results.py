"""`Authentication-Results` as servers write it, and what only looks like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.email.proof.auth_results import AuthResults, MethodResult, read_results


def one(text: str) -> MethodResult:
    """The only result of a field."""
    found = read_results(f"mx.bots.test; {text}")
    assert found is not None
    (result,) = found.results
    return result


@pytest.mark.parametrize(
    "text",
    [
        "mx.bots.test",
        "mx.bots.test;",
        "mx.bots.test; none",
        " MX.Bots.Test 1 ; none ",
        '"mx.bots.test" (our (own) server) 1; none (nothing)',
        "(comment with ; and \\) in it) mx.bots.test;\r\n\tnone",
    ],
)
def test_a_server_may_have_checked_nothing(text: str) -> None:
    """Its id is there all the same."""
    assert read_results(text) == AuthResults("mx.bots.test")


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("dkim=pass header.d=good.test", {"header.d": "good.test"}),
        ("DKIM = PASS (good (very) signature) Header . D = good.test", {"header.d": "good.test"}),
        ("dkim/1=pass header.d=good.test", {"header.d": "good.test"}),
        ('dkim=pass reason="all is; well" header.d=good.test', {"reason": "all is; well", "header.d": "good.test"}),
        ('dkim=pass header.b="aB/c+D=="', {"header.b": "aB/c+D=="}),
        ("dkim=pass header.b=aB/c+D==", {"header.b": "aB/c+D=="}),
        ("dkim=pass header.i=@good.test x-bits=2048", {"header.i": "@good.test", "x-bits": "2048"}),
        ('dkim=pass header.i="a b"@good.test', {"header.i": "a b@good.test"}),
        ('dkim=pass header.i="a\\"b"@good.test', {"header.i": 'a"b@good.test'}),
        ("dkim=pass(p=REJECT) header.d=good.test;", {"header.d": "good.test"}),
        ("dkim=pass policy.published-domain-policy=none", {"policy.published-domain-policy": "none"}),
        ("dkim=pass\r\n\theader.d=good.test\r\n", {"header.d": "good.test"}),
    ],
)
def test_results_are_read_as_servers_write_them(text: str, properties: dict[str, str]) -> None:
    """Folded, with comments, quotes, versions, and more than the grammar has."""
    assert one(text) == MethodResult("dkim", "pass", tuple(properties.items()))


def test_a_method_may_come_several_times() -> None:
    """There is one result of `dkim` for each signature."""
    found = read_results("mx; dkim=fail header.d=a.test; spf=pass smtp.mailfrom=a.test; dkim=pass header.d=b.test")
    assert found is not None
    assert [(each.result, each.about("header.d")) for each in found.of("dkim")] == [
        ("fail", "a.test"),
        ("pass", "b.test"),
    ]


def test_a_property_that_contradicts_itself_says_nothing() -> None:
    """Said twice in the same words, it is said."""
    assert one("dkim=pass header.d=a.test header.d=b.test").about("header.d") is None
    assert one("dkim=pass header.d=a.test header.d=a.test").about("header.d") == "a.test"


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "; dmarc=pass",
        "spf=pass smtp.mailfrom=good.test; dmarc=pass header.from=good.test",
        "mx.bots.test dmarc=pass",
        "mx.bots.test 2; dmarc=pass",
        "mx.bots.test; dmarc/2=pass",
        "mx.bots.test; dmarc",
        "mx.bots.test; dmarc=",
        "mx.bots.test; =pass",
        "mx.bots.test;; dmarc=pass",
        "mx.bots.test; none; dmarc=pass",
        "mx.bots.test; dmarc=pass; none",
        "mx.bots.test; dmarc=pass header.from",
        "mx.bots.test; dmarc=pass header.=good.test",
        "mx.bots.test; dmarc=pass (never closed",
        "mx.bots.test; dmarc=pass ) header.from=good.test",
        'mx.bots.test; dmarc=pass reason="never closed',
        "mx.bots.test; dmarc=pass (ends with a backslash\\",
        "mx.bots.test; " + "(" * 10_000,
        "mx.bots.test; dmarc=pass " + " " * 20_000,
    ],
)
def test_what_cannot_be_read_is_nothing(text: str) -> None:
    """Not even the part before the fault."""
    assert read_results(text) is None


def test_a_chain_numbers_its_results() -> None:
    """The number comes before the id, and only there."""
    assert read_results("i=1; mx.bots.test; none", chained=True) == AuthResults("mx.bots.test")
    assert read_results("mx.bots.test; none", chained=True) is None
    assert read_results("i=1; mx.bots.test; none") is None


WORD = st.from_regex(r"[a-z][a-z0-9-]{0,8}[a-z0-9]", fullmatch=True)
VALUE = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=20)
COMMENT = st.text(st.sampled_from("ab ;=."), max_size=6).map(lambda text: f" ({text}) ")


@given(WORD, WORD, st.lists(st.tuples(WORD, WORD, VALUE), max_size=4), COMMENT)
def test_what_is_written_by_the_grammar_is_read(
    method: str, result: str, properties: list[tuple[str, str, str]], comment: str
) -> None:
    """With quoted values of any characters, and comments wherever blanks may stand."""
    quoted = [
        (f"{kind}.{name}", value, '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"')
        for kind, name, value in properties
    ]
    text = comment.join([f"mx;{method}={result}", *(f"{name}={value}" for name, _, value in quoted)])
    found = read_results(text)
    assert found == AuthResults(
        "mx", (MethodResult(method, result, tuple((name, value) for name, value, _ in quoted)),)
    )


@given(st.text(st.sampled_from('mx.;=()"\\ 1a/\t\n'), max_size=60) | st.text())
def test_no_field_is_too_odd(text: str) -> None:
    """An answer or none, no exception."""
    found = read_results(text)
    assert found is None or found.authserv_id
