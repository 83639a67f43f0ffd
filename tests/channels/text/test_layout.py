"""Laying the tree out as text."""

from __future__ import annotations

import pytest

from channels._text.layout import GUARD, LaidItem, Span, lay_out
from channels._text.parse import parse


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a\n\n\n\nb", "a\n\nb"),
        ("- a\n- b\n  - c\n\n    more\n", "• a\n• b\n  ◦ c\n\n    more"),
        ("1. a\n   b\n2. c", "1. a\n   b\n2. c"),
        ("- a\n\n- b", "• a\n\n• b"),
        ("- [ ] a\n- [x] b", "☐ a\n☑ b"),
        ("1. a\n   ```\n   code\n   ```", "1. a\ncode"),
        ("> a\n> > b\n> > c\n> \n> d", "a\n\n> b\n> c\n\nd"),
        ("a\n\n***\n\nb", "a\n\n──────────\n\nb"),
        ("| a | b |\n|--|--|\n| x<br>y | 2 |", "a   │ b\n────┼──\nx y │ 2"),
    ],
)
def test_blocks_are_laid_out_for_reading(source: str, text: str) -> None:
    """Indents follow the markers, code starts at the edge, blank lines are single."""
    assert lay_out(parse(source)).text == text


def test_a_wide_table_becomes_a_list_with_its_names() -> None:
    """Each row is an item: its first cell, then the others under the names of their columns."""
    long = "x" * 40
    layout = lay_out(parse(f"| key | what | more |\n|--|--|--|\n| a | {long} | [z](https://a.test) |"))
    assert layout.text == f"key · what · more\n• a · what: {long} · more: z (https://a.test)"
    assert Span(79, 80, "link", "https://a.test") in layout.spans


def test_code_breaks_the_formatting_around_it() -> None:
    """Platforms take no code inside of bold text."""
    spans = lay_out(parse("**a `b` c**")).spans
    assert spans == (Span(0, 2, "bold"), Span(2, 3, "code"), Span(3, 5, "bold"))


def test_a_label_in_code_is_a_link_first() -> None:
    """Code and link cannot be both; the address matters more than the font."""
    spans = lay_out(parse("[`f()`](https://a.test)")).spans
    assert spans == (Span(0, 3, "link", "https://a.test"),)


def test_indented_code_keeps_the_indent_of_its_first_line() -> None:
    """An invisible character stands before it, or platforms would trim the blanks."""
    layout = lay_out(parse("```\n    a\n  b\n```"))
    assert layout.text == GUARD + "    a\n  b"
    assert layout.spans == (Span(0, len(layout.text), "pre"),)


def test_items_are_known_by_their_places() -> None:
    """For platforms with lists of their own: a marker is no word, the state of a task is one."""
    layout = lay_out(parse("3. a\n   - [x] b\n\n> - c"))
    assert layout.text == "3. a\n   ☑ b\n\n• c"
    assert layout.items == (
        LaidItem(0, 11, 3, 0, 3, 3),
        LaidItem(8, 11, 8, 1, None, 5),
        LaidItem(13, 16, 15, 0, None, 2),
    )


def test_tables_are_known_by_their_places() -> None:
    """For platforms with tables of their own, if they stand in nothing else."""
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n"
    layout = lay_out(parse(f"x\n\n{table}\n> " + table.replace("\n", "\n> ")))
    (laid,) = layout.tables
    assert layout.text[laid.start : laid.end] == "a │ b\n──┼──\n1 │ 2"
    assert parse(table) == (laid.table,)
