"""Tables in monospaced text."""

from __future__ import annotations

from channels._text.table import grid


def test_columns_line_up_by_width_and_alignment() -> None:
    """Cells are padded by the columns they take, on the side that the author asked for."""
    lines = grid([("name", "n"), ("日本", "10"), ("x", "5")], ("left", "right"), 40)
    assert lines == "name │  n\n─────┼───\n日本 │ 10\nx    │  5"


def test_a_table_that_is_too_wide_is_refused() -> None:
    """The caller must show it in another way."""
    assert grid([("a" * 30, "b" * 30)], ("left", "left"), 60) is None
