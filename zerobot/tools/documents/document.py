"""What every kind of document is read into."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Document:
    """A document that is being read."""

    kind: str
    """With its article: `a Word document`."""
    lines: Iterator[str]
    """Its text, read as it is asked for; one may hold line ends of its own."""
