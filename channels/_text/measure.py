"""How long and how wide a text is, and where a character really ends."""

from __future__ import annotations

import unicodedata

ZERO_WIDTH_JOINER = "\u200d"
_JOINED_CATEGORIES = frozenset({"Mn", "Mc", "Me"})
_WIDE = frozenset({"W", "F"})


def utf16_len(text: str) -> int:
    """Return the length of a text in UTF-16 code units: what Telegram counts; an emoji is two or more."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def display_width(text: str) -> int:
    """Return how many columns of a monospaced font a text takes; East Asian characters and emoji take two."""
    if text.isascii():
        return len(text)
    return sum(_column_count(char) for char in text)


def _column_count(char: str) -> int:
    if _joins_the_one_before(char) or unicodedata.category(char) == "Cf":
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1


def is_between_clusters(text: str, index: int) -> bool:
    """Return whether a reader sees two characters at `index` (in code points) and not the inside of one.

    A small reading of Unicode's grapheme clusters: joined emoji, flags, skin tones, accents, Hangul letters.
    """
    if index <= 0 or index >= len(text):
        return True
    before, after = text[index - 1], text[index]
    if before < "\u0300" and after < "\u0300":
        return not (before == "\r" and after == "\n")
    if _joins_the_one_before(after) or before == ZERO_WIDTH_JOINER:
        return False
    if _is_flag_half(before) and _is_flag_half(after):
        return _flag_halves_before(text, index) % 2 == 0
    return True


def _joins_the_one_before(char: str) -> bool:
    return (
        char == ZERO_WIDTH_JOINER
        or unicodedata.category(char) in _JOINED_CATEGORIES
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= char <= "\U000e007f"  # the letters in the flags of Scotland, Wales, Texas
        or "\u1160" <= char <= "\u11ff"  # Hangul vowels and finals, written apart
    )


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flag_halves_before(text: str, index: int) -> int:
    first = index
    # A row of flags without an end is no text: looking back further would make cutting it quadratic.
    while first > max(0, index - 256) and _is_flag_half(text[first - 1]):
        first -= 1
    return index - first
