"""The sender by the grammar and nothing else; recipients as far as they can be read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from channels.email.mail import Mailbox
from channels.email.reading.addresses import MOST_MAILBOXES, mailboxes, one_mailbox

WORDS = st.text("abcXYZ09!#$%&'*+-/=?^_`{|}~äЖ", min_size=1, max_size=8)
LOCALS = st.lists(st.text("abcxyz09!#$%&'*+-/=?^_`{|}~ж", min_size=1, max_size=8), min_size=1, max_size=3).map(".".join)
DOMAINS = st.lists(st.from_regex(r"[a-z](?:[a-z0-9-]{0,5}[a-z0-9])?", fullmatch=True), min_size=1, max_size=3).map(
    ".".join
)
BLANKS = st.sampled_from(["", " ", "\t", "(note)", " (a (nested) \\) one) "])
TRICKS = st.text('ab.@<>()"\\,;: \t[]', max_size=30)


@given(LOCALS, DOMAINS, st.lists(WORDS, max_size=3), BLANKS, BLANKS, st.sampled_from(["", '"']))
def test_a_mailbox_by_the_grammar_is_read(
    local: str, domain: str, words: list[str], before: str, behind: str, quote: str
) -> None:
    """With a name of words or in quotes, with comments and blanks where they may stand, whatever the case."""
    name = " ".join(words)
    text = f"{before}{quote}{name}{quote} <{before}{local}@{domain.upper()}{behind}>{behind}"
    box = one_mailbox([text])
    assert box is not None
    assert box.address == f"{local}@{domain}"


@given(TRICKS, TRICKS)
def test_a_sender_is_never_one_of_two(first: str, second: str) -> None:
    """What stands beside another address, with whatever between them, is nobody; two fields are nobody."""
    assert (
        one_mailbox([f"alice@example.test{first},{second}<mallory@evil.test>"]) is None or "(" in first or '"' in first
    )
    assert one_mailbox(["alice@example.test", first]) is None


@given(TRICKS)
def test_a_sender_has_the_form_of_an_address(text: str) -> None:
    """No tricks of quotes, brackets and comments give an address that is none."""
    box = one_mailbox([text])
    if box is not None:
        local, _, domain = box.address.rpartition("@")
        assert local
        assert domain
        assert not set(domain) & set('<>()",;: \t\\@')
        assert local.startswith('"') or not set(local) & set('<>()",;: \t\\@')


@given(TRICKS)
def test_words_before_the_brackets_are_never_the_address(name: str) -> None:
    """Only what stands in the brackets at the end is."""
    box = one_mailbox([f"{name} <mallory@evil.test>"])
    assert box is None or box.address == "mallory@evil.test"


@given(st.text(max_size=200))
def test_no_field_raises(text: str) -> None:
    """Whatever stands in it."""
    one_mailbox([text])
    mailboxes([text])


def test_a_list_is_read_as_far_as_it_goes() -> None:
    """Each address once, and a bound on how many."""
    assert mailboxes(['"A, B" <A@x.test>, a@X.test, junk, Müller, Jan <jan@x.test>']) == (
        Mailbox("A, B", "a@x.test"),
        Mailbox("Jan", "jan@x.test"),
    )
    assert len(mailboxes([", ".join(f"a{number}@x.test" for number in range(900))])) == MOST_MAILBOXES
