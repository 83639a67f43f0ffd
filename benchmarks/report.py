"""Rows and the table that they make."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Side = Literal["at_most", "at_least"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One number, beside what the bare libraries take for the same."""

    measure: str
    unit: str
    zerobot: float
    bare: float | None = None
    """None: there is nothing bare to compare with."""
    aim: float | None = None
    """None: it is told and not judged."""
    side: Side = "at_most"

    @property
    def verdict(self) -> str:
        """`ok`, `over` (`under` where more is better), or nothing where there is no aim."""
        if self.aim is None:
            return ""
        if self.side == "at_most":
            return "ok" if self.zerobot <= self.aim else "over"
        return "ok" if self.zerobot >= self.aim else "under"

    def cells(self) -> tuple[str, ...]:
        """The row as it is printed."""
        sign = "≤" if self.side == "at_most" else "≥"
        return (
            f"{self.measure} ({self.unit})" if self.unit else self.measure,
            _number(self.zerobot),
            _number(self.bare),
            "" if not self.bare else f"{self.zerobot / self.bare:.1f}",
            "" if self.aim is None else f"{sign} {_number(self.aim)}",
            self.verdict,
        )


HEAD = ("measure", "zerobot", "bare libraries", "ratio", "aim", "")


def table(rows: Sequence[Row]) -> str:
    """A Markdown table that is readable as it is."""
    lines = [HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    rule = "|".join("-" * (width + 2) for width in widths)
    printed = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    return "\n".join([printed[0], f"|{rule}|", *printed[1:]])


def median(values: Sequence[float]) -> float:
    """The middle of some values."""
    return statistics.median(values)


def p95(values: Sequence[float]) -> float:
    """The value that 95 of 100 do not exceed; with few values the largest."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.2f}" if abs(value) < 1 else f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"
