"""Reads the inside of a paragraph: the parser's inline tokens become runs of text with marks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from channels._text.clean import clean
from channels._text.links import has_visible_text, target_of
from channels._text.tree import BOLD, CODE, ITALIC, STRIKE, UNDERLINE, Mark, Run, Runs, plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from markdown_it.token import Token

_OPENING = {"strong_open": BOLD, "em_open": ITALIC, "s_open": STRIKE}
_CLOSING = frozenset({"strong_close", "em_close", "s_close"})
_TAG_MARKS: dict[str, Mark | None] = {
    **dict.fromkeys(("b", "strong", "summary"), BOLD),
    **dict.fromkeys(("i", "em", "var"), ITALIC),
    **dict.fromkeys(("u", "ins"), UNDERLINE),
    **dict.fromkeys(("s", "del", "strike"), STRIKE),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), CODE),
    **dict.fromkeys(("p", "div", "span", "center", "small", "mark", "details")),
}
# They stand in paragraphs of their own, far from their other half.
_LONE_TAGS = frozenset({"details", "summary", "div", "p", "center"})
_SHIFTED = frozenset({"sup", "sub"})
_RAISED = str.maketrans("0123456789+-=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ")
_LOWERED = str.maketrans("0123456789+-=()", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎")


def read_runs(tokens: Sequence[Token], address_limit: int | None) -> Runs:
    """Return the runs of one block's inline tokens; none is empty."""
    reader = _InlineReader(tokens, address_limit)
    for index, token in enumerate(tokens):
        reader.read(index, token)
    return tuple(reader.runs)


@dataclass(frozen=True, slots=True)
class _OpenLink:
    """A link whose label is being read."""

    address: str
    first: int
    marks: tuple[Mark, ...]
    after: str


class _InlineReader:
    """The runs so far, and the marks that are open."""

    def __init__(self, tokens: Sequence[Token], address_limit: int | None) -> None:
        self.runs: list[Run] = []
        self._tags = _read_tags(tokens)
        self._address_limit = address_limit
        self._marks: tuple[Mark, ...] = ()
        self._links: list[_OpenLink] = []
        self._readers: dict[str, Callable[[Token], None]] = {
            "code_inline": lambda token: self._write(token.content, CODE),
            "formula": lambda token: self._write(token.content, CODE),
            "link_open": self._open_link,
            "link_close": lambda _: self._close_link(),
            "image": self._image,
        }

    def read(self, index: int, token: Token) -> None:
        """Take the next token."""
        kind = token.type
        if kind == "text":
            self._write(token.content)
        elif kind in {"softbreak", "hardbreak"}:
            self._write("\n")
        elif kind in _OPENING:
            self._marks = (*self._marks, _OPENING[kind])
        elif kind in _CLOSING:
            self._marks = self._marks[:-1]
        elif kind == "html_inline":
            self._tag(index, token)
        elif kind in self._readers:
            self._readers[kind](token)

    def _write(self, text: str, *more: Mark) -> None:
        if not text:
            return
        if not text.isprintable() and text != "\n":
            # A character reference can bring in what was taken out of the source.
            text = clean(text).replace("\t", " ")
        marks = (*self._marks, *more)
        last = self.runs[-1] if self.runs else None
        if last is not None and last.marks == marks and not (self._links and len(self.runs) == self._links[-1].first):
            self.runs[-1] = Run(last.text + text, marks)
        elif text:
            self.runs.append(Run(text, marks))

    def _open_link(self, token: Token) -> None:
        address = str(token.attrGet("href") or "")
        # `Ann <ann@example.test>` is a line of a mail more often than a link: its brackets stay.
        is_mail = token.info == "auto" and address.startswith("mailto:")
        if is_mail:
            self._write("<")
        self._links.append(_OpenLink(address, len(self.runs), self._marks, ">" if is_mail else ""))

    def _close_link(self) -> None:
        if not self._links:
            return
        link = self._links.pop()
        label = tuple(self.runs[link.first :])
        del self.runs[link.first :]
        self._marks = link.marks
        self._add_link(link.address, label)
        self._write(link.after)

    def _add_link(self, address: str, label: Runs) -> None:
        """Put a link's label in, and its address after it where the label is something else."""
        text = plain_text(label)
        if not has_visible_text(text):
            label, text = (Run(address, self._marks),), address
        target = target_of(address, text, self._address_limit)
        if not target.href and not target.shown and text == address:
            return  # an invisible label on an address that must not be shown
        link = (Mark("link", target.href),) if target.href else ()
        depth = len(self._marks)
        self.runs.extend(Run(run.text, (*run.marks[:depth], *link, *run.marks[depth:])) for run in label)
        if target.shown:
            self._write(" (")
            self._write(target.shown, *(() if target.full else link))
            self._write(")")

    def _image(self, token: Token) -> None:
        """A picture is never loaded: its description stands for it, and links to it."""
        alt = "".join(child.content or "\n" * (child.type == "softbreak") for child in token.children or [])
        if self._links:
            self._write(alt)
        else:
            self._add_link(str(token.attrGet("src") or ""), (Run(clean(alt), self._marks),) if alt else ())

    def _tag(self, index: int, token: Token) -> None:
        name = self._tags.get(index)
        if name is None:
            self._write(token.content)
        elif name == "br":
            self._write("\n")
        elif name not in _SHIFTED:  # what stands between those was raised or lowered when the tags were read
            self._mark_tag(name, closing=token.content.startswith("</"))

    def _mark_tag(self, name: str, *, closing: bool) -> None:
        mark = _TAG_MARKS[name]
        if mark is None:
            return
        if not closing:
            self._marks = (*self._marks, mark)
        elif mark in self._marks:
            at = len(self._marks) - 1 - self._marks[::-1].index(mark)
            self._marks = (*self._marks[:at], *self._marks[at + 1 :])


