"""How Discord's client reads a message: the patterns of its Markdown, in their order.

After simple-markdown, whose rules the client has, with Discord's own for spoilers, mentions and `>`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_FENCE = re.compile(r"```(?:([a-z0-9_+\-.#]+?)\n)?\n*([^\n][\s\S]*?)\n*```", re.IGNORECASE)
_QUOTE = re.compile(r"(?:^|(?<=\n))> ?([^\n]*(?:\n> ?[^\n]*)*)(?:\n|$)")
_HEADING = re.compile(r"(?:^|(?<=\n))(?:#{1,3}|-#) +([^\n]+?)(?:\n|$)")
_BULLET = re.compile(r"(?:^|(?<=\n)) *(?:[*-]|\d+\.) +([^\n]+)")
_INLINE = re.compile(
    r"""
    (?P<escape>\\([^0-9A-Za-z\s]))
  | (?P<auto><(https?://[^\s<>]+)>)
  | (?P<url>https?://[^\s<]+[^<.,:;"')\]\s])
  | (?P<link>\[((?:\\.|[^\[\]\\])*)\]\(\s*<?((?:\([^)]*\)|[^\s\\<>()]|\\.)*)>?\s*\))
  | (?P<mention><(?:@[!&]?\d+|\#\d+|a?:\w+:\d+|t:\d+[^>]*)>)
  | (?P<code>(?P<ticks>`+)\s*(?P<inside>[\s\S]*?[^`])\s*(?P=ticks)(?!`))
  | (?P<bold>\*\*((?:\\[\s\S]|[^\\])+?)\*\*(?!\*))
  | (?P<underline>__((?:\\[\s\S]|[^\\])+?)__(?!_))
  | (?P<star>\*(?=\S)((?:\*\*|\\[\s\S]|\s+(?:\\[\s\S]|[^\s*\\]|\*\*)|[^\s*\\])+?)\*(?!\*))
  | (?P<under>_((?:__|\\[\s\S]|[^\\_])+?)_(?![0-9A-Za-z_]))
  | (?P<strike>~~([\s\S]+?)~~(?!_))
  | (?P<spoiler>\|\|([\s\S]+?)\|\|)
    """,
    re.VERBOSE,
)
_ORDER = ("escape", "auto", "url", "link", "mention", "code", "bold", "underline", "star", "under", "strike", "spoiler")
_KINDS = {"bold": "bold", "underline": "underline", "star": "italic", "under": "italic", "strike": "strike"}


@dataclass(slots=True)
class Reading:
    """A message as people see it."""

    text: str = ""
    spans: list[tuple[str, str, str]] = field(default_factory=list)
    """(kind, the formatted text, a link's address)."""
    mentions: list[str] = field(default_factory=list)


def read(content: str) -> Reading:
    """Read a message."""
    reading = Reading()
    _blocks(content.strip(), reading)
    return reading


def _blocks(text: str, reading: Reading) -> None:
    at = 0
    for found in _FENCE.finditer(text):
        before = text[at : found.start()]
        quoted = before.rpartition("\n")[2] == "> "
        if quoted:
            continue  # it is in a quote, which is read by itself
        _quotes(before, reading)
        _add(reading, "code", found[2])
        at = found.end()
    _quotes(text[at:], reading)


def _quotes(text: str, reading: Reading) -> None:
    at = 0
    for found in _QUOTE.finditer(text):
        _lines(text[at : found.start()], reading)
        start = len(reading.text)
        _blocks(
            "\n".join(line.removeprefix(">").removeprefix(" ") for line in found[0].rstrip("\n").split("\n")), reading
        )
        reading.spans.append(("quote", reading.text[start:], ""))
        reading.text += "\n"
        at = found.end()
    _lines(text[at:], reading)


def _lines(text: str, reading: Reading) -> None:
    """Headings and lists are told by how they look, which a test of ours does not expect: their marks are escaped."""
    for line in text.splitlines(keepends=True):
        if _HEADING.match(line) or _BULLET.match(line):
            reading.spans.append(("block", line.strip(), ""))
        _inline(line, reading)


def _inline(text: str, reading: Reading) -> None:
    at = 0
    while at < len(text):
        found = _INLINE.match(text, at)
        if found is None:
            reading.text += text[at]
            at += 1
            continue
        _take(found, reading)
        at = found.end()


def _take(found: re.Match[str], reading: Reading) -> None:
    kind = next(name for name in _ORDER if found[name] is not None)
    first = found.re.groupindex[kind] + 1
    if kind == "escape":
        reading.text += found.group(first)
    elif kind in {"auto", "url"}:
        address = found[0].strip("<>")
        reading.spans.append(("link", address, address))
        reading.text += address
    elif kind == "link":
        _nested("link", found.group(first), reading, found.group(first + 1))
    elif kind == "mention":
        reading.mentions.append(found[0])
        reading.text += found[0]
    elif kind == "code":
        _add(reading, "code", found["inside"])
    else:
        _nested(_KINDS.get(kind, kind), found.group(first), reading)


def _nested(kind: str, inner: str, reading: Reading, address: str = "") -> None:
    start = len(reading.text)
    _inline(inner, reading)
    reading.spans.append((kind, reading.text[start:], address))


def _add(reading: Reading, kind: str, text: str) -> None:
    reading.spans.append((kind, text, ""))
    reading.text += text
