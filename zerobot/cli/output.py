"""How commands write what they have to say: tables for people, JSON for programs."""

import json
from collections.abc import Mapping, Sequence

import typer

from zerobot.security.visible import one_line


def table(rows: Sequence[Mapping[str, object]], columns: Mapping[str, str], nothing: str) -> str:
    """Rows as aligned columns under their titles.

    Args:
        rows: Values by key; one that is missing or None is left blank.
        columns: Title by key, in order.
        nothing: Said when there is no row.
    """
    if not rows:
        return nothing
    cells = [list(columns.values())] + [[_cell(row.get(key)) for key in columns] for row in rows]
    widths = [max(len(line[place]) for line in cells) for place in range(len(columns))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells
    )


def rows_of(result: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    """A list of objects in the result of an operation."""
    value = result.get(key)
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def as_json(value: object) -> str:
    """A value as JSON for programs. It is pure ASCII: nothing in it acts on a terminal."""
    return json.dumps(value, indent=2)


def say(text: str, *, err: bool = False) -> None:
    """Write a line."""
    typer.echo(text, err=err)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}"
    if isinstance(value, str):
        return one_line(value)
    return one_line(json.dumps(value, ensure_ascii=False))
