"""Lays the tree out as one text with spans of formatting, for platforms whose messages are a text beside its format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from channels._text.table import grid
from channels._text.tree import (
    BOLD,
    Block,
    CodeBlock,
    Heading,
    Item,
    ItemList,
    Paragraph,
    Quote,
    Rule,
    Run,
    Runs,
    Table,
    plain_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from channels._text.tree import Mark, MarkKind

TABLE_WIDTH = 60
"""Columns of a monospaced font; a wider table is written as a list, because a phone would fold its lines."""

GUARD = "\u200b"
"""Stands before code whose first line is indented: platforms trim blanks at the beginning of what they format."""

_BULLETS = ("• ", "◦ ", "▪ ")
_RULE = "─" * 10
_CHECKED, _UNCHECKED = "☑ ", "☐ "

SpanKind = Literal["bold", "italic", "underline", "strike", "code", "link", "pre", "quote"]
_OUTER_FIRST: Sequence[SpanKind] = ("quote", "pre", "code", "link", "bold", "italic", "underline", "strike")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a laid out text that is formatted; it has at least one character."""

    start: int
    """In code points."""
    end: int
    kind: SpanKind
    value: str = ""
    """A link's address, the language of `pre`."""


def span_order(span: Span) -> tuple[int, int, int]:
    """Return the key that sorts spans by start, outer before inner."""
    return span.start, -span.end, _OUTER_FIRST.index(span.kind)


@dataclass(frozen=True, slots=True)
class LaidItem:
    """Where an item of a list stands in a laid out text, for platforms that have lists of their own."""

    start: int
    """In code points; the item begins with its marker."""
    end: int
    """The lists in it stand before this."""
    words: int
    """Where its words begin; the state of a task is one of them."""
    depth: int
    """0 in a list that is in no other."""
    number: int | None
    """None in a list of bullets."""
    indent: int
    """Blanks before each of its lines but the first."""


@dataclass(frozen=True, slots=True)
class LaidTable:
    """Where a table stands in a laid out text, for platforms that have tables of their own."""

    start: int
    """In code points."""
    end: int
    table: Table


@dataclass(frozen=True, slots=True)
class Layout:
    """A text and its spans, sorted by start, outer before inner; of two spans one holds the other or they are apart."""

    text: str
    spans: tuple[Span, ...]
    items: tuple[LaidItem, ...] = ()
    """Of all lists but those in a quote's quote; sorted like spans."""
    tables: tuple[LaidTable, ...] = ()
    """Those that stand in nothing else."""


def lay_out(blocks: Sequence[Block]) -> Layout:
    """Lay blocks out with blank lines between them. No formatting holds code or is in it; quotes hold no quotes."""
    writer = _Writer()
    _write_blocks(writer, blocks, _Place())
    return writer.layout()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the tree a block stands."""

    lists: int = 0
    quotes: int = 0
    gap: int = 2
    """Line feeds between the blocks here."""


class _Writer:
    """Collects text and spans; knows the indent of the current line."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._spans: list[Span] = []
        self._open: list[tuple[Mark, int]] = []
        self._feeds = 0
        self._indent = ""
        self._items: list[LaidItem] = []
        self._tables: list[LaidTable] = []

    def layout(self) -> Layout:
        self._set_marks(())
        self._spans.sort(key=span_order)
        self._items.sort(key=lambda item: (item.start, item.depth))
        return Layout("".join(self._parts), tuple(self._spans), tuple(self._items), tuple(self._tables))

    def feed(self, count: int) -> None:
        """Begin a new line before whatever comes next; `count - 1` lines stay empty. Nothing at the very beginning."""
        if self._length:
            self._feeds = max(self._feeds, count)

    def indent(self, width: int) -> str:
        """Indent the lines that follow; returns the old indent, for `restore`."""
        old, self._indent = self._indent, self._indent + " " * width
        return old

    def prefix(self, text: str) -> str:
        """Write `text` at the beginning of the lines that follow; returns the old indent, for `restore`."""
        old, self._indent = self._indent, self._indent + text
        return old

    def restore(self, indent: str) -> None:
        self._indent = indent

    def start(self) -> int:
        """Write what is due and return the place of the next character, for a span."""
        self._set_marks(())
        self._write_feeds(self._indent)
        return self._length

    def span(self, start: int, kind: SpanKind, value: str = "") -> None:
        """Format all from `start` to here."""
        self._set_marks(())
        if self._length > start:
            self._spans.append(Span(start, self._length, kind, value))

    def item(self, start: int, words: int, depth: int, number: int | None) -> None:
        """Note that all from `start` to here, where its lines are indented as they are now, is an item of a list."""
        self._set_marks(())
        self._items.append(LaidItem(start, self._length, words, depth, number, len(self._indent)))

    def table(self, start: int, table: Table) -> None:
        """Note that all from `start` to here is a table."""
        self._set_marks(())
        self._tables.append(LaidTable(start, self._length, table))

    def runs(self, runs: Runs, *outer: Mark) -> None:
        for run in runs:
            self.write(run.text, _marks(run, outer))

    def write(self, text: str, marks: tuple[Mark, ...] = ()) -> None:
        if self._feeds:
            self._set_marks(())
            self._write_feeds(self._indent)
        self._set_marks(marks)
        self._append(text.replace("\n", "\n" + self._indent) if self._indent else text)

    def pre(self, text: str, language: str) -> None:
        """Write code; it is not indented, so that it can be copied."""
        self._set_marks(())
        self._write_feeds("")
        start = self._length
        self._append(GUARD + text if text.startswith(" ") else text)
        self.span(start, "pre", language)

    def _write_feeds(self, indent: str) -> None:
        if self._feeds:
            self._append("\n" * self._feeds + indent)
            self._feeds = 0

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)

    def _set_marks(self, marks: tuple[Mark, ...]) -> None:
        """Close what is open and not wanted, open what is wanted and not open; so spans never cross."""
        opened = self._open
        if len(opened) == len(marks) == 0:
            return
        same = 0
        while same < min(len(opened), len(marks)) and opened[same][0] == marks[same]:
            same += 1
        while len(opened) > same:
            mark, start = opened.pop()
            if self._length > start:
                self._spans.append(Span(start, self._length, mark.kind, mark.value))
        opened.extend((mark, self._length) for mark in marks[same:])


