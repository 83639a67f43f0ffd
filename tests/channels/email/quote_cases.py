"""Reads the mails of `tests/cases/quotes`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from channels.email.mail import Body

FOLDER = Path(__file__).parents[2] / "cases" / "quotes"


@dataclass(frozen=True)
class QuoteCase:
    """A body as a client writes it, and what is new in it."""

    name: str
    body: Body
    subject: str
    new: str


def quote_cases() -> Iterator[QuoteCase]:
    """All cases, by the name of their file and their own."""
    above = mail = ""
    for path in sorted(FOLDER.glob("*.txt")):
        for part in f"\n{path.read_text(encoding='utf-8')}".split("\n%% ")[1:]:
            head, _, text = part.partition("\n")
            if head == "new":
                title, _, subject = above.partition(" subject=")
                name, *marks = title.split()
                body = Body(text=mail, html="html" in marks, flowed="flowed" in marks, delsp="delsp" in marks)
                yield QuoteCase(f"{path.stem}/{name}", body, subject, text.strip("\n"))
            above, mail = head, f"{text}\n"
