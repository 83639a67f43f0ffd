"""The two forms of a message's body: plain text, and a fragment of HTML that says the same."""

from __future__ import annotations

from zerobot.core.channel import MessageBody

_HTML = "html"


def with_html(text: str, html: str) -> MessageBody:
    """A body in both forms."""
    return MessageBody(text, {_HTML: html})


def html_of(body: MessageBody) -> str:
    """The HTML of a body; empty: it has plain text only."""
    return str(body.format.get(_HTML, ""))
