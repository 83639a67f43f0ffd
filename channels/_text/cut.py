"""Cuts long texts into messages, each at the best place that the limit allows."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
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


def cut_fenced(markdown: str, limit: int, measure: Measure = len) -> list[str]:
    """Cut a Markdown text so that each piece is well formed on its own.

    A fenced block that must be cut is closed at the end of a piece and opened again, with its language, in the next;
    both are counted inside the limit. A limit that has no room for them cuts the text as any other.

    Args:
        markdown: As `find_fences` takes it.
        limit: See `cut`.
        measure: See `cut`.
    """
    fences = find_fences(markdown)
    if not fences:
        return cut(markdown, limit, measure)
    if fences[-1].is_open:
        markdown = markdown.removesuffix("\n") + "\n" + fences[-1].closing
        fences = find_fences(markdown)
    closing_room = max(measure("\n" + fence.closing) for fence in fences)
    if max(measure(fence.opening + "\n") for fence in fences) + closing_room >= limit:
        return cut(markdown, limit, measure)
    cutter = _FenceCutter(markdown, fences, limit, closing_room, measure)
    pieces: list[str] = []
    rest = _Rest(0)
    while rest.start < len(markdown):
        piece, rest = cutter.next_piece(rest)
        pieces.append(piece)
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


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block in a Markdown text; places are in code points."""

    start: int
    body: int
    """Where its first line of code begins."""
    body_end: int
    """Where its closing line begins, or the text ends."""
    end: int
    opening: str
    """The opening line without its line feed: marks and language."""
    is_open: bool = False
    """The text ends inside it."""

    @property
    def closing(self) -> str:
        """The marks that close it, on a line of their own."""
        return _fence_marks(self.opening)


def find_fences(markdown: str) -> list[Fence]:
    """Return the fenced blocks of a text that a renderer wrote: none of them in a list or a quote."""
    fences: list[Fence] = []
    opened: Fence | None = None
    place = 0
    for line in markdown.split("\n"):
        after = min(place + len(line) + 1, len(markdown))
        marks = _fence_marks(line)
        if opened is None:
            if marks:
                opened = Fence(place, after, len(markdown), len(markdown), line, is_open=True)
        elif marks.startswith(opened.closing) and line.strip() == marks:
            fences.append(Fence(opened.start, opened.body, place, after, opened.opening))
            opened = None
        place = after
    return [*fences, opened] if opened else fences


def _fence_marks(line: str) -> str:
    """Return the fence marks that a line begins with, or nothing."""
    body = line.lstrip(" ")
    if len(line) - len(body) > 3 or body[:3] not in {"```", "~~~"}:
        return ""
    marks = body[: len(body) - len(body.lstrip(body[0]))]
    return "" if body[0] == "`" and "`" in body[len(marks) :] else marks


@dataclass(frozen=True, slots=True)
class _Rest:
    """What is still to be cut."""

    start: int
    opening: str = ""
    """The line that opens again the fenced block in which it begins."""


@dataclass(frozen=True, slots=True)
class _FenceCutter:
    text: str
    fences: Sequence[Fence]
    limit: int
    closing_room: int
    measure: Measure

    def next_piece(self, rest: _Rest) -> tuple[str, _Rest]:
        """Return the next piece, and what is left after it."""
        room = self.limit - self.measure(rest.opening)
        end = self._cut(rest.start, room)
        if self._around(end) is None:
            return rest.opening + self.text[rest.start : end], _Rest(end)
        end = self._cut(rest.start, room - self.closing_room)
        fence = self._around(end)
        if fence is None:
            return rest.opening + self.text[rest.start : end], _Rest(end)
        if end <= fence.body and rest.start < fence.start:
            return self.text[rest.start : fence.start], _Rest(fence.start)
        if end <= fence.body:  # the block begins here: its opening line alone is no piece
            head = self.measure(self.text[rest.start : fence.body])
            end = self._cut(fence.body, room - self.closing_room - head)
        end = min(end, fence.body_end)
        piece = rest.opening + self.text[rest.start : end].removesuffix("\n") + "\n" + fence.closing
        if end == fence.body_end:
            return piece, _Rest(fence.end)
        return piece, _Rest(end, fence.opening + "\n")

    def _cut(self, start: int, room: int) -> int:
        keep = [(fence.start, fence.end) for fence in self.fences]
        end = next_cut(self.text, start, room, self.measure, keep)
        # A line cut before marks that were in its middle would make them the beginning of a block.
        while end > start + 1 and self.text[end - 1] != "\n" and self._begins_with_marks(end):
            end -= 1
        return end

    def _begins_with_marks(self, place: int) -> bool:
        end = self.text.find("\n", place)
        return bool(_fence_marks(self.text[place : end if end >= 0 else None]))

    def _around(self, place: int) -> Fence | None:
        index = bisect_right(self.fences, place, key=lambda fence: fence.start) - 1
        if index >= 0 and self.fences[index].start < place < self.fences[index].end:
            return self.fences[index]
        return None
