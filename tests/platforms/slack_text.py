"""What people see of a message on Slack, and whom it notifies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

_TOKEN = re.compile(r"<([^<>\n]+)>")
_BULLETS = "•◦▪"


@dataclass(slots=True)
class Reading:
    """A message as people see it."""

    text: str = ""
    spans: list[tuple[str, str, str]] = field(default_factory=list)
    """(kind, the formatted text, a link's address)."""


def unescape(text: str) -> str:
    """What people see of a text without tokens."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def read_blocks(blocks: Sequence[Json]) -> Reading:
    """Read blocks."""
    reading = Reading()
    parts = []
    for block in blocks:
        if block["type"] == "rich_text":
            parts.append(_read_rich_text(block, reading))
        elif block["type"] == "table":
            parts += [" ".join(read_cell(cell, reading) for cell in row) for row in block["rows"]]
        elif block["type"] == "section":
            parts.append(unescape(block["text"]["text"]))
        elif block["type"] == "markdown":
            parts.append(block["text"])
    reading.text = "\n".join(parts)
    return reading


def read_cell(cell: Json, reading: Reading | None = None) -> str:
    """Read a cell of a table."""
    return str(cell["text"]) if cell["type"] == "raw_text" else _read_rich_text(cell, reading or Reading())


def _read_rich_text(block: Json, reading: Reading) -> str:
    return "\n".join(_read_part(part, reading) for part in block["elements"])


def _read_part(part: Json, reading: Reading) -> str:
    if part["type"] == "rich_text_list":
        return _read_list(part, reading)
    text = ""
    for element in part["elements"]:
        words = element["text"]
        text += words
        if part["type"] == "rich_text_preformatted":
            continue
        kinds = [kind for kind, on in element.get("style", {}).items() if on]
        reading.spans += [(kind, words, "") for kind in kinds]
        if element["type"] == "link":
            reading.spans.append(("link", words, element["url"]))
    kind = {"rich_text_preformatted": "code", "rich_text_quote": "quote"}.get(part["type"])
    if kind:
        reading.spans.append((kind, text, ""))
    return text


def _read_list(part: Json, reading: Reading) -> str:
    """A list as Slack draws it, but for the numbers of inner lists, which are letters there."""
    indent, offset = part.get("indent", 0), part.get("offset", 0)
    bullet = _BULLETS[min(indent, len(_BULLETS) - 1)]
    lines = []
    for number, item in enumerate(part["elements"], start=offset + 1):
        marker = f"{number}." if part["style"] == "ordered" else bullet
        lines.append(f"{'  ' * indent}{marker} {_read_part(item, reading)}")
    return "\n".join(lines)


def notified(text: str, blocks: Sequence[Json]) -> list[str]:
    """Whom a message notifies."""
    found = [token[1].partition("|")[0] for token in _TOKEN.finditer(text)]
    for block in blocks:
        if block.get("type") == "section" and block["text"]["type"] == "mrkdwn":
            found += [token[1].partition("|")[0] for token in _TOKEN.finditer(block["text"]["text"])]
        for element in _leaves(block):
            if element.get("type") in {"user", "usergroup", "broadcast"}:
                found.append(f"@{element}")
    return [each for each in found if each[0] in "@!"]


def _leaves(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each)
