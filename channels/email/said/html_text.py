"""The text of an HTML mail as a person sees it, line by line, with what its client's mark-up tells of quotes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

from channels.email.said.html_tokens import Close, Open, Raw, Text, tokens
from channels.email.said.lines import Line, Mark
from channels.email.said.visible import Look, StyleSheet

_MAX_HTML = 2_000_000
"""Characters that are read; a mail with more is cut. It bounds the time: five seconds for a mail of tags alone."""
_MAX_TEXT = 2_000_000
"""Characters that are written."""
_MAX_QUOTES = 20
_MAX_INDENTS = 10
_MAX_ADDRESS = 500
"""Characters of a link's address; a longer one says nothing to a reader."""

_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)
_NEVER_SHOWN = frozenset(("audio", "canvas", "datalist", "head", "object", "select", "svg", "template", "video", "xml"))
_PARAGRAPHS = frozenset(
    ("blockquote", "dl", "fieldset", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "p", "pre", "table", "ul")
)
"""They stand apart from what is around them."""
_BLOCKS = _PARAGRAPHS | frozenset(
    (
        "address",
        "article",
        "aside",
        "body",
        "caption",
        "center",
        "dd",
        "details",
        "dir",
        "div",
        "dt",
        "figcaption",
        "footer",
        "form",
        "header",
        "html",
        "li",
        "main",
        "nav",
        "section",
        "summary",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
    )
)
_CLOSED_BY = {
    "li": frozenset(("li",)),
    "tr": frozenset(("tr", "td", "th")),
    "td": frozenset(("td", "th")),
    "th": frozenset(("td", "th")),
    "dt": frozenset(("dt", "dd")),
    "dd": frozenset(("dt", "dd")),
}
"""Start tags end what is open of these, as their end tags may be left out (HTML standard, 13.1.2.4)."""
_BLANKS = re.compile(r"[ \t\r\n\f\xa0]+")
# Between the words of a line for the list of mails, and where a line may be broken: nothing that is seen.
_NO_WIDTH = dict.fromkeys(map(ord, "\u200b\u2060\ufeff\xad\u034f"))
_JOINERS = re.compile("[\u200c\u200d\\s\xa0]*")
_NO_MARGIN = re.compile(r"margin:0\w*(?:;|$)")
_OUTLOOK_RULE = re.compile(
    r"border:none;border-top:solid#(?:e1e1e1|b5c4df)1\.0pt;padding:3\.0pt0(?:in|cm|mm)0(?:in|cm|mm)0(?:in|cm|mm)"
)


class _Around(NamedTuple):
    """What holds for all that stands in an element."""

    look: Look = Look()
    quote: str = ""
    indent: str = ""
    mark: Mark = Mark.NONE
    ordered: bool = False
    """Whether it is a numbered list."""
    close_lines: bool = False
    """Whether a paragraph is followed by the next without an empty line."""


class _Element(NamedTuple):
    name: str
    around: _Around
    href: str = ""
    """Where it leads, if it is a link."""
    text_before: int = 0
    """How much text there was when a link began."""


@dataclass(slots=True)
class _Writer:
    """Lines in the making: blanks and line ends are put off until something follows them."""

    lines: list[Line] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    """Of the line that is being written."""
    line: Line | None = None
    """Its quote marks and its mark; None: nothing is on it yet."""
    breaks: int = 0
    blank: bool = False
    space: bool = False
    """Whether a fixed blank stands alone on its line, which is how many clients write an empty one."""
    cell: bool = False
    """Whether a cell of a table has ended on the line that is being written."""
    new_cell: bool = False
    """Whether nothing stands in a cell yet: a paragraph in it begins no line."""
    cell_line: int = -1
    """How many lines there were when the text of a cell began; -1: something else than its text was in it."""
    bullet: str = ""
    start: Mark = Mark.NONE
    """What the next line begins."""
    length: int = 0

    def text(self, text: str, around: _Around) -> None:
        """Add running text."""
        if around.look.kept_blanks:
            first, *others = text.replace("\r\n", "\n").split("\n")
            self.put(first, around)
            for line in others:
                self.end(self.breaks + 1)
                self.put(line, around)
            return
        words = _BLANKS.sub(" ", text)
        self.blank = self.blank or words.startswith(" ")
        if inner := words.strip(" "):
            self.put(inner, around)
            self.blank = words.endswith(" ")
        elif "\xa0" in text and not (self.line and not self.breaks):
            self.space = True

    def put(self, text: str, around: _Around) -> None:
        """Add text as it is, after whatever was put off."""
        if not text:
            return
        if self.line is None or self.breaks:
            self._begin(around)
        elif self.cell:
            self.parts.append(" | ")
        elif self.blank:
            self.parts.append(" ")
        self.breaks, self.blank, self.space, self.cell = 0, False, False, False
        if self.new_cell:
            self.new_cell, self.cell_line = False, len(self.lines)
        self.parts.append(text)
        self.length += len(text) + 1

    def end(self, lines: int) -> None:
        """Let what follows begin on a new line (1) or after an empty one (2)."""
        if self.new_cell:
            return
        if self.space:
            self.breaks, self.space = self.breaks + 1, False
        self.breaks = max(self.breaks, lines)
        self.cell = False

    def end_cell(self) -> None:
        """End a cell: the next one stays on the line, unless this one had several."""
        if self.new_cell:
            self.new_cell = False
        elif self.line is not None and self.cell_line == len(self.lines):
            self.breaks, self.cell = 0, True
        else:
            self.end(1)

    def end_line(self) -> None:
        """End the line as `<br>` does: a second one leaves an empty line."""
        self.end(self.breaks + 1)

    def _begin(self, around: _Around) -> None:
        before = self.line
        self.finish()
        if before is not None and self.breaks > 1:
            self.lines.append(Line("", min(before.quote, around.quote, key=len)))
        mark, self.start = self.start if self.start is not Mark.NONE else around.mark, Mark.NONE
        self.line = Line("", around.quote, mark)
        indent = around.indent
        if self.bullet:
            indent = indent[: -len(self.bullet)] + self.bullet
            self.bullet = ""
        self.parts = [indent]
        self.length += len(indent) + len(around.quote)

    def finish(self) -> None:
        """End the last line."""
        if self.line is not None:
            text = "".join(self.parts)
            # The blank belongs to the delimiter of a signature.
            text = "-- " if text == "--" and (self.blank or self.space) else text
            self.lines.append(self.line._replace(text=text))
            self.line = None


