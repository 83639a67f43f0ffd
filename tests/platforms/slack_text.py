"""How Slack reads what is sent: its limits and refusals, what people see of it, and whom it notifies."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

# https://docs.slack.dev/reference/methods/chat.postMessage, https://docs.slack.dev/reference/block-kit/blocks
TEXT_CHARACTERS = 40_000
UPDATE_CHARACTERS = 4_000
BLOCKS = 50
VIEW_BLOCKS = 100
SECTION_CHARACTERS = 3_000
# Slack names no number; messages were seen refused from some 13,200 characters on.
BLOCKS_CHARACTERS = 13_200
_STYLES = frozenset({"bold", "italic", "strike", "code"})
_PARTS = frozenset({"rich_text_section", "rich_text_preformatted", "rich_text_quote"})
_TOKEN = re.compile(r"<([^<>\n]+)>")


class BlocksError(Exception):
    """Slack's word for what is wrong."""


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
            parts += [_read_part(part, reading) for part in block["elements"]]
        elif block["type"] == "section":
            parts.append(unescape(block["text"]["text"]))
        elif block["type"] == "markdown":
            parts.append(block["text"])
    reading.text = "\n".join(parts)
    return reading


def _read_part(part: Json, reading: Reading) -> str:
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


def check_message(text: str, blocks: Any, *, limit: int = TEXT_CHARACTERS) -> None:
    """Check what is sent.

    Raises:
        BlocksError: With Slack's word.
    """
    if len(text) > limit:
        raise BlocksError("msg_too_long")
    if not text.strip() and not blocks:
        raise BlocksError("no_text")
    check_blocks(blocks, most=BLOCKS)


def check_blocks(blocks: Any, *, most: int) -> None:
    """Check blocks of a message or a view.

    Raises:
        BlocksError: With Slack's word.
    """
    if not isinstance(blocks, list) or len(blocks) > most:
        raise BlocksError("invalid_blocks")
    if len(json.dumps(blocks, ensure_ascii=False)) > BLOCKS_CHARACTERS:
        raise BlocksError("msg_blocks_too_long")
    actions: list[str] = []
    for block in blocks:
        kind = block.get("type")
        if kind == "rich_text":
            _check_rich_text(block)
        elif kind == "section":
            _require(1 <= len(block["text"]["text"]) <= SECTION_CHARACTERS)
        elif kind == "actions":
            _require(1 <= len(block["elements"]) <= 25)
            actions += [_checked_button(each) for each in block["elements"]]
        elif kind == "input":
            _require(most == VIEW_BLOCKS and 1 <= len(block["label"]["text"]) <= 2000)
            _require(block["element"]["type"] == "plain_text_input")
        else:
            _require(kind == "divider")
    _require(len(actions) == len(set(actions)))


def _require(holds: object) -> None:
    if not holds:
        raise BlocksError("invalid_blocks")


def _checked_button(button: Json) -> str:
    _require(button.get("type") == "button")
    _require(button["text"]["type"] == "plain_text" and 1 <= len(button["text"]["text"]) <= 75)
    _require(1 <= len(button["action_id"]) <= 255 and len(button.get("value", "")) <= 2000)
    _require(button.get("style", "primary") in {"primary", "danger"})
    return str(button["action_id"])


def _check_rich_text(block: Json) -> None:
    _require(block.keys() == {"type", "elements"} and block["elements"])
    for part in block["elements"]:
        _require(part.get("type") in _PARTS and part["elements"])
        is_code = part["type"] == "rich_text_preformatted"
        _require(part.keys() - {"type", "elements"} <= ({"border"} if is_code else set()))
        for element in part["elements"]:
            _check_element(element, is_code=is_code)


def _check_element(element: Json, *, is_code: bool) -> None:
    kind = element.get("type")
    _require(kind in {"text", "link"} and element.get("text"))
    _require(element.keys() <= {"type", "text", "style", "url"})
    _require(element.get("style", {}).keys() <= _STYLES and not (is_code and "style" in element))
    _require(kind == "text" or re.match(r"https?://\S+$", element["url"]))
    _require((kind == "link") == ("url" in element))


def check_view(view: Json) -> None:
    """Check a form: https://docs.slack.dev/reference/views/modal-views.

    Raises:
        BlocksError: With Slack's word.
    """
    texts = [view.get(name, {}).get("text", "x") for name in ("title", "submit", "close")]
    if view.get("type") != "modal" or not view.get("title") or any(not 1 <= len(text) <= 24 for text in texts):
        raise BlocksError("invalid_arguments")
    if len(view.get("private_metadata", "")) > 3000 or len(view.get("callback_id", "")) > 255:
        raise BlocksError("invalid_arguments")
    check_blocks(view.get("blocks"), most=VIEW_BLOCKS)
