"""A text and its formatted stretches as the elements of a `rich_text` block.

It holds texts as they are, so nothing in it notifies anybody or becomes a link that was not meant; in a `markdown`
block Slack would read marks and names again. Elements stand below each other and hold no others, but lists hold items:
https://docs.slack.dev/reference/block-kit/blocks/rich-text-block. So an item ends where code, a quote or an inner list
begins, and whatever follows in it stands at the edge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from channels._text.layout import GUARD, LaidItem, Span
from channels.slack.formatting import Formatting, Json

LINK_CHARACTERS = 2000
"""Longer addresses are text."""
_STYLES = ("bold", "italic", "strike", "code")
_LIST = "rich_text_list"
_BLANK: Json = {"type": "text", "text": " "}
_LINE: Json = {"type": "text", "text": "\n"}


def run(text: str, kinds: Collection[str], address: str = "") -> Json:
    """A stretch of text that is formatted alike.

    Args:
        text: At least one character.
        kinds: Of its spans or marks; those that Slack does not have are left out.
        address: Of a link; empty when it is none.
    """
    element: Json = {"type": "link", "url": address} if address else {"type": "text"}
    element["text"] = text
    style = {name: True for name in _STYLES if name in kinds}
    return element | ({"style": style} if style else {})


def section(runs: Sequence[Json]) -> Json:
    """Runs as lines of text."""
    return {"type": "rich_text_section", "elements": list(runs)}


def elements_of(text: str, start: int, end: int, formatting: Formatting) -> list[Json]:
    """Set what stands between two places of a text."""
    inline = [span for span in formatting.spans if span.kind not in {"pre", "quote"}]
    elements: list[Json] = []
    for part in _parts(text, start, end, formatting):
        border: Json = {"border": 1} if part.quoted else {}
        if part.is_code:
            # An element holds one character at least.
            code = run(text[part.start : part.end].removeprefix(GUARD) or GUARD, ())
            elements.append({"type": "rich_text_preformatted", "elements": [code], **border})
        elif part.opens is not None:
            runs = list(_runs(text, part, inline)) or [_BLANK]
            _add_item(elements, part.opens, section(runs), border)
        elif part.quoted:
            elements.append({"type": "rich_text_quote", "elements": list(_runs(text, part, inline))})
        else:
            # A list and what follows it stand without a gap, unless there is an empty line.
            gap = [_LINE] if part.after_gap and elements and elements[-1]["type"] == _LIST else []
            elements.append(section([*gap, *_runs(text, part, inline)]))
    return elements


@dataclass(frozen=True, slots=True)
class _Part:
    """A stretch of a text that becomes one element, or an item of one; without line feeds at its ends."""

    start: int
    end: int
    indent: int
    """Blanks to leave out after each line feed."""
    quoted: bool
    is_code: bool
    opens: LaidItem | None
    """The item whose first words these are."""
    after_gap: bool
    """An empty line stands before it, and it is in no list."""


def _parts(text: str, start: int, end: int, formatting: Formatting) -> Iterator[_Part]:
    blocks = [span for span in formatting.spans if span.kind in {"pre", "quote"}]
    ranges = [(span.start, span.end) for span in blocks] + [(item.start, item.end) for item in formatting.items]
    edges = sorted({start, end, *(edge for pair in ranges for edge in pair if start < edge < end)})
    for (first, last), item in zip(pairwise(edges), _innermost(edges, formatting.items), strict=True):
        around = {span.kind for span in blocks if span.start <= first and span.end >= last}
        part = _part(text, first, last, around, item)
        if part.opens is not None or text[part.start : part.end].strip():
            yield part


def _part(text: str, start: int, end: int, around: Collection[str], item: LaidItem | None) -> _Part:
    is_code = "pre" in around
    # Slack's lists begin with 1 at least.
    opens = item if item is not None and item.start == start and item.number != 0 and not is_code else None
    indent = item.indent if item is not None and not is_code else 0
    first = opens.words if opens is not None else start
    while first < end and text[first] == "\n":
        first += 1
    if opens is None and indent:
        first = min(end, first + indent) if text[first : first + indent].isspace() else first
    while end > first and text[end - 1] in ("\n" if is_code else " \n"):
        end -= 1
    after_gap = item is None and text.startswith("\n\n", start)
    return _Part(first, end, indent, "quote" in around, is_code, opens, after_gap)


def _innermost(edges: Sequence[int], items: Iterable[LaidItem]) -> Iterator[LaidItem | None]:
    """Of each stretch between two edges, the innermost item that it is in."""
    waiting = iter(items)
    coming = next(waiting, None)
    around: list[LaidItem] = []
    for start, _ in pairwise(edges):
        while coming is not None and coming.start <= start:
            around.append(coming)
            coming = next(waiting, None)
        while around and around[-1].end <= start:
            around.pop()
        yield around[-1] if around else None


def _add_item(elements: list[Json], item: LaidItem, words: Json, border: Json) -> None:
    """Put an item at the end of the list that stands last, or begin another one."""
    style = "bullet" if item.number is None else "ordered"
    shape: Json = {"type": _LIST, "style": style, "indent": item.depth, **border}
    last = elements[-1] if elements else {}
    inside = cast("list[Json]", last.get("elements", []))
    before = cast("int", last.get("offset", 0)) + len(inside)
    is_alike = {key: value for key, value in last.items() if key not in {"elements", "offset"}} == shape
    if is_alike and item.number in {None, before + 1}:
        inside.append(words)
        return
    offset: Json = {"offset": item.number - 1} if item.number is not None and item.number > 1 else {}
    elements.append({**shape, **offset, "elements": [words]})


def _runs(text: str, part: _Part, spans: Sequence[Span]) -> Iterator[Json]:
    """Stretches of a part that are formatted alike."""
    start, end = part.start, part.end
    inside = [span for span in spans if span.start < end and span.end > start]
    edges = sorted({start, end, *(edge for span in inside for edge in (span.start, span.end) if start < edge < end)})
    for first, last in pairwise(edges):
        active = [span for span in inside if span.start <= first and span.end >= last]
        address = next((span.value for span in active if span.kind == "link"), "")
        words = text[first:last].replace("\n" + " " * part.indent, "\n")
        yield run(words, {span.kind for span in active}, address)
