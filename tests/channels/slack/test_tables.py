"""Tables as Slack's own."""

from __future__ import annotations

from typing import Any

import pytest

from channels.slack.blocks import blocks_of
from channels.slack.render import mark_repeat, render
from tests.platforms.slack_blocks import UPDATE_CHARACTERS, check_message
from tests.platforms.slack_text import read_blocks
from zerobot.core.channel import MessageBody

TABLE = "| a | b |\n|:-:|--:|\n| 1 | 2 |\n"


def kinds(body: MessageBody) -> list[Any]:
    """The types of a message's blocks."""
    return [block["type"] for block in blocks_of(body)]


def shown(body: MessageBody) -> str:
    """What people see of a message."""
    return read_blocks(blocks_of(body)).text


def a_table(*, rows: int = 1, columns: int = 2, cell: str = "x") -> str:
    """A table; its header is one of the rows."""
    line = "|" + f" {cell} |" * columns
    return "\n".join([line, "|" + "-|" * columns, *[line] * (rows - 1)]) + "\n"


def test_a_table_stands_where_it_was_written() -> None:
    """With the text before and behind it; who reads without blocks reads it laid out."""
    (body,) = render(f"before\n\n{TABLE}\nbehind")
    assert kinds(body) == ["rich_text", "table", "rich_text"]
    assert shown(body) == "before\na b\n1 2\nbehind"
    assert body.text == "before\n\na │ b\n──┼──\n1 │ 2\n\nbehind"


def test_columns_are_aligned_and_folded() -> None:
    """Without folding, the end of a long cell is not seen."""
    (body,) = render(TABLE)
    (block,) = blocks_of(body)
    assert block["column_settings"] == [
        {"align": "center", "is_wrapped": True},
        {"align": "right", "is_wrapped": True},
    ]


def test_cells_keep_their_formatting() -> None:
    """The header is bold; a cell without words is a blank, for Slack takes no empty one."""
    (body,) = render("| a | |\n|-|-|\n| *i* `c` | [l](https://a.test) |\n| x<br>y | <!channel> |")
    (block,) = blocks_of(body)
    rows: Any = block["rows"]
    cells = [[cell["elements"][0]["elements"] for cell in row] for row in rows]
    assert cells == [
        [[{"type": "text", "text": "a", "style": {"bold": True}}], [{"type": "text", "text": " "}]],
        [
            [
                {"type": "text", "text": "i", "style": {"italic": True}},
                {"type": "text", "text": " "},
                {"type": "text", "text": "c", "style": {"code": True}},
            ],
            [{"type": "link", "url": "https://a.test", "text": "l"}, {"type": "text", "text": " (https://a.test)"}],
        ],
        [[{"type": "text", "text": "x y"}], [{"type": "text", "text": "<!channel>"}]],
    ]


def test_a_message_has_one_table() -> None:
    """The next one begins the next message."""
    first, second = render(f"{TABLE}\nbetween\n\n{TABLE}\nend")
    assert (shown(first), shown(second)) == ("a b\n1 2\nbetween", "a b\n1 2\nend")


@pytest.mark.parametrize(
    ("source", "native"),
    [
        (a_table(rows=100), True),
        (a_table(rows=101), False),
        (a_table(columns=20), True),
        (a_table(columns=21), False),
        (a_table(rows=2, cell="x" * 900), True),
        (a_table(rows=2, cell="x" * 1100), False),
        (f"- a\n\n{TABLE}".replace("\n|", "\n  |"), False),
        (f"> {TABLE}".replace("\n|", "\n> |"), False),
    ],
    ids=["rows", "too many rows", "columns", "too many columns", "long", "too long", "in a list", "in a quote"],
)
def test_a_table_that_slack_does_not_take_is_laid_out(source: str, native: bool) -> None:  # noqa: FBT001 -- a column
    """In blocks of code, or as a list when it is wide."""
    bodies = render(source)
    assert any("table" in kinds(body) for body in bodies) == native
    for body in bodies:
        check_message(body.text, blocks_of(body), limit=UPDATE_CHARACTERS)


@pytest.mark.parametrize("before", [10, 3000, 3990, 5000])
def test_a_table_is_not_cut(before: int) -> None:
    """It begins the next message when it does not fit behind what stands before it."""
    table = a_table(rows=60, columns=3)
    bodies = render("y" * before + f"\n\n{table}\n" + "z" * before)
    assert sum(kinds(body).count("table") for body in bodies) == 1
    assert "".join(map(shown, bodies)).replace("\n", "") == "y" * before + "x x x" * 60 + "z" * before
    for body in bodies:
        check_message(body.text, blocks_of(body), limit=UPDATE_CHARACTERS)


def test_the_mark_of_a_repeat_stands_before_a_table() -> None:
    """The table is a table still."""
    (body,) = render(TABLE)
    assert shown(mark_repeat(body)) == "↻ possibly a repeat:\na b\n1 2"
