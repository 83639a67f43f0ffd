"""Our Markdown as Discord messages: a text in Discord's own Markdown, in which nothing is read that was not meant.

Discord shows a text and no marks beside it, so a text is laid out first and cut, and each piece is written with its
marks; it is cut again, shorter, when those make it too long. Every line carries its own marks, so that a cut breaks
none. Discord draws no tables: they are blocks of code, or lists when they are wide. It trims blanks at the ends of a
message and refuses one without a visible character. What would notify somebody is only text; that it is no mention is
said with each call as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from channels._text.cut import next_cut
from channels._text.layout import GUARD, Layout, Span, lay_out, span_order
from channels._text.links import has_visible_text
from channels._text.measure import utf16_len
from channels._text.parse import parse
from channels.discord.markup import LINK_CHARACTERS, MESSAGE_CHARACTERS, code_block, line_markup
from zerobot.core.channel import MessageBody

REPEAT_MARK = "↻ possibly a repeat:\n"
MESSAGE_LIMIT = MESSAGE_CHARACTERS - len(REPEAT_MARK)
"""Characters of a message with its marks, with room for the mark of a possible repeat."""
ADDRESS_LIMIT = 120
"""Longer addresses, in characters, are shown by their beginning; the link still goes to the whole address."""
_QUOTE = "> "


def render(markdown: str) -> list[MessageBody]:
    """Render a model's Markdown, or the beginning of it, as the messages that show it.

    Args:
        markdown: Any text; there is none that cannot be rendered.

    Returns:
        In order, each within Discord's limit; none at all when nothing is visible.
    """
    layout = lay_out(parse(markdown, address_limit=ADDRESS_LIMIT))
    if any(span.kind == "link" and len(span.value) > LINK_CHARACTERS for span in layout.spans):
        layout = lay_out(parse(markdown))  # what can't be linked to is written out
    return [MessageBody(text) for text in _messages(layout) if has_visible_text(text)]


def mark_repeat(body: MessageBody) -> MessageBody:
    """Put the mark of a possible repeat before a message."""
    return MessageBody(REPEAT_MARK + body.text, body.format)


def _messages(layout: Layout) -> Iterator[str]:
    keep = [(span.start, span.end) for span in layout.spans if span.kind == "pre"]
    start = 0
    while start < len(layout.text):
        limit = MESSAGE_LIMIT
        while True:
            end = next_cut(layout.text, start, limit, utf16_len, keep)
            text = _written(layout, start, end)
            length = utf16_len(text)
            if length <= MESSAGE_LIMIT or limit == 1:
                break
            limit = max(1, min(limit - 1, (end - start) * MESSAGE_LIMIT // length))
        yield text
        start = end


def _written(layout: Layout, start: int, end: int) -> str:
    """A piece of the text in Discord's Markdown."""
    spans = [
        Span(max(span.start, start), min(span.end, end), span.kind, span.value)
        for span in layout.spans
        if span.start < end and span.end > start
    ]
    quotes = [span for span in spans if span.kind == "quote"]
    inline = sorted((span for span in spans if span.kind not in {"quote", "pre"}), key=span_order)
    lines: list[str] = []
    at = start
    for block in (span for span in spans if span.kind == "pre"):
        lines += _lines(layout.text, at, block.start, inline, quotes)
        code = layout.text[block.start : block.end].removeprefix(GUARD).strip("\n")
        if code.strip():
            lines += _quoted(code_block(code, block.value).split("\n"), block.start, quotes)
        at = block.end + (layout.text[block.end : block.end + 1] == "\n")
    lines += _lines(layout.text, at, end, inline, quotes)
    return "\n".join(lines).strip()


def _lines(text: str, start: int, end: int, spans: Sequence[Span], quotes: Sequence[Span]) -> list[str]:
    """Write what is no code, line by line."""
    if start >= end:
        return []
    lines: list[str] = []
    for line in text[start:end].removesuffix("\n").split("\n") if end < len(text) else text[start:end].split("\n"):
        stop = start + len(line)
        inside = [
            Span(max(span.start, start) - start, min(span.end, stop) - start, span.kind, span.value)
            for span in spans
            if span.start < stop and span.end > start
        ]
        lines += _quoted([line_markup(line, inside)], start, quotes)
        start = stop + 1
    return lines


def _quoted(lines: Sequence[str], at: int, quotes: Sequence[Span]) -> list[str]:
    if any(span.start <= at < span.end for span in quotes):
        return [_QUOTE + line for line in lines]
    return list(lines)
