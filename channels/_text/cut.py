"""Cuts long texts into messages, each at the best place that the limit allows."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from channels._text.measure import is_between_clusters

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Measure = Callable[[str], int]
    Range = tuple[int, int]

_SENTENCE_ENDS = (". ", "! ", "? ", "… ", ".\n", "。", "！", "？")
_LONGEST_CLUSTER = 64
_LONGEST_REFERENCE = 10


def cut(text: str, limit: int, measure: Measure = len, keep: Sequence[Range] = ()) -> list[str]:
    """Cut a text into pieces that put together are the text again.

    A piece ends, in this order of preference, at a paragraph, a line, a sentence, a word, a character that a reader
    sees. A limit that is smaller than one code point is exceeded by it: a cut always moves forward.

    Args:
        text: Any text.
        limit: The longest piece, in the unit of `measure`.
        measure: Returns the length of a text in the platform's unit; at least one for each code point.
        keep: Sorted ranges, in code points, that are better not cut, such as code; none overlaps another.

    Returns:
        No piece is empty; no text, no pieces.
    """
    pieces: list[str] = []
    start = 0
    while start < len(text):
        end = next_cut(text, start, limit, measure, keep)
        pieces.append(text[start:end])
        start = end
    return pieces


def next_cut(text: str, start: int, limit: int, measure: Measure = len, keep: Sequence[Range] = ()) -> int:
    """Return where the piece that begins at `start` should end, in code points; see `cut`."""
    end = _furthest(text, start, limit, measure)
    if end >= len(text):
        return len(text)
    half = start + (end - start) // 2
    for place in (
        _last_line_end(text, half, end, "\n\n", keep),
        _last_line_end(text, half, end, "\n", keep),
        _last_code_line(text, half, end),
        _last_line_end(text, half, end, "\n", ()),
        _last_sentence(text, half, end),
        _last_blank(text, start, end),
    ):
        if place > start:
            return place
    return _last_cluster(text, start, end)


def _furthest(text: str, start: int, limit: int, measure: Measure) -> int:
    """Return the last place to which the limit reaches, at least one code point on."""
    end = min(len(text), start + max(limit, 1))
    if measure(text[start:end]) <= limit:
        return end
    sizes = range(1, end - start + 1)
    return start + max(1, bisect_right(sizes, limit, key=lambda size: measure(text[start : start + size])))


def _last_line_end(text: str, first: int, end: int, feeds: str, keep: Sequence[Range]) -> int:
    """Return the place after the last line end up to `end` and outside what is to be kept, or -1."""
    limit = end + len(feeds)
    while True:
        found = text.rfind(feeds, first, limit)
        if found < 0:
            return -1
        place = min(found + len(feeds), end)
        inside = _range_around(keep, place)
        if inside is None:
            return place
        limit = min(inside[0], limit - 1)


def _range_around(keep: Sequence[Range], place: int) -> Range | None:
    index = bisect_right(keep, place, key=lambda kept: kept[0]) - 1
    if index >= 0 and keep[index][0] < place < keep[index][1]:
        return keep[index]
    return None


def _last_code_line(text: str, first: int, end: int) -> int:
    """Return the beginning of the last line that is not indented, or -1: in code, a new statement or function."""
    limit = end
    while (found := text.rfind("\n", first, limit)) >= 0:
        if text[found + 1 : found + 2] not in {" ", "\t", "\n", "}", ")", "]"}:
            return found + 1
        limit = found
    return -1


def _last_sentence(text: str, first: int, end: int) -> int:
    found = max((text.rfind(mark, first, end) + len(mark), mark) for mark in _SENTENCE_ENDS)
    return found[0] if found[0] > first + len(found[1]) else -1


def _last_blank(text: str, first: int, end: int) -> int:
    place = max(text.rfind(blank, first, end) for blank in " \n\t")
    return place + 1 if place > first else -1


def _last_cluster(text: str, start: int, end: int) -> int:
    for place in range(end, max(start, end - _LONGEST_CLUSTER), -1):
        if is_between_clusters(text, place) and not _is_in_reference(text, place):
            return place
    return end


def _is_in_reference(text: str, place: int) -> bool:
    """Whether `place` is inside a character reference such as `&amp;`, in text that was escaped for a platform."""
    start = text.rfind("&", max(0, place - _LONGEST_REFERENCE), place)
    if start < 0:
        return False
    end = text.find(";", start, start + _LONGEST_REFERENCE)
    return end >= place and text[start + 1 : end].lstrip("#").isalnum()
