"""Whether a text can still become what a pattern matches."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerobot.security.beginnings import beginnings
from zerobot.security.secret_forms import BLOCK_BEGIN, CONTEXTS, KEYS

PATTERNS = [*KEYS, BLOCK_BEGIN, *(each.head for each in CONTEXTS)]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_every_beginning_of_a_match_is_one(data: st.DataObject) -> None:
    """Cut anywhere, what a pattern matches is matched by its beginnings; that holds for each of ours."""
    pattern = data.draw(st.sampled_from(PATTERNS))
    whole = re.match(pattern, data.draw(st.from_regex(re.compile(pattern, re.ASCII))), re.ASCII)
    # What it looks back at may lie before its first character; then nothing of it begins here.
    text = whole[0] if whole else ""
    begun = re.compile(beginnings(pattern), re.ASCII)
    for end in range(1, len(text) + 1):
        assert begun.fullmatch(text[:end])


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("ab{2,3}c", ["", "a", "ab", "abbb", "abbbc"], ["b", "ac", "abbbb", "abcc"]),
        ("(?:ab|c+)d", ["a", "ccc", "abd", "cd"], ["ba", "d", "abc"]),
        (r"x(?:\d+-){1,2}y", ["x1", "x1-", "x1-22-", "x1-y"], ["x-", "x1-2-3"]),
        (r"(?<!z)a[]b]?c", ["a", "a]", "ac", "abc"], ["a]b", "c"]),
        ("(?i:Ab)(?=.{3})c", ["aB", "ABc"], ["b"]),
    ],
)
def test_a_beginning_is_told_from_what_is_none(pattern: str, yes: list[str], no: list[str]) -> None:
    """Counts, alternatives, sets, repeated groups; looking ahead counts for nothing."""
    begun = re.compile(beginnings(pattern))
    assert all(begun.fullmatch(text) for text in yes)
    assert not any(begun.fullmatch(text) for text in no)


@pytest.mark.parametrize("pattern", ["(a)", "(?P<x>a)", "(?:a", "a)"])
def test_what_is_not_read_is_refused(pattern: str) -> None:
    """A pattern with a named group, or with a bracket too many, is a mistake that shows at once."""
    with pytest.raises(ValueError, match=r"read here|not closed"):
        beginnings(pattern)
