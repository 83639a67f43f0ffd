"""Tells what a person wrote from what their client quoted.

Words of the person are never to be lost: where it is not sure that something is a quote of an older mail, it stays.
Lines that are quoted without a word of who wrote them stay, since people quote what they ask about; so do the quoted
lines above an answer, if there are several such answers, and whatever is forwarded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from channels.email.said.headings import (
    Field,
    attribution_start,
    field_of,
    has_address,
    has_date,
    is_forward,
    is_original,
    is_rule,
    marked_phrase,
)
from channels.email.said.lines import Line, Mark
from channels.email.said.signatures import signature_start

_MAX_GAP = 2
"""Lines within the head of an older mail that are no fields: an empty one, the rest of a long subject."""

_MAX_TOP = 20
"""Lines at the top of a quote that may say who wrote it: as many as a long list of addresses needs."""
_HEAD = frozenset((Field.FROM, Field.DATE, Field.SUBJECT))
_QUOTED_HEAD = frozenset((Field.FROM, Field.SUBJECT))
"""Within quote marks; some write the date into a line of its own above (`Message du 02/03/26 10:00`)."""


class Split(NamedTuple):
    """The lines of a mail, told apart; both in their order."""

    new: list[Line]
    removed: list[Line]


class _Quote(NamedTuple):
    """Quoted lines that follow each other, empty ones between them included."""

    start: int
    stop: int
    attribution: int
    """Where it begins to be said who wrote them, above them or in their first lines."""
    text: int
    """Where what they wrote begins."""

    @property
    def history(self) -> bool:
        """Whether it is said who wrote them, and so that it is an older mail."""
        return self.attribution < self.text

    def says(self, lines: Sequence[Line]) -> bool:
        """Whether anything is quoted beside the line that says who wrote it."""
        return any(not line.blank for line in lines[self.text : self.stop])


def split(lines: list[Line], *, forwarded: bool = False) -> Split:
    """Tell the new lines of a mail from the quoted ones and from the signature.

    Args:
        lines: Of the whole mail.
        forwarded: Whether its subject says that it passes a mail on; then the older mail is what it is about.
    """
    stop, kept_from = _older_mail(lines, forwarded=forwarded)
    removable = kept_from == len(lines) and not forwarded
    quotes = _quotes(lines, stop) if removable else []
    first, last = 0, _without_end(lines, stop, quotes)
    left = [quote for quote in quotes if quote.start < last]
    on_top = bool(left) and left[0].history and not _own(lines, 0, left[0].attribution)
    if on_top and (len(quotes) == 1 or not left[0].says(lines)):
        # The answer is below it.
        first = left.pop(0).stop
    if removable and not _own(lines, first, last):
        first = last
    # The line above what is passed on stays if it is an empty one.
    resumed = kept_from - 1 if 0 < kept_from < len(lines) and lines[kept_from - 1].blank else kept_from
    kept = [first <= index < last or index >= resumed for index in range(len(lines))]
    for quote in left:
        # Without it nothing might stand between the text above and the text below.
        if quote.says(lines):
            kept[quote.attribution : quote.text] = [False] * (quote.text - quote.attribution)
    return Split(
        [line for line, keep in zip(lines, kept, strict=True) if keep],
        [line for line, keep in zip(lines, kept, strict=True) if not keep],
    )


def _without_end(lines: list[Line], stop: int, quotes: Sequence[_Quote]) -> int:
    """Where the new text ends: before the signatures and the quotes at the end."""
    history = any(quote.history for quote in quotes)
    waiting = list(quotes)
    while True:
        while stop and lines[stop - 1].blank and not lines[stop - 1].quote:
            stop -= 1
        if (start := signature_start(lines, stop)) is not None:
            stop = start
        elif waiting and waiting[-1].stop >= stop and history and not _passes_on(lines, waiting[-1]):
            stop = waiting.pop().attribution
        else:
            return stop


def _passes_on(lines: list[Line], quote: _Quote) -> bool:
    first = next((line for line in lines[quote.start : quote.stop] if not line.blank), None)
    return first is not None and is_forward(first.text)


def _own(lines: list[Line], start: int, stop: int) -> bool:
    return any(line.own for line in lines[start:stop])


def _quotes(lines: list[Line], stop: int) -> list[_Quote]:
    quotes: list[_Quote] = []
    index = 0
    while index < stop:
        if not lines[index].quote:
            index += 1
            continue
        start = index
        end = index
        while index < stop and not lines[index].own:
            index += 1
            if lines[index - 1].quote:
                end = index
        quote = _attributed(lines, start, end)
        if quotes and not quotes[-1].says(lines) and not _own(lines, quotes[-1].stop, quote.attribution):
            # The one before was no more than a line that says who wrote.
            quote = quotes.pop()._replace(stop=quote.stop, text=quote.text)
        quotes.append(quote)
    return quotes


def _attributed(lines: list[Line], start: int, stop: int) -> _Quote:
    attribution = start
    while (above := _attribution_above(lines, attribution)) is not None:
        attribution = above
    text = start
    while said := _quoted_attribution(lines[text : min(text + _MAX_TOP, stop)]):
        text += said
    return _Quote(start, stop, attribution, text)


def _attribution_above(lines: list[Line], start: int) -> int | None:
    while start and lines[start - 1].blank and not lines[start - 1].quote:
        start -= 1
    if start and not lines[start - 1].quote and is_original(lines[start - 1].text):
        return start - 1
    marked = _marked(lines, start)
    return attribution_start(lines, start, quoted=True) if marked is None else marked


def _quoted_attribution(quoted: Sequence[Line]) -> int:
    """How many of the first lines of a quote say who wrote it, as Apple Mail and others have it; 0: none does."""
    lines = [line._replace(quote="") for line in quoted]
    top = next((index for index, line in enumerate(lines) if not line.blank), len(lines))
    for end in range(top + 1, min(top + 4, len(lines)) + 1):
        if attribution_start(lines, end, quoted=True) == top:
            return end
    for start in range(top, min(top + 2, len(lines))):
        end, is_head = _head(lines, start, _QUOTED_HEAD)
        if is_head:
            return end
    return top + 1 if top < len(lines) and is_original(lines[top].text) else 0


def _marked(lines: list[Line], stop: int) -> int | None:
    start = stop
    while start and lines[start - 1].mark is Mark.ATTRIBUTION and not lines[start - 1].quote:
        start -= 1
    return start if start < stop else None


def _older_mail(lines: list[Line], *, forwarded: bool) -> tuple[int, int]:
    """Where an older mail begins that reaches to the end, and from where on all is to be kept.

    Without one both are the end.
    """
    end, no_head = len(lines), 0
    for index, line in enumerate(lines):
        if not line.own:
            continue
        if _forwards(line):
            return index, index
        is_head = False
        if index >= no_head:
            # Fields that are no head together are none from a later one on.
            no_head, is_head = _head(lines, index)
        start = index if is_head or line.mark is Mark.HISTORY or is_original(line.text) else _unmarked(lines, index)
        if start is not None:
            start = _with_rule(lines, start)
            if forwarded:
                return start, start
            # With nothing above it the answer may be below it, and nothing shows where.
            return (start, end) if any(not line.blank for line in lines[:start]) else (end, 0)
    return end, end


def _forwards(line: Line) -> bool:
    if line.mark is Mark.ATTRIBUTION and line.text.startswith("-----"):
        return True
    return line.mark is Mark.FORWARD or is_forward(line.text)


def _unmarked(lines: list[Line], index: int) -> int | None:
    """Where an attribution begins that ends with this line and is followed by lines without quote marks."""
    if not lines[index].text.rstrip(" *\xa0").endswith((":", "：")):
        return None
    below = index + 1
    while below < len(lines) and lines[below].blank and not lines[below].quote:
        below += 1
    if below < len(lines) and lines[below].quote:
        return None
    start = attribution_start(lines, index + 1, quoted=False)
    if start is None or (start and lines[start - 1].own and not is_rule(lines[start - 1].text)):
        # Within a paragraph it is what somebody tells.
        return None
    return start


def _with_rule(lines: list[Line], start: int) -> int:
    """The start of an older mail, with the line that is drawn above it."""
    above = start
    while above and lines[above - 1].blank and not lines[above - 1].quote:
        above -= 1
    if (
        above
        and not lines[above - 1].quote
        and (is_rule(lines[above - 1].text) or marked_phrase(lines[above - 1].text))
    ):
        return above - 1
    return start


def _head(lines: Sequence[Line], start: int, needed: frozenset[Field] = _HEAD) -> tuple[int, bool]:
    """Where a run of fields (`From:`, `Von:`, ...) ends, and whether it is the head of an older mail.

    That needs all fields of `needed`, and an address or a day: people write `From: Berlin` and `To: Paris` as well.
    """
    seen: set[Field] = set()
    proof = False
    index = stop = start
    gap = 0
    while index < len(lines) and gap <= _MAX_GAP and not lines[index].quote:
        line = lines[index]
        found = field_of(line.text)
        if found is None:
            # A list of addresses may go on for many lines.
            gap += 0 if seen and has_address(line.text) else 1
            if not seen:
                break
        else:
            kind, value = found
            gap = 0
            seen.add(kind)
            stop = index + 1
            proof = proof or has_address(value) or (kind is Field.DATE and has_date(value))
        index += 1
    return stop, proof and needed <= seen
