"""What a mail says, apart from what it quotes."""

from __future__ import annotations

import email
import json
import re
from collections import Counter
from collections.abc import Sequence
from email import policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.email.mail import Body
from channels.email.reading.unseen import readable
from channels.email.said.words import spoken
from tests.channels.email.quote_cases import QuoteCase, quote_cases

EML = Path(__file__).parents[2] / "cases" / "eml"
SHARED = sorted(path.stem for path in EML.glob("*.json") if re.match(r"c-|d\d|b01|b03|b19|h15|h19|h23", path.stem))


def read(name: str) -> tuple[Body, str]:
    """The text part of a mail, and its subject."""
    message = email.message_from_bytes((EML / f"{name}.eml").read_bytes(), policy=policy.default)
    assert isinstance(message, EmailMessage)
    part = message.get_body(("plain", "html"))
    assert part is not None
    payload = part.get_payload(decode=True)
    assert isinstance(payload, bytes)
    return Body(text=payload.decode(), html=part.get_content_type() == "text/html"), str(message["subject"])


def plain(text: str) -> str:
    """Blanks at the ends of lines do not matter."""
    return "\n".join(line.rstrip() for line in text.split("\n")).strip()


def words(text: str) -> list[str]:
    """The words and their order."""
    return re.findall(r"\w+", text)


def says(want: dict[str, Any], text: str) -> None:
    """Compare what a case wants with what was read."""
    flat = " ".join(text.split())
    if "text" in want:
        assert plain(text) == plain(want["text"])
    if "nice_text" in want:
        assert plain(text) == plain(want["nice_text"])
    if "words" in want:
        assert words(text) == words(want["words"])
    assert [part for part in want.get("contains", ()) if " ".join(part.split()) not in flat] == []
    assert [part for part in want.get("excludes", ()) if part in text] == []


@pytest.mark.parametrize("name", SHARED)
def test_what_is_new_in_a_mail(name: str) -> None:
    """The cases of `tests/cases/eml` that are about what is said."""
    body, subject = read(name)
    says(json.loads((EML / f"{name}.json").read_text(encoding="utf-8")), spoken([body], subject=subject).new)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in quote_cases()])
def test_what_is_new_as_clients_write_it(case: QuoteCase) -> None:
    """Each client in each language, and the shapes of answers."""
    assert spoken([case.body], subject=case.subject).new == case.new


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in quote_cases() if not case.body.delsp])
def test_no_word_is_lost_and_nothing_is_taken_twice(case: QuoteCase) -> None:
    """What is removed is at hand, and what is new is new when it is read again."""
    said = spoken([case.body], subject=case.subject)
    if not case.body.html:
        assert Counter(words(case.body.text)) == Counter(words(said.new)) + Counter(words(said.removed))
    again = spoken([Body(text=said.new)], subject=case.subject)
    assert again.new == said.new


def test_several_parts_are_read_in_their_order() -> None:
    """Some clients put a text part before a picture and one after it."""
    said = spoken([Body(text="One.\n"), Body(text="<p>Two.</p>", html=True), Body(text="Three.")])
    assert said.new == "One.\n\nTwo.\n\nThree."


def test_a_mail_without_text_says_nothing() -> None:
    """No part, or blanks alone, are an empty text."""
    assert spoken([]).new == ""
    assert spoken([Body(text=" \r\n\r\n")]).new == ""


def test_what_was_quoted_is_at_hand() -> None:
    """The removed part has the quote and the signature."""
    said = spoken([Body(text="Blue.\n\nOn 3/2/26 10:00, Bot wrote:\n> Which colour?\n\n-- \nAlice\n")])
    assert said.removed == "On 3/2/26 10:00, Bot wrote:\n> Which colour?\n\n--\nAlice"


PIECES = st.sampled_from(
    [
        "Blue, please.",
        "",
        "> quoted",
        ">> deeper",
        "> ",
        "-- ",
        "--",
        "Alice Aster",
        "Sent from my iPhone",
        "On Mon, Mar 2, 2026 at 10:00 AM Bot <bot@example.test> wrote:",
        "> Am 02.03.26 um 10:00 schrieb Bot:",
        "Bot <bot@example.test>",
        "wrote:",
        "From: Bot <bot@example.test>",
        "Sent: Monday, March 2, 2026 10:00 AM",
        "To: Alice",
        "Subject: Question",
        "________________________________",
        "-----Original Message-----",
        "---------- Forwarded message ---------",
        "Begin forwarded message:",
        ">From here",
        "On Mon,",
        "  ",
        "\xa0",
    ]
)
MAILS = st.lists(PIECES | st.text(max_size=20), max_size=25).map("\n".join)
SUBJECTS = st.sampled_from(["Re: Question", "Fwd: Question"])


@given(MAILS, SUBJECTS)
def test_every_word_is_either_new_or_removed(text: str, subject: str) -> None:
    """Whatever is taken for a quote, no word goes."""
    said = spoken([Body(text=text)], subject=subject)
    assert Counter(words(said.new)) + Counter(words(said.removed)) == Counter(words(readable(text)))
    assert len(said.new) + len(said.removed) <= 2 * len(text)


@given(MAILS, SUBJECTS)
def test_every_letter_of_flowed_text_is_either_new_or_removed(text: str, subject: str) -> None:
    """Lines are joined, so words may be."""
    said = spoken([Body(text=text, flowed=True)], subject=subject)
    assert Counter("".join(words(said.new + said.removed))) == Counter("".join(words(readable(text))))


@given(MAILS, SUBJECTS)
def test_what_is_new_stays_new(text: str, subject: str) -> None:
    """Reading the new text again removes nothing of it."""
    new = spoken([Body(text=text)], subject=subject).new
    assert spoken([Body(text=new)], subject=subject).new == new


@given(st.lists(st.text(alphabet="abc dé.,!?()äß中文0123456789/@", max_size=40), max_size=12))
def test_a_text_without_any_mark_of_a_quote_is_kept_whole(lines: Sequence[str]) -> None:
    """Words alone are never taken for a quote."""
    text = "\n".join(lines)
    said = spoken([Body(text=text)])
    assert said.new.split() == text.split()
    assert said.removed == ""


@given(
    st.lists(
        st.text(max_size=30) | st.sampled_from(["<p>", "</p>", "<blockquote>", "<table><tr><td>", "<!--", "'", '"']),
        max_size=30,
    )
)
def test_html_of_any_kind_is_read(parts: Sequence[str]) -> None:
    """Never an exception, never unbounded."""
    said = spoken([Body(text="".join(parts), html=True)])
    assert len(said.new) + len(said.removed) <= 50 * (1 + sum(map(len, parts)))


MANY = 50_000


@pytest.mark.parametrize(
    "text",
    [
        "Blue.\n\nBot <bot@example.test> wrote:\n" + "> quoted line\n" * MANY,
        "Blue.\n" + "> quoted\nanswer\n" * MANY,
        "Blue.\n" + "From: a@example.test\n" * MANY,
        "Blue.\n" + "something:\n" * MANY,
        "Blue.\n" + "-- \n" * MANY,
        "Blue.\n" + "-" * 5_000_000,
        "word " * 1_000_000,
        ">" * 5_000_000,
        "\n" * 1_000_000,
    ],
    ids=["quote", "answers", "fields", "colons", "delimiters", "dashes", "one line", "marks", "empty lines"],
)
def test_a_huge_mail_is_read(text: str) -> None:
    """Work that grows with the square of the text would run into the time limit of the tests."""
    said = spoken([Body(text=text)])
    assert Counter(words(text)) == Counter(words(said.new)) + Counter(words(said.removed))
