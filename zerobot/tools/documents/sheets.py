"""The cells of spreadsheets in Office Open XML (SpreadsheetML, ECMA-376 part 1, chapter 18), as text between tabs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from zerobot.tools.documents.package import End, Package, Start

MAX_GAP = 50
"""Empty cells in a row that are told by tabs; after more the next one is told with the name of its column."""

_DATE_FORMATS = frozenset({*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)})
"""Numbers of built-in formats that show dates or times (section 18.8.30)."""
_NO_PART_OF_A_DATE = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!h|m|s)[^\]]*\]', re.IGNORECASE)
_PART_OF_A_DATE = re.compile(r"[dmyhs]", re.IGNORECASE)
_COLUMN = re.compile(r"[A-Z]{1,3}")


@dataclass(frozen=True, slots=True)
class _Book:
    """What the sheets of a workbook share."""

    strings: list[str]
    dates: frozenset[str]
    """The styles (their places in the list) of cells that show dates."""
    begins: datetime
    """Day 0."""

    def shown(self, kind: str, style: str, value: str) -> str:
        """A cell's value as people see it, but for the format of its numbers."""
        if kind == "s":
            return self.strings[int(value)] if value.isdecimal() and int(value) < len(self.strings) else ""
        if kind == "b":
            return "TRUE" if value == "1" else "FALSE"
        return self._date(value) if value and kind in ("", "n") and style in self.dates else value

    def _date(self, value: str) -> str:
        try:
            days = float(value)
            moment = self.begins + timedelta(seconds=round(days * 86_400))
        except (ValueError, OverflowError):
            return value
        if 0 <= days < 1:
            return f"{moment:%H:%M:%S}"
        return f"{moment:%Y-%m-%d}" if moment.time() == self.begins.time() else f"{moment:%Y-%m-%d %H:%M:%S}"


def workbook(package: Package, main: str) -> Iterator[str]:
    """The sheets of a workbook in their order, each after a line with its name.

    Args:
        package: The spreadsheet.
        main: The name of its main part.
    """
    relations = package.relations(main)
    targets = {ident: target for ident, _, target in relations}
    of_kind = {kind: target for _, kind, target in relations if package.has(target)}
    sheets: list[dict[str, str]] = []
    since_1904 = False
    for event in package.events(main):
        if isinstance(event, Start) and event.name == "sheet":
            sheets.append(event.attributes)
        elif isinstance(event, Start) and event.name == "workbookPr":
            since_1904 = event.attributes.get("date1904") in ("1", "true")
    book = _Book(
        strings=_strings(package, of_kind["sharedStrings"]) if "sharedStrings" in of_kind else [],
        dates=_date_styles(package, of_kind["styles"]) if "styles" in of_kind else frozenset(),
        # Day 60 of the older count is a 29 February 1900 that never was; so its day 0 is a day early from March on.
        begins=datetime(1904, 1, 1) if since_1904 else datetime(1899, 12, 30),  # noqa: DTZ001 - cells have no zone
    )
    for sheet in sheets:
        part = targets.get(sheet.get(":id", ""), "")
        if package.has(part):
            hidden = "" if sheet.get("state", "visible") == "visible" else ", hidden"
            yield f"[sheet {sheet.get('name', '')}{hidden}]"
            yield from _rows(package, part, book)


def _strings(package: Package, part: str) -> list[str]:
    strings: list[str] = []
    text: list[str] = []
    in_text, phonetic = False, False
    for event in package.events(part):
        if isinstance(event, str):
            text += [event] if in_text and not phonetic else []
        elif event.name == "t":
            in_text = isinstance(event, Start)
        elif event.name == "rPh":
            # How a text is pronounced.
            phonetic = isinstance(event, Start)
        elif event == End("si"):
            strings.append("".join(text))
            text = []
    return strings


def _date_styles(package: Package, part: str) -> frozenset[str]:
    dates = {str(number) for number in _DATE_FORMATS}
    styles: list[str] = []
    in_cells = False
    for event in package.events(part):
        if event in (End("cellXfs"), End("numFmts")):
            in_cells = False
        elif isinstance(event, Start):
            attributes = event.attributes
            if event.name == "numFmt" and _shows_date(attributes.get("formatCode", "")):
                dates.add(attributes.get("numFmtId", ""))
            in_cells |= event.name == "cellXfs"
            if in_cells and event.name == "xf":
                styles.append(attributes.get("numFmtId", ""))
    return frozenset(str(place) for place, number in enumerate(styles) if number in dates)


def _shows_date(code: str) -> bool:
    # A format has up to four sections; the first is that of positive numbers (section 18.8.31).
    return bool(_PART_OF_A_DATE.search(_NO_PART_OF_A_DATE.sub("", code[:1_000]).partition(";")[0]))


@dataclass(slots=True)
class _Row:
    """A row in the making."""

    cells: list[str] = field(default_factory=list)
    column: int = 0
    """How many columns have been told."""

    def add(self, reference: str, text: str) -> None:
        """Add a cell, by its reference (`B7`); without one it follows the last."""
        found = _COLUMN.match(reference)
        column = _number(found[0]) if found else self.column + 1
        if text and column > self.column:
            gap = column - self.column - 1
            self.cells += [""] * gap if gap <= MAX_GAP else [f"[{found[0] if found else ''}]"]
            self.cells.append(" ".join(text.split()))
            self.column = column


def _number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _rows(package: Package, part: str, book: _Book) -> Iterator[str]:
    row, text = _Row(), list[str]()
    cell: dict[str, str] = {}
    in_value, phonetic = False, False
    for event in package.events(part):
        if isinstance(event, str):
            text += [event] if in_value and not phonetic else []
        elif event.name in ("v", "t"):
            in_value = isinstance(event, Start)
        elif event.name == "rPh":
            phonetic = isinstance(event, Start)
        elif isinstance(event, Start):
            if event.name == "c":
                cell, text = event.attributes, []
        elif event.name == "c":
            row.add(cell.get("r", ""), book.shown(cell.get("t", ""), cell.get("s", "0"), "".join(text)))
        elif event.name == "row":
            if row.cells:
                yield "\t".join(row.cells)
            row = _Row()
