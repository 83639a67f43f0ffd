"""Paragraphs that were broken for the way, put together again (`format=flowed`, RFC 3676)."""

from __future__ import annotations

from channels.email.said.lines import Line

_DELIMITER = "-- "
"""Ends with a blank and is nevertheless never joined with what follows (section 4.3)."""


def flowed_lines(text: str, *, delsp: bool = False) -> list[Line]:
    """The lines of flowed text, each paragraph one line.

    Args:
        text: As the part has it, decoded.
        delsp: Whether the blank at the end of a broken line is to go (`DelSp=yes`), as scripts without blanks need it.
    """
    lines: list[Line] = []
    paragraph: list[str] = []
    depth = 0
    for raw in text.split("\n"):
        content = raw.lstrip(">")
        deep = len(raw) - len(content)
        # A blank was put before lines that would be misread: quote marks, `From `, blanks (section 4.4).
        content = content.removeprefix(" ")
        if paragraph and (deep != depth or content == _DELIMITER):
            # A paragraph ends where the depth changes, even if its last line says that it goes on (section 4.5).
            lines.append(_line(paragraph, depth))
            paragraph = []
        depth = deep
        if content.endswith(" ") and content != _DELIMITER:
            paragraph.append(content[:-1] if delsp else content)
        else:
            lines.append(_line([*paragraph, content], depth))
            paragraph = []
    if paragraph:
        lines.append(_line(paragraph, depth))
    return lines


def _line(paragraph: list[str], depth: int) -> Line:
    return Line("".join(paragraph), ">" * depth + " " if depth else "")
