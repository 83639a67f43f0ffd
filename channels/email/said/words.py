"""What a mail says: its new text first, apart from what it quotes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from channels.email.mail import Body
from channels.email.reading.unseen import readable
from channels.email.said.flowed import flowed_lines
from channels.email.said.html_text import html_lines
from channels.email.said.lines import Line, plain_lines, written
from channels.email.said.plain_sight import first_line_is_seen
from channels.email.said.quotes import split
from channels.email.subjects import is_passed_on


@dataclass(frozen=True, slots=True)
class Spoken:
    """The words of a mail."""

    new: str
    """What its author wrote; empty when nothing in it is new."""
    removed: str
    """What was left out: quotes of older mails and signatures."""
    seen: bool = True
    """Whether who sent the mail has surely seen its first line; of plain text always."""


def spoken(bodies: Sequence[Body], *, subject: str = "") -> Spoken:
    """Read the text parts of a mail.

    Args:
        bodies: In their order.
        subject: Of the mail; one that says "forwarded" makes the older mail below the text a part of what is said,
            since some clients mark both alike (Outlook).
    """
    lines: list[Line] = []
    for body in bodies:
        if lines and not lines[-1].blank:
            lines.append(Line(""))
        lines += body_lines(body)
    new, removed = split(lines, forwarded=is_passed_on(subject))
    seen = not (bodies and bodies[0].html) or first_line_is_seen(bodies[0].text)
    return Spoken(written(new), written(removed), seen)


def body_lines(body: Body) -> list[Line]:
    """The lines of one text part, whatever its form."""
    text = readable(body.text)
    if body.html:
        # References (`&#x202e;`) have become characters only now.
        return [line._replace(text=readable(line.text).replace("\n", " ")) for line in html_lines(text)]
    return flowed_lines(text, delsp=body.delsp) if body.flowed else plain_lines(text)
