"""Our Markdown as a mail: HTML for who reads it so, and the same words as plain text. One message, however long."""

from __future__ import annotations

from collections.abc import Iterator

from channels._text.layout import GUARD, Layout, lay_out
from channels._text.links import has_visible_text
from channels._text.parse import parse
from channels.email.writing.body import html_of, with_html
from channels.email.writing.html import fragment, paragraph
from zerobot.core.channel import MessageBody

REPEAT_MARK = "↻ possibly a repeat:"
ADDRESS_LIMIT = 120
"""Longer addresses, in characters, are shown by their beginning in HTML; the link still goes to the whole address."""


def render(markdown: str) -> list[MessageBody]:
    """Render a model's Markdown as the one message that shows all of it.

    Args:
        markdown: Any text; there is none that cannot be rendered.

    Returns:
        One message with `html` in its format, a fragment of a document; none at all when nothing is visible.
    """
    blocks = parse(markdown)
    layout = lay_out(blocks)
    text = _plain_text(layout)
    if not has_visible_text(text):
        return []
    if any(span.kind == "link" and len(span.value) > ADDRESS_LIMIT for span in layout.spans):
        blocks = parse(markdown, address_limit=ADDRESS_LIMIT)
    return [with_html(text, fragment(blocks))]


def plain(body: MessageBody) -> MessageBody:
    """The same message as plain text only."""
    return MessageBody(body.text)


def mark_repeat(body: MessageBody) -> MessageBody:
    """Put the mark of a possible repeat before a message, in both of its forms."""
    text, html = f"{REPEAT_MARK}\n\n{body.text}", html_of(body)
    return with_html(text, paragraph(REPEAT_MARK) + html) if html else MessageBody(text)


def _plain_text(layout: Layout) -> str:
    """The laid out text with the marks that a mail's readers know: each line of a quotation begins with `> `."""
    guards = {span.start for span in layout.spans if span.kind == "pre" and layout.text.startswith(GUARD, span.start)}
    quotes = [(span.start, span.end) for span in layout.spans if span.kind == "quote"]
    lines = []
    for start, line in _lines(layout.text):
        quoted = any(first <= start < end for first, end in quotes)
        guarded = start in guards
        lines.append(("> " if quoted else "") + (line.removeprefix(GUARD) if guarded else line))
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text, each with the place at which it starts."""
    start = 0
    for line in text.split("\n"):
        yield start, line
        start += len(line) + 1
