"""Markdown as a tree: blocks that hold runs of text, each run with its marks. All that a renderer walks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

MarkKind = Literal["bold", "italic", "underline", "strike", "code", "link"]
Alignment = Literal["left", "right", "center"]


@dataclass(frozen=True, slots=True)
class Mark:
    """One kind of formatting on a run."""

    kind: MarkKind
    value: str = ""
    """The address of a link: http or https, ASCII."""


BOLD = Mark("bold")
ITALIC = Mark("italic")
UNDERLINE = Mark("underline")
STRIKE = Mark("strike")
CODE = Mark("code")


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of text that is formatted alike; a line break is a line feed in the text."""

    text: str
    marks: tuple[Mark, ...] = ()
    """From the outermost to the innermost."""


Runs: TypeAlias = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; it is never empty."""

    runs: Runs


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading."""

    level: int
    """From 1 to 6."""
    runs: Runs


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Text to be shown as it is, in a monospaced font."""

    text: str
    """Without the line feed at its end."""
    language: str = ""
    """One word of letters, digits and `+-#._`, as the author wrote it; may be empty."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A block quotation."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a list."""

    blocks: tuple[Block, ...]
    number: str = ""
    """With its full stop or bracket, `3.`; empty in a list of bullets."""
    checked: bool | None = None
    """The state of a task; None when the item is no task."""


@dataclass(frozen=True, slots=True)
class ItemList:
    """A list, with numbers or with bullets."""

    items: tuple[Item, ...]
    tight: bool
    """No blank lines between the items."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table; every row has as many cells as the header."""

    header: tuple[Runs, ...]
    rows: tuple[tuple[Runs, ...], ...]
    alignments: tuple[Alignment, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A line across."""


Block: TypeAlias = Paragraph | Heading | CodeBlock | Quote | ItemList | Table | Rule


def plain_text(runs: Runs) -> str:
    """Return the text of some runs without their marks."""
    return "".join(run.text for run in runs)
