"""Turns a web page into Markdown: a script that runs in a process of its own, so that it can be ended.

A page can be written so that any parser takes minutes or all memory for it. This process reads a JSON line (`address`,
`seconds`, `memory`, `characters`), then HTML, from its standard input, and writes Markdown to its standard output. It
opens nothing, and imports nothing of zerobot.
"""

import json
import re
import resource
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode

# What no reader sees, or nobody reads.
_SKIPPED = re.compile(
    "-comment|head|script|style|noscript|template|svg|canvas|iframe|object|embed|audio|video|datalist"
)
_HIDDEN_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_BLOCKS = re.compile(
    "address|article|aside|body|caption|center|details|dd|div|dl|dt|fieldset|figcaption|figure|footer|form|header|main"
    "|nav|ol|p|section|summary|table|ul"
)
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_WRAPS = {"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`", "kbd": "`", "samp": "`", "del": "~~", "s": "~~"}
_LAYOUT = "table, ul, ol, pre, blockquote, h1, h2, h3, h4, h5, h6"
"""What stands in a cell only where a table gives a page its shape."""
_BLANKS = re.compile(r"[ \t\r\n\f\xa0]+")


@dataclass(slots=True)
class _Writer:
    """Text in the making: blanks and empty lines are put off until something follows them."""

    limit: int
    parts: list[str] = field(default_factory=list)
    length: int = 0
    breaks: int = 0
    blank: bool = False
    indents: list[str] = field(default_factory=list)
    preformatted: int = 0
    cells: int = 0
    """Cells of tables that are open: what is in one stays on its line."""
    fresh: bool = False
    """Whether the last thing is an opening mark, which what comes next follows at once."""

    def text(self, text: str) -> None:
        """Add running text."""
        if self.preformatted:
            self.raw(text.replace("\n", "\n" + "".join(self.indents)))
            return
        words = _BLANKS.sub(" ", text)
        self.blank |= words.startswith(" ") and not self.fresh
        if inner := words.strip(" "):
            self.raw(inner)
            self.blank = words.endswith(" ")

    def raw(self, text: str) -> None:
        """Add text as it is, after whatever was put off."""
        if self.breaks and self.parts:
            self._add("\n" * self.breaks)
        if self.breaks or not self.parts:
            self._add("".join(self.indents))
        elif self.blank:
            self._add(" ")
        self.breaks, self.blank, self.fresh = 0, False, False
        self._add(text)

    def open(self, mark: str) -> None:
        """Add a mark that belongs to what follows."""
        self.raw(mark)
        self.fresh = True

    def close(self, mark: str) -> None:
        """Add a mark that belongs to what stands before it; blanks and lines that were put off come after it."""
        if self.fresh:
            # There is nothing between the two.
            self.parts.pop()
            self.fresh = False
            return
        breaks, blank, self.breaks, self.blank = self.breaks, self.blank, 0, False
        self.raw(mark)
        self.breaks, self.blank = breaks, blank

    def end(self, lines: int) -> None:
        """End what a mark has opened, be it empty or not."""
        self.fresh = False
        self.line(lines)

    def line(self, lines: int) -> None:
        """Let what follows begin on a new line, or after an empty one."""
        if self.fresh:
            return
        if self.cells:
            self.blank = True
        else:
            self.breaks = max(self.breaks, lines)

    @property
    def full(self) -> bool:
        return self.length > self.limit

    def _add(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)


def to_markdown(html: str, address: str, limit: int) -> str:
    """The visible text of a page, with its headings, lists, links, tables and code, after a line with its title.

    Args:
        html: The page.
        address: Where it came from; links are told in full.
        limit: Characters, about; what comes later is left out.
    """
    tree = LexborHTMLParser(html)
    writer = _Writer(limit)
    title = tree.css_first("head title")
    if title is not None and (name := _BLANKS.sub(" ", title.text()).strip()):
        writer.raw(f"Title: {name[:500]}")
        writer.line(2)
    if tree.body is not None:
        for step in _steps(tree.body, address):
            if writer.full:
                break
            step(writer)
    return "".join(writer.parts).strip("\n")


_Step = Callable[[_Writer], None]


def _steps(root: LexborNode, address: str) -> Iterator[_Step]:
    """What to write, in the order of the document; not recursive, since pages can be nested without end."""
    left: list[LexborNode | _Step] = [root]
    while left:
        node = left.pop()
        if not isinstance(node, LexborNode):
            yield node
            continue
        if node.tag == "-text":
            yield _say(node.text_content or "")
        elif not _skipped(node):
            before, after = _frame(node, address)
            yield before
            left.append(after)
            children = list(node.iter(include_text=True))
            left += reversed(children)


def _skipped(node: LexborNode) -> bool:
    if _SKIPPED.fullmatch(node.tag or ""):
        return True
    attributes = node.attributes
    return "hidden" in attributes or bool(_HIDDEN_STYLE.search(attributes.get("style") or ""))


def _say(text: str) -> _Step:
    return lambda writer: writer.text(text)