def _marks(run: Run, outer: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """Return a run's marks without repeats. Code stands alone, and a link's label is not code."""
    if not outer and len(run.marks) <= 1:
        return run.marks
    wanted: dict[MarkKind, Mark] = {}
    for mark in (*outer, *run.marks):
        wanted.setdefault(mark.kind, mark)
    if "code" in wanted:
        if "link" not in wanted:
            return (wanted["code"],)
        del wanted["code"]
    return tuple(wanted.values())


def _write_blocks(writer: _Writer, blocks: Sequence[Block], place: _Place) -> None:
    for index, block in enumerate(blocks):
        if index:
            writer.feed(place.gap)
        _write_block(writer, block, place)


def _write_block(writer: _Writer, block: Block, place: _Place) -> None:
    match block:
        case Paragraph(runs):
            writer.runs(runs)
        case Heading(_, runs):
            writer.runs(runs, BOLD)
        case CodeBlock(text, language):
            writer.feed(1)
            writer.pre(text, language)
        case Quote(inside):
            _write_quote(writer, inside, place)
        case ItemList():
            _write_list(writer, block, place)
        case Table():
            _write_table(writer, block, place)
        case Rule():
            writer.write(_RULE)


def _write_quote(writer: _Writer, blocks: Sequence[Block], place: _Place) -> None:
    inside = _Place(place.lists, place.quotes + 1)
    if not place.quotes:
        start = writer.start()
        _write_blocks(writer, blocks, inside)
        writer.span(start, "quote")
        return
    old = writer.prefix("> ")
    writer.feed(1)
    writer.start()
    _write_blocks(writer, blocks, inside)
    writer.restore(old)


def _write_list(writer: _Writer, block: ItemList, place: _Place) -> None:
    bullet = _BULLETS[min(place.lists, len(_BULLETS) - 1)]
    for index, item in enumerate(block.items):
        if index:
            writer.feed(1 if block.tight else 2)
        _write_item(writer, item, bullet, _Place(place.lists + 1, place.quotes, 1 if block.tight else 2))


def _write_item(writer: _Writer, item: Item, bullet: str, inside: _Place) -> None:
    number = item.number + " " if item.number else ""
    task = "" if item.checked is None else _CHECKED if item.checked else _UNCHECKED
    marker = number + task or bullet
    start = writer.start()
    writer.write(marker)
    old = writer.indent(len(marker))
    _write_blocks(writer, item.blocks, inside)
    if inside.quotes <= 1:
        words = start + len(marker) - len(task)
        writer.item(start, words, inside.lists - 1, int(item.number[:-1]) if item.number else None)
    writer.restore(old)


def _write_table(writer: _Writer, table: Table, place: _Place) -> None:
    writer.feed(1)
    if place.lists or place.quotes:
        _write_rows(writer, table)
        return
    start = writer.start()
    _write_rows(writer, table)
    writer.table(start, table)


def _write_rows(writer: _Writer, table: Table) -> None:
    rows = [[cell_text(cell) for cell in row] for row in (table.header, *table.rows)]
    lines = grid(rows, table.alignments, TABLE_WIDTH)
    if lines is not None:
        writer.pre(lines, "")
        return
    for index, name in enumerate(rows[0]):
        writer.write(" · " + name if index else name, (BOLD,))
    for row in table.rows:
        writer.feed(1)
        _write_record(writer, rows[0], row)


def _write_record(writer: _Writer, names: Sequence[str], row: Sequence[Runs]) -> None:
    """Write a row of a wide table as an item of a list: its first cell, then the others under their names."""
    writer.write(_BULLETS[0])
    writer.runs(one_line(row[0]), BOLD)
    two_columns = len(row) == 2
    for name, cell in zip(names[1:], row[1:], strict=True):
        if plain_text(cell).strip():
            writer.write(": " if two_columns else f" · {name}: ")
            writer.runs(one_line(cell))


def cell_text(runs: Runs) -> str:
    """Return a table's cell as one line without its marks."""
    return plain_text(one_line(runs)).strip()


def one_line(runs: Runs) -> Runs:
    """Return a table's cell with blanks for its line breaks."""
    return tuple(Run(run.text.replace("\n", " "), run.marks) for run in runs)
