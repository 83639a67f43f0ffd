"""Discord's own Markdown: what has to be escaped, and how a formatted stretch of a line is written.

The rules are those of Discord's client, which reads messages by an ordered list of patterns (simple-markdown's): a
backslash takes the meaning of any sign; `**`, `__` and `~~` enclose anything, `*` what does not begin with a blank.
Where a format cannot be expressed it is left out: no word is lost, no sign appears.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

from channels._text.layout import Span

MESSAGE_CHARACTERS = 2000
"""Characters of a message: https://discord.com/developers/docs/resources/message#create-message. Counted in UTF-16
units here, so that it holds whichever way Discord counts."""
LINK_CHARACTERS = 1500
"""Longer addresses are text: with one of them and its label a message would be full."""
_FENCE = "```"
_APART = "\u200b"
"""A character of no width: it holds marks apart that would be read as others."""
_BROKEN_FENCE = f"`{_APART}`{_APART}`"
_MARKS = frozenset("*_~`")
_ALWAYS = frozenset("\\*`<[]")


def escape(text: str, start: int = 0, end: int | None = None) -> str:
    """Write a text so that all of it is shown as it is and nothing of it is a mark, a mention or an address.

    Args:
        text: Any.
        start: Where to begin; what stands before counts, since some signs mean something only after others.
        end: Where to end; None: with the text.
    """
    pieces: list[str] = []
    for index in range(start, len(text) if end is None else end):
        if _has_meaning(text, index):
            pieces.append("\\")
        pieces.append(text[index])
    return "".join(pieces)


def _has_meaning(text: str, index: int) -> bool:
    char = text[index]
    if char in _ALWAYS:
        return True
    before, after = text[index - 1 : index] if index else "", text[index + 1 : index + 2]
    meaning = False
    match char:
        case "_":
            # Within a word of plain letters it is one; Discord's patterns know no others.
            meaning = not ((before + after).isascii() and before.isalnum() and after.isalnum())
        case "~" | "|":
            meaning = char in (before, after)
        case ":":
            meaning = text.startswith("//", index + 1)
        case "#" | ">" | "-" | "+":
            meaning = not _line_before(text, index).strip()
        case ".":  # `12. ` begins an item of a list, after blanks too
            meaning = after in {"", " "} and _line_before(text, index).strip().isdecimal()
    return meaning


def _line_before(text: str, index: int) -> str:
    return text[text.rfind("\n", 0, index) + 1 : index]


def holds_fence(text: str) -> bool:
    """Whether a text would end a block of code."""
    return _FENCE in text


def code_block(text: str, language: str = "") -> str:
    """A block of code. A fence in it is broken by characters of no width, and a back-tick at its end set apart."""
    if text.endswith("`"):
        text += _APART
    language = language if language.isascii() else ""
    return f"{_FENCE}{language}\n{text.replace(_FENCE, _BROKEN_FENCE)}\n{_FENCE}"


def line_markup(text: str, spans: Sequence[Span]) -> str:
    """Write one line with its formatting.

    Args:
        text: The line, without a line feed.
        spans: Within the line, sorted by start, outer before inner; none crosses another.
    """
    return _stretch(text, 0, len(text), list(spans), enclosed=False)


def _stretch(text: str, start: int, end: int, spans: list[Span], *, enclosed: bool) -> str:
    """Write a part of a line; `enclosed`: there are marks around it already."""
    out, at = "", start
    while spans:
        span = spans.pop(0)
        inside: list[Span] = []
        while spans and spans[0].start < span.end:
            inside.append(spans.pop(0))
        first, last = _tight(text, span)
        if first < last:
            out = _joined(out, escape(text, at, first))
            out = _joined(out, _formatted(text, Span(first, last, span.kind, span.value), inside, enclosed=enclosed))
            at = last
    return _joined(out, escape(text, at, end))


def _joined(before: str, after: str) -> str:
    """Put two pieces together; marks that would meet, and be read as others, are held apart."""
    meet = before[-1:] in _MARKS and after[:1] in _MARKS
    return f"{before}{_APART}{after}" if before and after and meet else before + after


def _tight(text: str, span: Span) -> tuple[int, int]:
    """A span without the blanks at its ends: beside them Discord would take marks for signs."""
    start, end = span.start, span.end
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _formatted(text: str, span: Span, inside: list[Span], *, enclosed: bool) -> str:
    words = text[span.start : span.end]
    if span.kind == "code":
        return _inline_code(words) or escape(text, span.start, span.end)
    inner = _stretch(text, span.start, span.end, inside, enclosed=True)
    if span.kind == "link":
        # A star would end the bold text around it.
        return _link(words, inner, span.value.replace("*", "%2A") if enclosed else span.value)
    mark = {"bold": "**", "italic": "*", "underline": "__", "strike": "~~"}.get(span.kind, "")
    if (span.kind == "strike" and "~" in inner) or (span.kind == "underline" and "__" in inner):
        return inner
    return _joined(_joined(mark, inner), mark)


def _inline_code(code: str) -> str:
    """Code within a line; empty where it cannot be told from its fence."""
    if "``" in code:
        return ""
    fence = "``" if "`" in code else "`"
    # Blanks beside the fence are not shown, and keep a back-tick from becoming a part of it.
    pad = " " if code.startswith("`") or code.endswith("`") else ""
    return f"{fence}{pad}{code}{pad}{fence}"


def _link(label: str, inner: str, address: str) -> str:
    """A link; angle brackets keep Discord from fetching a preview. A label that is another address is no link."""
    if "://" in label and unquote(label) == unquote(address):
        return f"<{address}>"
    if "://" in label or len(address) > LINK_CHARACTERS:
        return inner
    return f"[{inner}](<{address.replace('(', '%28').replace(')', '%29')}>)"
