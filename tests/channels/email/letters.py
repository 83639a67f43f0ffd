"""Letters for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from channels.email.mail import Mailbox
from channels.email.render import render
from channels.email.writing.compose import pack
from channels.email.writing.letter import Letter, Parcel

BOT = Mailbox("Zero", "bot@example.com")
ANN = Mailbox("Ann", "ann@example.com")
BEN = Mailbox("Ben", "ben@example.com")
ASKED = "<question@example.com>"


def letter(text: str = "Hello **Ann**", **changes: Any) -> Letter:
    """A short answer to Ann."""
    usual: dict[str, Any] = {
        "key": "turn.1.0",
        "sender": BOT,
        "to": ANN,
        "subject": "Re: a question",
        "body": render(text)[0],
        "date": datetime(2026, 3, 1, 12, tzinfo=UTC),
        "in_reply_to": ASKED,
    }
    return Letter(**usual | changes)


def parcel(key: str = "turn.1.0", text: str = "Hello **Ann**", **changes: Any) -> Parcel:
    """The same, ready to be handed over."""
    return pack(letter(text, key=key, **changes))
