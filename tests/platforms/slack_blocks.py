"""Which messages and forms Slack refuses for their texts and blocks."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.platforms.slack_text import Json, read_cell

# https://docs.slack.dev/reference/methods/chat.postMessage, https://docs.slack.dev/reference/block-kit/blocks
TEXT_CHARACTERS = 40_000
UPDATE_CHARACTERS = 4_000
BLOCKS = 50
VIEW_BLOCKS = 100
SECTION_CHARACTERS = 3_000
# Slack names no number; messages were seen refused from some 13,200 characters on. Tables may have far more cells than
# that leaves room for, so only what is in them counts.
BLOCKS_CHARACTERS = 13_200
# https://docs.slack.dev/reference/block-kit/blocks/table-block
TABLE_ROWS = 100
TABLE_COLUMNS = 20
TABLE_CHARACTERS = 10_000
# https://docs.slack.dev/reference/block-kit/block-elements/rich-text-list-element
LIST_INDENT = 8
_STYLES = frozenset({"bold", "italic", "strike", "code"})
# What an element of a rich text may have beside its elements.
_PARTS = {
    "rich_text_section": frozenset[str](),
    "rich_text_preformatted": frozenset({"border"}),
    "rich_text_quote": frozenset({"border"}),
    "rich_text_list": frozenset({"style", "indent", "offset", "border"}),
}


class BlocksError(Exception):
    """Slack's word for what is wrong."""


def check_message(text: str, blocks: Any, *, limit: int = TEXT_CHARACTERS) -> None:
    """Check what is sent.

    Raises:
        BlocksError: With Slack's word.
    """
    if len(text) > limit:
        raise BlocksError("msg_too_long")
    if not text.strip() and not blocks:
        raise BlocksError("no_text")
    check_blocks(blocks, most=BLOCKS)


def check_blocks(blocks: Any, *, most: int) -> None:
    """Check blocks of a message or a view.

    Raises:
        BlocksError: With Slack's word.
    """
    if not isinstance(blocks, list) or len(blocks) > most:
        raise BlocksError("invalid_blocks")
    tables = [block for block in blocks if block.get("type") == "table"]
    others = [block for block in blocks if block.get("type") != "table"]
    in_cells = sum(map(_check_table, tables))
    if len(json.dumps(others, ensure_ascii=False)) + in_cells > BLOCKS_CHARACTERS:
        raise BlocksError("msg_blocks_too_long")
    _require(in_cells <= TABLE_CHARACTERS and not (tables and most == VIEW_BLOCKS))
    if len(tables) > 1:
        # The answer's metadata says `only_one_table_allowed`.
        raise BlocksError("invalid_attachments")
    actions: list[str] = []
    for block in others:
        kind = block.get("type")
        if kind == "rich_text":
            _check_rich_text(block)
        elif kind == "section":
            _require(1 <= len(block["text"]["text"]) <= SECTION_CHARACTERS)
        elif kind == "actions":
            _require(1 <= len(block["elements"]) <= 25)
            actions += [_checked_button(each) for each in block["elements"]]
        elif kind == "input":
            _require(most == VIEW_BLOCKS and 1 <= len(block["label"]["text"]) <= 2000)
            _require(block["element"]["type"] == "plain_text_input")
        else:
            _require(kind == "divider")
    _require(len(actions) == len(set(actions)))


def _require(holds: object) -> None:
    if not holds:
        raise BlocksError("invalid_blocks")


def _checked_button(button: Json) -> str:
    _require(button.get("type") == "button")
    _require(button["text"]["type"] == "plain_text" and 1 <= len(button["text"]["text"]) <= 75)
    _require(1 <= len(button["action_id"]) <= 255 and len(button.get("value", "")) <= 2000)
    _require(button.get("style", "primary") in {"primary", "danger"})
    return str(button["action_id"])


def _check_table(table: Json) -> int:
    """Check a table; returns the characters in its cells."""
    _require(table.keys() <= {"type", "rows", "column_settings", "block_id"})
    rows, columns = table["rows"], table.get("column_settings", [])
    _require(1 <= len(rows) <= TABLE_ROWS and len(columns) <= TABLE_COLUMNS)
    for column in columns:
        _require(column.keys() <= {"align", "is_wrapped"} and isinstance(column.get("is_wrapped", False), bool))
        _require(column.get("align", "left") in {"left", "center", "right"})
    for row in rows:
        _require(1 <= len(row) <= TABLE_COLUMNS)
    return sum(_check_cell(cell) for row in rows for cell in row)


def _check_cell(cell: Json) -> int:
    if cell.get("type") == "raw_text":
        _require(cell.keys() == {"type", "text"} and cell["text"])
    else:
        _require(cell.get("type") == "rich_text")
        _check_rich_text(cell)
    return len(read_cell(cell))


def _check_rich_text(block: Json) -> None:
    _require(block.keys() == {"type", "elements"} and block["elements"])
    for part in block["elements"]:
        _check_part(part)


def _check_part(part: Json) -> None:
    kind = part["type"]
    _require(kind in _PARTS and part["elements"])
    _require(part.keys() - {"type", "elements"} <= _PARTS[kind])
    _require(part.get("border", 0) in {0, 1})
    if kind == "rich_text_list":
        _check_list(part)
        return
    for element in part["elements"]:
        _check_element(element, is_code=kind == "rich_text_preformatted")


def _check_list(part: Json) -> None:
    _require(part.get("style") in {"bullet", "ordered"})
    _require(part.get("indent", 0) in range(LIST_INDENT + 1))
    offset = part.get("offset", 0)
    _require(isinstance(offset, int) and offset >= 0)
    for item in part["elements"]:
        _require(item.get("type") == "rich_text_section")
        _check_part(item)


def _check_element(element: Json, *, is_code: bool) -> None:
    kind = element.get("type")
    _require(kind in {"text", "link"} and element.get("text"))
    _require(element.keys() <= {"type", "text", "style", "url"})
    _require(element.get("style", {}).keys() <= _STYLES and not (is_code and "style" in element))
    _require(kind == "text" or re.match(r"https?://\S+$", element["url"]))
    _require((kind == "link") == ("url" in element))


def check_view(view: Json) -> None:
    """Check a form: https://docs.slack.dev/reference/views/modal-views.

    Raises:
        BlocksError: With Slack's word.
    """
    texts = [view.get(name, {}).get("text", "x") for name in ("title", "submit", "close")]
    if view.get("type") != "modal" or not view.get("title") or any(not 1 <= len(text) <= 24 for text in texts):
        raise BlocksError("invalid_arguments")
    if len(view.get("private_metadata", "")) > 3000 or len(view.get("callback_id", "")) > 255:
        raise BlocksError("invalid_arguments")
    check_blocks(view.get("blocks"), most=VIEW_BLOCKS)