class _Reader:
    """Follows the tags; knows what is open."""

    def __init__(self) -> None:
        self.writer = _Writer()
        self._sheet = StyleSheet()
        self._open = [_Element("", _Around())]
        self._places: dict[str, list[int]] = {}
        """Where in the stack the open elements of a name are, so that none is looked for in vain."""
        self._blocks = [0]

    @property
    def around(self) -> _Around:
        """What holds where the reader is."""
        return self._open[-1].around

    def text(self, text: str) -> None:
        """Read running text."""
        shown = text if text.isascii() else text.translate(_NO_WIDTH)
        if not self.around.look.seen or (not shown.isascii() and _JOINERS.fullmatch(shown) and "\u200c" in shown):
            return
        self.writer.text(shown, self.around)

    def raw(self, name: str, content: str) -> None:
        """Read an element that has no mark-up inside; only style sheets say something."""
        if name == "style":
            self._sheet.read(content)

    def open(self, name: str, attributes: Mapping[str, str]) -> None:
        """Read a start tag."""
        self._end_before(name)
        outer = self.around
        around = _inside(outer, name, attributes, self._sheet)
        shown, seen = not around.look.gone, around.look.seen
        if name in _BLOCKS and shown:
            self._begin_block(name, _lines_apart(name, around, outer))
        if name in _VOID:
            if seen:
                self._void(name, attributes, around)
            return
        if seen and name == "li":
            self.writer.bullet = "1. " if around.ordered else "- "
            around = around._replace(indent=(around.indent + " " * len(self.writer.bullet))[-3 * _MAX_INDENTS :])
        if shown and attributes and (start := _starts(attributes)) is not Mark.NONE:
            self.writer.start = start
        href = attributes.get("href", "") if name == "a" and seen else ""
        self._push(_Element(name, around, href, self.writer.length))

    def _end_before(self, name: str) -> None:
        """End what a start tag ends without an end tag."""
        if name in _BLOCKS:
            self.close("head")
        if ends := _CLOSED_BY.get(name):
            self._close_last(ends)
        elif name in _BLOCKS and self._open[-1].name == "p":
            self.close("p")
        elif name == "a":
            # A link cannot stand in a link.
            self.close("a")

    def _push(self, element: _Element) -> None:
        self._places.setdefault(element.name, []).append(len(self._open))
        if element.name in _BLOCKS:
            self._blocks.append(len(self._open))
        self._open.append(element)

    def close(self, name: str) -> None:
        """Read an end tag; one that ends nothing is passed over, and one within a block ends nothing around it."""
        places = self._places.get(name)
        if name == "br":
            self.open("br", {})
        if not places or (name not in _BLOCKS and places[-1] < self._blocks[-1]):
            return
        upto = places[-1]
        while len(self._open) > upto:
            self._pop()

    def _close_last(self, names: frozenset[str]) -> None:
        """End an element of these names, unless a list or a table was opened in it."""
        last = max((places[-1] for name in names if (places := self._places.get(name))), default=0)
        holders = [self._places.get(name, ()) for name in ("ul", "ol", "table", "dl")]
        if last > max((places[-1] for places in holders if places), default=0):
            while len(self._open) > last:
                self._pop()

    def _pop(self) -> None:
        element = self._open.pop()
        name, around = element.name, element.around
        self._places[name].pop()
        if name in _BLOCKS:
            self._blocks.pop()
        if around.look.gone:
            return
        if name in _BLOCKS:
            self._end_block(name, _lines_apart(name, around, self.around))
        elif element.href and self.writer.length > element.text_before:
            self._address(element.href)

    def _begin_block(self, name: str, lines: int) -> None:
        if name in ("td", "th"):
            self.writer.new_cell = True
        else:
            self.writer.end(lines)

    def _end_block(self, name: str, lines: int) -> None:
        writer = self.writer
        if name in ("td", "th"):
            writer.end_cell()
            return
        if name == "li":
            writer.bullet = ""
        writer.end(lines)
        if name == "table":
            writer.cell_line, writer.new_cell = -1, False

    def _void(self, name: str, attributes: Mapping[str, str], around: _Around) -> None:
        writer = self.writer
        if name == "br":
            writer.end_line()
        elif name == "hr":
            writer.end(1)
            writer.put("---", around)
            writer.end(1)
        elif name == "img" and (words := _BLANKS.sub(" ", attributes.get("alt", "")).strip()):
            # An emoji is a picture in many clients, with itself as its words.
            plain = not any(character.isalnum() for character in words)
            writer.text(words if plain else f"[{words}]", around._replace(look=Look()))

    def _address(self, href: str) -> None:
        address = _BLANKS.sub("", href)
        scheme, _, rest = address.partition(":")
        if scheme.lower() not in ("http", "https", "mailto") or len(address) > _MAX_ADDRESS:
            return
        shown = unquote(rest.partition("?")[0]) if scheme.lower() == "mailto" else address
        said = "".join(self.writer.parts[-8:]).lower()
        bare = re.sub(r"^https?://(www\.)?", "", shown.lower()).rstrip("/")
        if bare and not said.rstrip("/ ").endswith(bare):
            self.writer.put(f" ({shown})", self.around)


