"""Cutting long texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels._text.cut import cut
from channels._text.measure import utf16_len
from tests.channels.text.strategies import markdown

limits = st.integers(min_value=1, max_value=60)


@given(markdown, limits)
def test_pieces_put_together_are_the_text(text: str, limit: int) -> None:
    """Nothing is lost, doubled or moved, and no piece is empty."""
    pieces = cut(text, limit)
    assert "".join(pieces) == text
    assert all(pieces)


@given(markdown, limits)
def test_no_piece_is_longer_than_the_limit(text: str, limit: int) -> None:
    """Only a single character that is longer than the limit itself exceeds it."""
    assert all(utf16_len(piece) <= limit or len(piece) == 1 for piece in cut(text, limit, utf16_len))


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("one two three.\n\nfour five six", "one two three.\n\n"),
        ("one two three\nfour five six", "one two three\n"),
        ("one two three. Four five six", "one two three. "),
        ("one two three four five six", "one two three four "),
        ("a" * 30, "a" * 20),
    ],
)
def test_the_best_place_in_reach_is_taken(text: str, first: str) -> None:
    """A paragraph before a line before a sentence before a word before a character."""
    assert cut(text, 20)[0] == first


def test_a_cut_avoids_what_is_to_be_kept_whole() -> None:
    """A place before the kept range is better than a line in it."""
    text = "some words\nCODE\nCODE\nCODE"
    assert cut(text, 18, keep=[(11, len(text))])[0] == "some words\n"


def test_code_that_must_be_cut_is_cut_before_a_line_that_is_not_indented() -> None:
    """The next piece begins with a statement, not in the middle of one."""
    text = "def a():\n    one\n    two\ndef b():\n    one\n    two\n"
    assert cut(text, 45, keep=[(0, len(text))])[0] == "def a():\n    one\n    two\n"


def test_a_joined_emoji_is_not_taken_apart() -> None:
    """Each piece holds whole emoji as long as one fits."""
    family = "👩‍👩‍👧‍👦"
    pieces = cut(family * 9, 30, utf16_len)
    assert all(piece.replace(family, "") == "" for piece in pieces)


def test_a_character_reference_is_not_taken_apart() -> None:
    """Escaped text stays escaped at the end of a piece."""
    assert cut("aaaa&amp;bbbb", 7) == ["aaaa", "&amp;bb", "bb"]
