"""HTML as tags and text, one after the other.

No tree is built. A mail comes from anybody, and trees can be made to grow without bounds: in Lexbor, 100,000 nested
`div` take 17 seconds, 40 kB of unclosed `font` become half a million nodes, and both grow with the square of the
input. What is read here is read once, from left to right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import NamedTuple

_TAG = re.compile(r"""<(/?)([a-zA-Z][^\s/>]*+)((?:[^>"']++|"[^"]*+"|'[^']*+')*+)>""")
# For the rest of a document in which a quotation mark is missing.
_LOOSE_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*+)([^>]*+)>")
_ATTRIBUTE = re.compile(r"""([^\s=/"']++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s]++)))?""")
_NO_TAGS = re.compile(r"(?:<(?![a-zA-Z!?/]))+")
_COMMENT_END = re.compile(r"--!?>")
# What is in them is text to its end tag, whatever it looks like (HTML standard, 13.2.5.1 and following).
_RAW = {
    name: re.compile(rf"</{name}[\s/>]", re.IGNORECASE)
    for name in ("script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes")
}


class Text(NamedTuple):
    """Running text, its references (`&amp;`) resolved."""

    text: str


class Open(NamedTuple):
    """A start tag."""

    name: str
    attributes: Mapping[str, str]
    """By lower-case name; the first of several with one name counts."""


class Close(NamedTuple):
    """An end tag."""

    name: str


class Raw(NamedTuple):
    """A whole element whose content is no mark-up: a script, a style sheet."""

    name: str
    content: str


Token = Text | Open | Close | Raw


def tokens(html: str) -> Iterator[Token]:
    """The tags and the text of a document; comments, declarations and processing instructions are left out."""
    tag = _TAG
    at = 0
    while True:
        start = html.find("<", at)
        if start < 0:
            start = len(html)
        if start > at:
            yield Text(unescape(html[at:start]))
        if start == len(html):
            return
        found = tag.match(html, start)
        if found is None and _begins_tag(html, start):
            # One quotation mark too few: the strict form would be tried in vain for each tag to come.
            tag = _LOOSE_TAG
            found = tag.match(html, start)
            if found is None:
                # Nothing ends a tag any more. Browsers drop the rest; somebody may have written `a<b`.
                yield Text(unescape(html[start:]))
                return
        at, token = _no_tag(html, start) if found is None else _element(html, found)
        if token is not None:
            yield token


def _begins_tag(html: str, start: int) -> bool:
    name = html[start + 1 : start + 3].removeprefix("/")[:1]
    return name.isascii() and name.isalpha()


def _element(html: str, tag: re.Match[str]) -> tuple[int, Token]:
    """What a tag stands for, and where reading goes on."""
    name = tag[2].lower()
    if tag[1]:
        return tag.end(), Close(name)
    if (end := _RAW.get(name)) is not None:
        close = end.search(html, tag.end())
        stop = close.start() if close else len(html)
        return stop, Raw(name, html[tag.end() : stop])
    return tag.end(), Open(name, _attributes(tag[3]) if len(tag[3]) > 1 else {})


def _no_tag(html: str, start: int) -> tuple[int, Text | None]:
    """Where reading goes on after a `<` that begins no tag, and the text that it stands for."""
    if html.startswith(("<!", "<?", "</"), start):
        if html.startswith("<!--", start):
            # `<!-->` is a whole comment.
            found = _COMMENT_END.search(html, start + 2)
            return (found.end() if found else len(html)), None
        end = html.find(">", start)
        return (end + 1 if end >= 0 else len(html)), None
    marks = _NO_TAGS.match(html, start)
    end = marks.end() if marks else start + 1
    return end, Text(html[start:end])


def _attributes(text: str) -> dict[str, str]:
    attributes: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(text):
        attributes.setdefault(name.lower(), unescape(double or single or bare))
    return attributes
