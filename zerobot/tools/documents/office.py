"""The text of Office Open XML (ECMA-376): Word documents, spreadsheets, presentations."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from zerobot.tools.documents.document import Document
from zerobot.tools.documents.endings import Ending, UnreadableError
from zerobot.tools.documents.package import Event, Package, Start
from zerobot.tools.documents.sheets import workbook

_BESIDE = ("header", "footer", "footnotes", "endnotes", "comments")
"""Parts of a Word document that stand beside its text."""
_SKIPPED = frozenset({"Fallback", "del", "moveFrom", "fld"})
"""What repeats other text for older programs, what was deleted under review, and fields such as a slide's number."""
_HEADING = re.compile(r"(?i)heading ?([1-6])")
_OFF = frozenset({"0", "false", "off"})


def office(package: Package) -> Document:
    """The text of a document, by what its main part is.

    Raises:
        UnreadableError: It has none of the three kinds of main parts.
    """
    main = next((target for _, kind, target in package.relations("") if kind == "officeDocument"), "")
    if not package.has(main):
        raise UnreadableError(Ending.NO_DOCUMENT)
    root = next((event.name for event in package.events(main) if isinstance(event, Start)), "")
    if root == "document":
        return Document("a Word document", _word(package, main))
    if root == "workbook":
        return Document("a spreadsheet", workbook(package, main))
    if root == "presentation":
        return Document("a presentation", _slides(package, main))
    raise UnreadableError(Ending.NO_DOCUMENT)


def _word(package: Package, main: str) -> Iterator[str]:
    yield from paragraphs(package.events(main))
    for _, kind, target in sorted(package.relations(main), key=lambda relation: relation[1:]):
        if kind in _BESIDE and package.has(target):
            yield from _titled(f"[{kind}]", paragraphs(package.events(target)))


def _slides(package: Package, main: str) -> Iterator[str]:
    targets = {ident: target for ident, _, target in package.relations(main)}
    order = [
        event.attributes.get(":id", "")
        for event in package.events(main)
        if isinstance(event, Start) and event.name == "sldId"
    ]
    slides = [targets[ident] for ident in order if package.has(targets.get(ident, ""))]
    for number, slide in enumerate(slides, start=1):
        yield f"[slide {number}]"
        yield from paragraphs(package.events(slide))
        for _, kind, target in package.relations(slide):
            if kind == "notesSlide" and package.has(target):
                yield from _titled("[notes]", paragraphs(package.events(target)))


def _titled(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Lines below a title; nothing where there are none with text."""
    told = False
    for line in lines:
        if line.strip() and not told:
            told = True
            yield title
        if told:
            yield line


@dataclass(slots=True)
class _Writer:
    """Paragraphs in the making. WordprocessingML and DrawingML name what matters alike: `p`, `r`, `t`, `tr`, `tc`."""

    line: list[str] = field(default_factory=list)
    mark: str = ""
    """What the paragraph begins with."""
    skipping: int = 0
    """Open elements of which nothing is told."""
    in_text: bool = False
    in_run: bool = False
    hidden: bool = False
    """Whether the run is not shown to readers."""
    cells: int = 0
    """Cells that are open: what is in one stays on the line of its row."""

    def take(self, event: Event) -> str | None:
        """Take the next event; a line, if one is complete."""
        if isinstance(event, str):
            if self.in_text and not (self.skipping or self.hidden):
                self.line.append(event.replace("\n", " "))
            return None
        if event.name in _SKIPPED:
            self.skipping += 1 if isinstance(event, Start) else -1
        if self.skipping or event.name in _SKIPPED:
            return None
        return self._begin(event) if isinstance(event, Start) else self._end(event.name)

    def _begin(self, event: Start) -> str | None:
        name, value = event.name, event.attributes.get(":val", "")
        match name:
            case "r":
                self.in_run, self.hidden = True, False
            case "t":
                self.in_text = True
            case "vanish" if self.in_run and value not in _OFF:
                self.hidden = True
            case "tab" if self.in_run:
                self.line.append("\t")
            case "noBreakHyphen":
                self.line.append("-")
            case "br" | "cr":
                return self._break()
            case "tc":
                self.cells += 1
            case "pStyle" if found := _HEADING.fullmatch(value):
                self.mark = "#" * int(found[1]) + " "
            case "numPr" if not self.mark:
                self.mark = "- "
        return None

    def _end(self, name: str) -> str | None:
        match name:
            case "t":
                self.in_text = False
            case "r":
                self.in_run = self.hidden = False
            case "p":
                return self._break()
            case "tc":
                self.cells -= 1
                self.line.append("\t" if not self.cells else " ")
            case "tr" if not self.cells:
                return self._flush()
        return None

    def _break(self) -> str | None:
        if not self.cells:
            return self._flush()
        self.line.append(" ")
        self.mark = ""
        return None

    def _flush(self) -> str:
        text = "".join(self.line).replace(" \t", "\t").rstrip()
        text = self.mark + text if text else ""
        self.line.clear()
        self.mark = ""
        return text


def paragraphs(events: Iterable[Event]) -> Iterator[str]:
    """The paragraphs and rows of tables in a part, a line each; cells are parted by tabs."""
    writer = _Writer()
    for event in events:
        line = writer.take(event)
        if line is not None:
            yield line