def _lines_apart(name: str, around: _Around, outer: _Around) -> int:
    """How a block stands apart from its neighbours: on lines of its own (1), or with an empty line between (2)."""
    inner_list = name in ("ul", "ol") and bool(outer.indent)
    return 2 if name in _PARAGRAPHS and not around.close_lines and not inner_list else 1


def _inside(around: _Around, name: str, attributes: Mapping[str, str], sheet: StyleSheet) -> _Around:
    """What holds inside an element that opens."""
    style = sheet.style(name, attributes) if attributes or sheet.rules else {}
    look = around.look.inside(style)
    if name in _NEVER_SHOWN or "hidden" in attributes:
        look = Look(gone=True)
    elif name in ("pre", "xmp", "listing") and not look.kept_blanks:
        look = Look(look.gone, look.invisible, look.tiny, kept_blanks=True)
    if look is not around.look:
        around = around._replace(look=look)
    if name in ("ul", "ol"):
        around = around._replace(ordered=name == "ol")
    if name == "blockquote":
        around = _deeper(around)
    if name == "p" and (close := bool(attributes) and _has_no_margin(attributes)) != around.close_lines:
        around = around._replace(close_lines=close)
    if not attributes:
        return around
    classes = attributes.get("class", "").split()
    if "yahoo_quoted" in classes:
        around = _deeper(around)
    if (mark := _marks(attributes, classes)) is not Mark.NONE:
        around = around._replace(mark=mark)
    return around


def _deeper(around: _Around) -> _Around:
    return around._replace(quote=("> " + around.quote)[: 2 * _MAX_QUOTES], close_lines=False)


def _has_no_margin(attributes: Mapping[str, str]) -> bool:
    """Whether a paragraph is only a line, as those of Outlook are."""
    style = attributes.get("style", "").lower().replace(" ", "")
    return "msonormal" in attributes.get("class", "").lower() or bool(_NO_MARGIN.search(style))


def _marks(attributes: Mapping[str, str], classes: list[str]) -> Mark:
    """What an element says of all lines in it."""
    if any(name in classes for name in ("gmail_attr", "moz-cite-prefix")):
        return Mark.ATTRIBUTION
    if attributes.get("id") == "Signature" or any(
        name in classes
        for name in ("gmail_signature", "gmail_signature_prefix", "moz-signature", "protonmail_signature_block")
    ):
        return Mark.SIGNATURE
    return Mark.NONE


def _starts(attributes: Mapping[str, str]) -> Mark:
    """What begins where an element opens."""
    if not attributes:
        return Mark.NONE
    identity, classes = attributes.get("id", ""), attributes.get("class", "").split()
    if identity in ("divRplyFwdMsg", "mail-editor-reference-message-container") or "OutlookMessageHeader" in classes:
        return Mark.HISTORY
    if "moz-forward-container" in classes:
        return Mark.FORWARD
    style = attributes.get("style", "").lower()
    return Mark.HISTORY if "border-top" in style and _OUTLOOK_RULE.match(style.replace(" ", "")) else Mark.NONE


def html_lines(html: str) -> list[Line]:
    """What a person sees of an HTML mail, line by line.

    Links are followed by their address where it says something else than their words; pictures are told by their words.
    Whatever the client hides is left out.
    """
    reader = _Reader()
    for token in tokens(html[:_MAX_HTML]):
        match token:
            case Text(text):
                reader.text(text)
            case Open(name, attributes):
                reader.open(name, attributes)
            case Close(name):
                reader.close(name)
            case Raw(name, content):
                reader.raw(name, content)
        if reader.writer.length > _MAX_TEXT:
            break
    reader.writer.finish()
    return reader.writer.lines
