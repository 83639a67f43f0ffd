"""Cutting long texts."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels._text.cut import cut, cut_fenced, find_fences
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


@given(markdown, st.integers(min_value=1, max_value=80))
def test_fenced_pieces_keep_the_limit_and_move_on(text: str, limit: int) -> None:
    """Closing and opening again is counted inside the limit, and cutting ends."""
    assert all(len(piece) <= limit for piece in cut_fenced(text, limit))


@given(st.lists(st.text("ab \n", max_size=30), max_size=8), st.integers(min_value=24, max_value=60))
def test_each_fenced_piece_is_closed_and_no_code_is_lost(blocks: list[str], limit: int) -> None:
    """Every piece opens and closes its blocks, with the language; the code in them is all there."""
    text = "\n".join(f"text\n```python\n{block}\n```" for block in blocks)
    pieces = cut_fenced(text, limit)
    code = ""
    for piece in pieces:
        fences = find_fences(piece)
        assert not any(fence.is_open for fence in fences)
        assert all(fence.opening == "```python" for fence in fences)
        code += "".join(piece[fence.body : fence.body_end] for fence in fences)
    assert "".join(code.split()) == "".join("".join(blocks).split())


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


def test_cut_code_is_opened_again_with_its_language() -> None:
    """A block over two pieces is a block in both."""
    code = "\n".join(f"line {number}" for number in range(6))
    assert cut_fenced(f"```python\n{code}\n```", 44) == [
        "```python\nline 0\nline 1\nline 2\nline 3\n```",
        "```python\nline 4\nline 5\n```",
    ]


def test_a_cut_makes_no_block_where_none_was() -> None:
    """Marks in the middle of a line never come to stand at the beginning of a piece."""
    pieces = cut_fenced("```\nx\n```\n" + "z" * 19 + "```py", 20)
    assert "".join(pieces).count("z") == 19
    assert not any(fence.is_open for piece in pieces for fence in find_fences(piece))


def test_an_open_block_at_the_end_is_closed() -> None:
    """What a model did not finish is well formed all the same."""
    assert cut_fenced("~~~\ncode", 50) == ["~~~\ncode\n~~~"]


@pytest.mark.parametrize(
    "text", ["a" * 200_000, "🧪" * 100_000, "a\n" * 100_000, "🇩🇪" * 50_000, "```\nx\n```\n" * 20_000]
)
def test_time_grows_with_the_text_not_with_its_square(text: str) -> None:
    """A very long text of the worst kind is cut at once; the bound is far above what it takes."""
    started = time.perf_counter()
    cut_fenced(text, 4096, utf16_len)
    assert time.perf_counter() - started < 5
