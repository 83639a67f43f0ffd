"""The text of OpenDocument files (OASIS ODF 1.3, ISO/IEC 26300): texts, spreadsheets, presentations."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from zerobot.tools.documents.document import Document
from zerobot.tools.documents.endings import Ending, UnreadableError
from zerobot.tools.documents.package import Event, Package, Start

MEDIA = "application/vnd.oasis.opendocument."
"""What the media type of such a document begins with."""
MAX_REPEATS = 50
"""Of an equal cell, or of blanks; a file says "a million times" in a few bytes. Equal rows are told once."""

_KINDS = {"text": "a text document", "spreadsheet": "a spreadsheet", "presentation": "a presentation"}
_SKIPPED = frozenset({"tracked-changes", "note-citation"})
"""What was deleted under review, and the numbers of footnotes, which stand in their places."""
_ABOUT_COMMENTS = frozenset({"creator", "creator-initials", "date", "date-string"})
_ASIDE = {"note": " [note: ", "annotation": " [comment: "}
"""What stands within a paragraph and has paragraphs itself."""


def opendocument(package: Package, media: str) -> Document:
    """The text of a document.

    Args:
        package: The document.
        media: Its media type.

    Raises:
        UnreadableError: It is protected, or has no text.
    """
    if package.has("META-INF/manifest.xml"):
        manifest = package.events("META-INF/manifest.xml")
        if any(isinstance(event, Start) and event.name == "encryption-data" for event in manifest):
            raise UnreadableError(Ending.PROTECTED)
    kind = media.removeprefix(MEDIA).split("-")[0]
    return Document(_KINDS.get(kind, "a document"), _lines(package.events("content.xml")))


def _lines(events: Iterator[Event]) -> Iterator[str]:
    writer = _Writer()
    for event in events:
        yield from writer.take(event)


@dataclass(slots=True)
class _Writer:
    """Lines in the making."""

    line: list[str] = field(default_factory=list)
    texts: int = 0
    """Paragraphs and headings that are open: text elsewhere is white space of the file's."""
    skipping: int = 0
    cells: list[str] = field(default_factory=list)
    """Of the row that is open."""
    cell: Start | None = None
    """The cell that is open; what is in it stays on the line of its row."""
    slides: int = 0
    lists: int = 0
    asides: list[str] = field(default_factory=list)
    """The notes and comments that are open."""

    def take(self, event: Event) -> Iterator[str]:
        """Take the next event; the lines that are complete."""
        if isinstance(event, str):
            if self.texts and not self.skipping:
                self.line.append(" ".join(event.split("\n")))
        elif event.name in _SKIPPED or (self.asides and event.name in _ABOUT_COMMENTS):
            self.skipping += 1 if isinstance(event, Start) else -1
        elif self.skipping:
            return
        elif isinstance(event, Start):
            yield from self._begin(event)
        else:
            yield from self._end(event.name)

    def _begin(self, event: Start) -> Iterator[str]:
        match event.name:
            case "p" | "h":
                self.texts += 1
                self._mark(event)
            case "page":
                self.slides += 1
                yield f"[slide {self.slides}]"
            case "notes":
                yield "[notes]"
            case "table" if self.cell is None and (name := event.attributes.get(":name")):
                yield f"[table {name}]"
            case "table-cell" | "covered-table-cell" if self.cell is None:
                self.cell = event
            case "list":
                self.lists += 1
            case _:
                self._within(event)

    def _mark(self, event: Start) -> None:
        """What a paragraph begins with."""
        if self.line or self.cell is not None or self.asides:
            return
        if event.name == "h":
            level = event.attributes.get(":outline-level", "1")
            self.line.append("#" * min(int(level) if level.isdecimal() else 1, 6) + " ")
        elif self.lists:
            self.line.append("- ")

    def _within(self, event: Start) -> None:
        """What stands within a paragraph."""
        match event.name:
            case "tab":
                self.line.append("\t")
            case "s":
                self.line.append(" " * _repeats(event, ":c"))
            case "line-break":
                self.line.append(" " if self.cell or self.asides else "\n")
            case "note" | "annotation":
                self.asides.append(event.name)
                self.line.append(_ASIDE[event.name])

    def _end(self, name: str) -> Iterator[str]:
        match name:
            case "p" | "h":
                self.texts = max(self.texts - 1, 0)
                if self.cell is not None or self.asides:
                    self.line.append(" ")
                else:
                    yield self._text()
            case "note" | "annotation":
                self.asides.pop()
                self.line[-1:] = ["] "]
            case "list":
                self.lists -= 1
            case "table-cell" | "covered-table-cell" if self.cell is not None:
                times = _repeats(self.cell, ":number-columns-repeated")
                self.cells += [" ".join(self._text().split())] * times
                self.cell = None
            case "table-row":
                row = "\t".join(self.cells).rstrip()
                self.cells.clear()
                if row:
                    yield row

    def _text(self) -> str:
        text = "".join(self.line).rstrip()
        self.line.clear()
        return text


def _repeats(element: Start, attribute: str) -> int:
    number = element.attributes.get(attribute, "1")
    return min(int(number), MAX_REPEATS) if number.isdecimal() and len(number) < 10 else 1