def _read_tags(tokens: Sequence[Token]) -> dict[int, str]:
    """Return the places of the tags that mean formatting, with their names. All others are text: `List<String>`."""
    known: dict[int, str] = {}
    lone: dict[int, str] = {}
    open_tags: list[tuple[str, int]] = []
    for index, token in enumerate(tokens):
        if token.type != "html_inline":
            continue
        name = _tag_name(token.content)
        if name == "br":
            known[index] = name
        elif name in _TAG_MARKS or name in _SHIFTED:
            _pair(tokens, index, name, open_tags, known)
            if name in _LONE_TAGS and _is_alone(tokens, index):
                lone[index] = name
    return {**lone, **known}


def _pair(
    tokens: Sequence[Token], index: int, name: str, open_tags: list[tuple[str, int]], known: dict[int, str]
) -> None:
    if not tokens[index].content.startswith("</"):
        open_tags.append((name, index))
        return
    if not open_tags or open_tags[-1][0] != name:
        return
    start = open_tags.pop()[1]
    if name in _SHIFTED and not _shift(tokens[start + 1 : index], name):
        return
    known[start] = known[index] = name


def _shift(inside: Sequence[Token], name: str) -> bool:
    """Raise or lower a number; without its tags 10<sup>6</sup> would be another number."""
    table = _RAISED if name == "sup" else _LOWERED
    if len(inside) != 1 or not all(ord(char) in table for char in inside[0].content):
        return False
    inside[0].content = inside[0].content.translate(table)
    return True


def _tag_name(tag: str) -> str:
    name = tag.strip("</>").split(maxsplit=1)
    return name[0].rstrip("/").lower() if name else ""


def _is_alone(tokens: Sequence[Token], index: int) -> bool:
    """Whether the tag opens or closes its line: in a sentence it is meant as a word."""
    step = 1 if tokens[index].content.startswith("</") else -1
    place = index + step
    while 0 <= place < len(tokens) and tokens[place].type == "html_inline":
        place += step
    return not 0 <= place < len(tokens) or tokens[place].type in {"softbreak", "hardbreak"}
