"""Reads Markdown into the tree of `channels._text.tree`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from channels._text._grammar import parser
from channels._text.clean import clean
from channels._text.inline import read_runs
from channels._text.tree import (
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
    from collections.abc import Callable, Iterator

    from markdown_it.token import Token

    from channels._text.tree import Alignment

_TASKS = {"[ ] ": False, "[x] ": True, "[X] ": True}
_MAX_LANGUAGE = 32


def parse(markdown: str, *, address_limit: int | None = None) -> tuple[Block, ...]:
    """Read any text as Markdown; there is no text that cannot be read.

    No raw HTML comes through: a few tags become their formatting, all others are text. Links go to http and https
    only, and a link whose label is not its address is followed by its address in brackets.

    Args:
        markdown: What a model wrote, whole or the beginning of it.
        address_limit: Longer addresses, in characters, are shown by their beginning (never less than the host).
    """
    tokens = iter(parser().parse(clean(markdown)))
    return _Reader(tokens, address_limit).blocks("")


class _Reader:
    """Walks the parser's flat list of tokens; each method eats the tokens of its block up to the closing one."""

    def __init__(self, tokens: Iterator[Token], address_limit: int | None) -> None:
        self._tokens = tokens
        self._address_limit = address_limit
        self._readers: dict[str, Callable[[Token], Block | None]] = {
            "paragraph_open": self._paragraph,
            "heading_open": self._heading,
            "blockquote_open": lambda _: Quote(self.blocks("blockquote_close")),
            "bullet_list_open": self._list,
            "ordered_list_open": self._list,
            "table_open": self._table,
            "fence": _code,
            "code_block": _code,
            "formula_block": lambda token: CodeBlock(clean(token.content), "latex"),
            "hr": lambda _: Rule(),
        }

    def blocks(self, end: str) -> tuple[Block, ...]:
        """Read blocks up to a closing token of the type `end`."""
        found: list[Block] = []
        for token in self._tokens:
            if token.type == end:
                break
            read = self._readers.get(token.type)
            block = read(token) if read else None
            if block is not None:
                found.append(block)
        return tuple(found)

    def _inline(self) -> Runs:
        runs = read_runs(next(self._tokens).children or [], self._address_limit)
        next(self._tokens)  # the block's closing token
        return runs

    def _paragraph(self, _: Token) -> Paragraph | None:
        runs = self._inline()
        return Paragraph(runs) if plain_text(runs).strip() else None

    def _heading(self, token: Token) -> Heading | None:
        runs = self._inline()
        return Heading(int(token.tag[1:]), runs) if plain_text(runs).strip() else None

    def _list(self, opening: Token) -> ItemList:
        items: list[Item] = []
        tight, number = True, -1
        closing = opening.type.replace("_open", "_close")
        for token in self._tokens:
            if token.type == closing:
                break
            blocks, item_tight = self._item()
            tight = tight and item_tight
            if token.info:
                # The author's own numbers stay, but `1. 1. 1.` counts.
                number = max(int(token.info), number + 1)
            items.append(_with_task(blocks, f"{number}{token.markup}" if token.info else ""))
        return ItemList(tuple(items), tight)

    def _item(self) -> tuple[tuple[Block, ...], bool]:
        found: list[Block] = []
        tight = True
        for token in self._tokens:
            if token.type == "list_item_close":
                break
            if token.type == "paragraph_open" and not token.hidden:
                tight = False
            read = self._readers.get(token.type)
            block = read(token) if read else None
            if block is not None:
                found.append(block)
        return tuple(found), tight

    def _table(self, _: Token) -> Table:
        rows: list[tuple[Runs, ...]] = []
        cells: list[Runs] = []
        alignments: list[Alignment] = []
        for token in self._tokens:
            if token.type in {"th_open", "td_open"}:
                if token.type == "th_open":
                    alignments.append(_alignment(token))
                cells.append(self._inline())
            elif token.type == "tr_close":
                rows.append(tuple(cells))
                cells = []
            elif token.type == "table_close":
                break
        return Table(rows[0], tuple(rows[1:]), tuple(alignments))


def _code(token: Token) -> CodeBlock:
    language = token.info.strip().partition(" ")[0][:_MAX_LANGUAGE]
    if not all(char.isalnum() or char in "+-#._" for char in language):
        language = ""
    return CodeBlock(clean(token.content).strip("\n").expandtabs(4), language)


def _alignment(token: Token) -> Alignment:
    style = str(token.attrGet("style") or "")
    return "right" if style.endswith("right") else "center" if style.endswith("center") else "left"


def _with_task(blocks: tuple[Block, ...], number: str) -> Item:
    first = blocks[0] if blocks else None
    if isinstance(first, Paragraph):
        head = first.runs[0]
        checked = _TASKS.get(head.text[:4])
        if checked is not None:
            rest = (Run(head.text[4:], head.marks), *first.runs[1:])
            return Item((Paragraph(rest), *blocks[1:]), number, checked)
    return Item(blocks, number)
