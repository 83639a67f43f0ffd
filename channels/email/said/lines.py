"""The text of a mail as lines, each with its quote marks apart and with what its client's mark-up said of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

# Clients write `>> text` and `> > text`; some put a blank before the first mark.
_QUOTE = re.compile(r" ?>(?: ?>)*+ ?")


class Mark(Enum):
    """What the mark-up of an HTML mail says of a line, in whatever language the line is."""

    NONE = 0
    ATTRIBUTION = 1
    """It tells who wrote what is quoted below it."""
    HISTORY = 2
    """It is the first of an older mail, which reaches to the end."""
    FORWARD = 3
    """It is the first of a mail that is passed on, which reaches to the end."""
    SIGNATURE = 4


class Line(NamedTuple):
    """One line of a mail."""

    text: str
    quote: str = ""
    """The quote marks before it, as they are to be shown; empty: nothing quoted."""
    mark: Mark = Mark.NONE

    @property
    def blank(self) -> bool:
        """Whether nothing stands in it, quote marks apart."""
        return not self.text or self.text.isspace()

    @property
    def own(self) -> bool:
        """Whether it says something and is no quote."""
        return not self.quote and not self.blank


def plain_lines(text: str) -> list[Line]:
    """The lines of plain text.

    A line that begins with `From ` is stored as `>From ` by some systems (the mbox format, RFC 4155); where no quote
    stands around it, it is no quote.
    """
    raw = text.split("\n")
    lines: list[Line] = []
    for index, line in enumerate(raw):
        found = _QUOTE.match(line)
        if found is None:
            lines.append(Line(line))
        elif line.startswith(">From ") and not (_quoted(raw, index - 1) or _quoted(raw, index + 1)):
            lines.append(Line(line[1:]))
        else:
            rest, quote = line[found.end() :], found.group()
            # With the blank it will be read as a quote wherever it stands.
            lines.append(Line(rest, quote + " " if rest.startswith("From ") and quote[-1] == ">" else quote))
    return lines


def _quoted(raw: list[str], index: int) -> bool:
    return 0 <= index < len(raw) and raw[index].startswith(">")


def written(lines: Iterable[Line]) -> str:
    """The lines as text: no empty lines at its ends, and no more than one in a row."""
    shown: list[str] = []
    for line in lines:
        text = (line.quote + line.text).rstrip()
        if text or (shown and shown[-1]):
            shown.append(text)
    return "\n".join(shown).rstrip("\n")
