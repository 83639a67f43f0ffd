"""Flowed text, by RFC 3676."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.email.said.flowed import flowed_lines
from channels.email.said.lines import Line, written


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one \ntwo", [Line("one two")]),
        ("one\ntwo", [Line("one"), Line("two")]),
        (" From me \n > you", [Line("From me > you")]),
        ("> one \n> two \n>> three", [Line("one two ", "> "), Line("three", ">> ")]),
        ("one \n> two", [Line("one "), Line("two", "> ")]),
        ("one \n-- \nname", [Line("one "), Line("-- "), Line("name")]),
        ("> one \n> -- \n> name", [Line("one ", "> "), Line("-- ", "> "), Line("name", "> ")]),
        ("one \n", [Line("one ")]),
        (">\n>one", [Line("", "> "), Line("one", "> ")]),
    ],
)
def test_flowed_paragraphs(text: str, lines: list[Line]) -> None:
    """Lines that end with a blank go on, in a quote too; stuffed blanks go; the delimiter of signatures stays."""
    assert flowed_lines(text) == lines


def test_the_blank_of_a_broken_line_goes_where_it_is_said_so() -> None:
    """DelSp=yes, for scripts without blanks."""
    assert flowed_lines("蓝 \n色", delsp=True) == [Line("蓝色")]


@given(st.lists(st.text(alphabet="ab >", max_size=8), max_size=12).map("\n".join))
def test_no_letter_is_lost(text: str) -> None:
    """Whatever the quote marks and blanks are."""
    assert re.findall(r"\w", written(flowed_lines(text))) == re.findall(r"\w", text)
