"""Lengths and widths."""

from __future__ import annotations

import pytest

from channels._text.measure import display_width, is_between_clusters, utf16_len


@pytest.mark.parametrize(("text", "units"), [("", 0), ("abc", 3), ("ä", 1), ("🧪", 2), ("日本", 2), ("\ud83e", 1)])
def test_an_emoji_counts_two_utf16_units(text: str, units: int) -> None:
    """The length is what Telegram counts, and half a pair has one too."""
    assert utf16_len(text) == units


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("👍", 2), ("a\u200b", 1)])
def test_width_is_columns_not_characters(text: str, columns: int) -> None:
    """Wide characters take two columns, accents none."""
    assert display_width(text) == columns


@pytest.mark.parametrize("text", ["👩‍👩‍👧‍👦", "👍🏽", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "1️⃣", "e\u0301", "🇩🇪", "\r\n", "\u1112\u1161\u11ab"])
def test_what_reads_as_one_character_has_no_inside_to_cut(text: str) -> None:
    """No place inside of a joined character is between two."""
    assert not any(is_between_clusters(text, index) for index in range(1, len(text)))


def test_flags_in_a_row_are_apart_after_each_pair() -> None:
    """Two halves make a flag; the next half begins another one."""
    flags = "🇩🇪🇫🇷🇯🇵"
    assert [index for index in range(1, 6) if is_between_clusters(flags, index)] == [2, 4]
