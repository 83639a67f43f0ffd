"""The tree of a Markdown text as HTML that every mail program shows: few tags, styles in place, nothing that loads.

All that is written is a tag of ours or an escaped text. Addresses that can be followed come from the tree, where they
are http or https only, and have been shown if the label does not say them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from channels._text.tree import (
    Block,
    CodeBlock,
    Heading,
    Item,
    ItemList,
    Mark,
    MarkKind,
    Paragraph,
    Quote,
    Rule,
    Runs,
    Table,
)

_TAGS: dict[MarkKind, str] = {
    "bold": "strong",
    "italic": "em",
    "underline": "u",
    "strike": "s",
    "code": "code",
    "link": "a",
}
_CODE = ' style="font-family:monospace;white-space:pre-wrap"'
_PRE = ' style="font-family:monospace;white-space:pre-wrap;background:#f4f4f4;color:#111;padding:8px"'
_QUOTE = ' style="margin:0 0 0 4px;padding-left:10px;border-left:3px solid #bbb"'
_TABLE = ' style="border-collapse:collapse"'
_CELL = "border:1px solid #bbb;padding:3px 8px;text-align:"
_TASK = ' style="list-style:none"'
_CHECKED, _UNCHECKED = "☑ ", "☐ "
_AUTO = ' dir="auto"'
"""Each block finds the direction of its own text."""


def document(inside: str) -> str:
    """A whole HTML document around a fragment."""
    return '<!DOCTYPE html>\n<html>\n<head>\n<meta charset="utf-8">\n</head>\n<body>\n' + inside + "</body>\n</html>\n"


def fragment(blocks: Sequence[Block]) -> str:
    """Write blocks one after the other; each begins on a line of its own."""
    return "".join(_WRITERS[type(block)](block) for block in blocks)


def paragraph(text: str) -> str:
    """Write a text of ours as a paragraph."""
    return f"<p>{_escaped(text)}</p>\n"


def _escaped(text: str) -> str:
    return escape(text).replace("\n", "<br>\n")


def _paragraph(block: Paragraph) -> str:
    return f"<p{_AUTO}>{_runs(block.runs)}</p>\n"


def _heading(block: Heading) -> str:
    return f"<h{block.level}{_AUTO}>{_runs(block.runs)}</h{block.level}>\n"


def _code(block: CodeBlock) -> str:
    # A line feed right behind `<pre>` is not part of its text, so the first line may be empty.
    return f"<pre{_PRE}>\n{escape(block.text)}</pre>\n"


def _quote(block: Quote) -> str:
    return f"<blockquote{_QUOTE}>\n{fragment(block.blocks)}</blockquote>\n"


def _list(block: ItemList) -> str:
    numbered = any(item.number for item in block.items)
    first = _number(block.items[0]) if numbered and block.items else 1
    start = f' start="{first}"' if first != 1 else ""
    tag = "ol" if numbered else "ul"
    items = []
    expected = first
    for item in block.items:
        number = _number(item)
        value = f' value="{number}"' if numbered and number != expected else ""
        expected = number + 1
        style = "" if item.checked is None or numbered else _TASK
        items.append(f"<li{value}{_AUTO}{style}>{_item(item, tight=block.tight)}</li>\n")
    return f"<{tag}{start}>\n{''.join(items)}</{tag}>\n"


def _number(item: Item) -> int:
    digits = item.number.rstrip(".)")
    return int(digits) if digits else 1


def _item(item: Item, *, tight: bool) -> str:
    box = "" if item.checked is None else _CHECKED if item.checked else _UNCHECKED
    first, rest = item.blocks[:1], item.blocks[1:]
    if first and isinstance(first[0], Paragraph):
        text = box + _runs(first[0].runs)
        return (text if tight else f"<p>{text}</p>\n") + ("\n" + fragment(rest) if rest else "")
    return box + ("\n" + fragment(item.blocks) if item.blocks else "")


def _table(block: Table) -> str:
    def row(cells: Sequence[Runs], tag: str) -> str:
        written = (
            f'<{tag}{_AUTO} style="{_CELL}{alignment}">{_runs(cell)}</{tag}>'
            for cell, alignment in zip(cells, block.alignments, strict=True)
        )
        return f"<tr>{''.join(written)}</tr>\n"

    rows = "".join(row(cells, "td") for cells in block.rows)
    return f"<table{_TABLE}>\n{row(block.header, 'th')}{rows}</table>\n"


def _rule(_: Rule) -> str:
    return "<hr>\n"


_WRITERS: dict[type[Block], Callable[..., str]] = {
    Paragraph: _paragraph,
    Heading: _heading,
    CodeBlock: _code,
    Quote: _quote,
    ItemList: _list,
    Table: _table,
    Rule: _rule,
}


def _runs(runs: Runs) -> str:
    """Write runs; what two neighbours have in common stays open between them."""
    parts: list[str] = []
    opened: list[Mark] = []
    for run in runs:
        wanted = _each_kind_once(run.marks)
        same = 0
        while same < min(len(opened), len(wanted)) and opened[same] == wanted[same]:
            same += 1
        while len(opened) > same:
            parts.append(f"</{_TAGS[opened.pop().kind]}>")
        for mark in wanted[same:]:
            parts.append(_opening(mark))
            opened.append(mark)
        parts.append(_escaped(run.text))
    parts.extend(f"</{_TAGS[mark.kind]}>" for mark in reversed(opened))
    return "".join(parts)


def _each_kind_once(marks: Sequence[Mark]) -> list[Mark]:
    wanted: dict[MarkKind, Mark] = {}
    for mark in marks:
        wanted.setdefault(mark.kind, mark)
    return list(wanted.values())


def _opening(mark: Mark) -> str:
    if mark.kind == "link":
        return f'<a href="{escape(mark.value)}" rel="noopener noreferrer">'
    return f"<{_TAGS[mark.kind]}{_CODE if mark.kind == 'code' else ''}>"
