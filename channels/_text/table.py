"""Tables as lines of monospaced text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from channels._text.measure import display_width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from channels._text.tree import Alignment

COLUMN_GAP = " │ "
RULE_GAP = "─┼─"


def grid(rows: Sequence[Sequence[str]], alignments: Sequence[Alignment], max_width: int) -> str | None:
    """Lay a table out in aligned columns with a line under the header.

    Args:
        rows: The header first; all of one length, no cell with a line feed.
        alignments: One for each column.
        max_width: In columns of a monospaced font.

    Returns:
        The lines, or None when the table is wider than that.
    """
    sizes = [[display_width(cell) for cell in row] for row in rows]
    widths = [max(column) for column in zip(*sizes, strict=True)]
    if sum(widths) + len(COLUMN_GAP) * (len(widths) - 1) > max_width:
        return None
    lines = [
        COLUMN_GAP.join(
            _padded(cell, width - size, alignment)
            for cell, width, size, alignment in zip(row, widths, row_sizes, alignments, strict=True)
        ).rstrip()
        for row, row_sizes in zip(rows, sizes, strict=True)
    ]
    lines.insert(1, RULE_GAP.join("─" * width for width in widths))
    return "\n".join(lines)


def _padded(cell: str, room: int, alignment: Alignment) -> str:
    if alignment == "right":
        return " " * room + cell
    if alignment == "center":
        return " " * (room // 2) + cell + " " * (room - room // 2)
    return cell + " " * room
