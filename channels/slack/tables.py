"""Tables as Slack's own: https://docs.slack.dev/reference/block-kit/blocks/table-block."""

from __future__ import annotations

from collections.abc import Iterator

from channels._text.layout import cell_text, one_line
from channels._text.tree import Runs, Table
from channels.slack.formatting import Json
from channels.slack.rich_text import LINK_CHARACTERS, run, section

ROWS, COLUMNS = 100, 20
"""What a table may have; its header is a row."""
TABLE_CHARACTERS = 10_000
"""In all cells of a message."""


def table_block(table: Table) -> Json | None:
    """A table as a block; None: it is too large for one.

    Its cells are `rich_text`: plain ones (`raw_text`) hold no formatting. Slack knows no header, so that one is bold.
    Lines are folded in every column, or they would be cut off where the column ends.
    """
    if len(table.rows) >= ROWS or len(table.header) > COLUMNS:
        return None
    header = [_cell(runs, is_header=True) for runs in table.header]
    rows = [[_cell(runs, is_header=False) for runs in row] for row in table.rows]
    block: Json = {
        "type": "table",
        "rows": [header, *rows],
        "column_settings": [{"align": alignment, "is_wrapped": True} for alignment in table.alignments],
    }
    return block if table_characters(block) <= TABLE_CHARACTERS else None


def table_characters(block: Json) -> int:
    """Characters in all cells of a table."""
    return sum(len(text) for text in _texts(block["rows"]))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, dict):
        yield from _texts(value.get("elements", []))
        yield value.get("text", "")


def _cell(runs: Runs, *, is_header: bool) -> Json:
    # Slack takes no cell without a character.
    elements = list(_elements(runs, is_header=is_header)) if cell_text(runs) else [run(" ", ())]
    return {"type": "rich_text", "elements": [section(elements)]}


def _elements(runs: Runs, *, is_header: bool) -> Iterator[Json]:
    for each in one_line(runs):
        if not each.text:
            continue
        kinds = {mark.kind for mark in each.marks} | ({"bold"} if is_header else set())
        address = next((mark.value for mark in each.marks if mark.kind == "link"), "")
        yield run(each.text, kinds, address if len(address) <= LINK_CHARACTERS else "")