def _both(lines: int) -> tuple[_Step, _Step]:
    def step(writer: _Writer) -> None:
        writer.line(lines)

    return step, step


def _nothing(_writer: _Writer) -> None:
    pass


def _frame(node: LexborNode, address: str) -> tuple[_Step, _Step]:
    """What stands before the content of an element, and after it."""
    tag = node.tag or ""
    if tag in _HEADINGS:
        return _block(_HEADINGS[tag] + " ")
    if tag in _WRAPS:
        return _wrap(_WRAPS[tag])
    if tag in ("td", "th", "tr", "li", "pre", "blockquote", "br", "hr", "a", "img"):
        return _SPECIAL[tag](node, address)
    return _both(2) if _BLOCKS.fullmatch(tag) else (_nothing, _nothing)


def _block(mark: str) -> tuple[_Step, _Step]:
    def before(writer: _Writer) -> None:
        writer.line(2)
        writer.open(mark)

    return before, lambda writer: writer.end(2)


def _wrap(mark: str) -> tuple[_Step, _Step]:
    def before(writer: _Writer) -> None:
        if not writer.preformatted:
            writer.open(mark)

    def after(writer: _Writer) -> None:
        if not writer.preformatted:
            writer.close(mark)

    return before, after


def _cell(node: LexborNode, _address: str) -> tuple[_Step, _Step]:
    if node.css_first(_LAYOUT) is not None:
        return _both(2)

    def before(writer: _Writer) -> None:
        writer.open("| ")
        writer.cells += 1

    def after(writer: _Writer) -> None:
        writer.cells -= 1
        writer.fresh, writer.blank = False, True

    return before, after


def _row(_node: LexborNode, _address: str) -> tuple[_Step, _Step]:
    return _both(1)


def _item(node: LexborNode, _address: str) -> tuple[_Step, _Step]:
    mark = "- " if node.parent is None or node.parent.tag != "ol" else "1. "

    def before(writer: _Writer) -> None:
        # An item of an inner list follows its outer one closely.
        writer.breaks = 1 if writer.indents else max(writer.breaks, 1)
        writer.open(mark)
        writer.indents.append(" " * len(mark))

    def after(writer: _Writer) -> None:
        writer.indents.pop()
        writer.end(1)

    return before, after


def _preformatted(_node: LexborNode, _address: str) -> tuple[_Step, _Step]:
    def before(writer: _Writer) -> None:
        writer.line(2)
        writer.raw("```")
        writer.line(1)
        writer.preformatted += 1

    def after(writer: _Writer) -> None:
        writer.preformatted -= 1
        writer.parts[-1] = writer.parts[-1].rstrip("\n")
        writer.line(1)
        writer.raw("```")
        writer.line(2)

    return before, after


def _quote(_node: LexborNode, _address: str) -> tuple[_Step, _Step]:
    def before(writer: _Writer) -> None:
        writer.line(2)
        writer.indents.append("> ")

    def after(writer: _Writer) -> None:
        writer.indents.pop()
        writer.line(2)

    return before, after


def _rule(_node: LexborNode, _address: str) -> tuple[_Step, _Step]:
    def before(writer: _Writer) -> None:
        writer.line(2)
        writer.raw("---")

    return before, lambda writer: writer.line(2)


def _image(node: LexborNode, _address: str) -> tuple[_Step, _Step]:
    words = _BLANKS.sub(" ", node.attributes.get("alt") or "").strip()
    return (_say(f"[picture: {words}]") if words else _nothing), _nothing


def _link(node: LexborNode, address: str) -> tuple[_Step, _Step]:
    try:
        target = urljoin(address, (node.attributes.get("href") or "").strip())
    except ValueError:
        target = ""
    if not target.startswith(("http://", "https://")) or target.partition("#")[0] == address:
        return _nothing, _nothing
    words = _BLANKS.sub(" ", node.text()).strip()
    if not words:
        return _nothing, _nothing

    return lambda writer: writer.open("["), lambda writer: writer.close(f"]({target})")


def _break(_node: LexborNode, _address: str) -> tuple[_Step, _Step]:
    return (lambda writer: writer.line(1)), _nothing


_SPECIAL: dict[str, Callable[[LexborNode, str], tuple[_Step, _Step]]] = {
    "td": _cell,
    "th": _cell,
    "tr": _row,
    "li": _item,
    "pre": _preformatted,
    "blockquote": _quote,
    "br": _break,
    "hr": _rule,
    "a": _link,
    "img": _image,
}


def main() -> None:
    """Read, convert, write, within the limits that the order sets."""
    order = json.loads(sys.stdin.buffer.readline())
    resource.setrlimit(resource.RLIMIT_CPU, (order["seconds"], order["seconds"]))
    resource.setrlimit(resource.RLIMIT_AS, (order["memory"], order["memory"]))
    html = sys.stdin.buffer.read().decode("utf-8")
    text = to_markdown(html, order["address"], order["characters"])
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
