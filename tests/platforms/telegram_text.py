"""What Telegram does to a text before it takes it: counting, trimming, entities, HTML; the words of its refusals."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MESSAGE_UNITS = 4096
CAPTION_UNITS = 1024
MOST_ENTITIES = 100
_TYPES = frozenset(
    {
        "mention",
        "hashtag",
        "cashtag",
        "bot_command",
        "url",
        "email",
        "phone_number",
        "bold",
        "italic",
        "underline",
        "strikethrough",
        "spoiler",
        "blockquote",
        "expandable_blockquote",
        "code",
        "pre",
        "text_link",
        "text_mention",
        "custom_emoji",
    }
)
_TAGS = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "code": "code",
    "pre": "pre",
    "a": "text_link",
    "blockquote": "blockquote",
    "tg-spoiler": "spoiler",
}
_TOKEN = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)((?:\s[^<>]*)?)>|<|[^<]+")
_HREF = re.compile(r"""href\s*=\s*(?:"([^"]*)"|'([^']*)'|(\S+))""")

Entity = dict[str, Any]


class ApiError(Exception):
    """A refusal of the Bot API."""

    def __init__(self, code: int, description: str, parameters: dict[str, Any] | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters


def bad_request(words: str) -> ApiError:
    """A refusal with status 400."""
    return ApiError(400, f"Bad Request: {words}")


def units(text: str) -> int:
    """Length in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def part(text: str, entity: Entity) -> str:
    """What of a text an entity covers."""
    start, end = entity["offset"] * 2, (entity["offset"] + entity["length"]) * 2
    return text.encode("utf-16-le", "surrogatepass")[start:end].decode("utf-16-le", "replace")


@dataclass(frozen=True, slots=True)
class Formatted:
    """A text as Telegram keeps it."""

    text: str
    entities: tuple[tuple[tuple[str, Any], ...], ...] = ()
    """Each as sorted pairs, so that two texts can be compared."""

    def as_entities(self) -> list[Entity]:
        """The entities as the Bot API writes them."""
        return [dict(entity) for entity in self.entities]


def take(text: str, entities: Sequence[Entity] | None, parse_mode: str | None) -> Formatted:
    """Read a text as a send or an edit gives it.

    Raises:
        ApiError: Its entities or its markup are not what Telegram takes.
    """
    found = list(entities or ())
    if parse_mode and not entities:
        if parse_mode.upper() != "HTML":
            raise bad_request(f"can't parse entities: this double reads no {parse_mode}")
        text, found = parse_html(text)
    for entity in found:
        _check(text, entity)
    _check_nesting(found)
    return _trimmed(text, found[:MOST_ENTITIES])


def _check(text: str, entity: Entity) -> None:
    kind, offset, length = entity.get("type"), entity.get("offset"), entity.get("length")
    if kind not in _TYPES:
        raise bad_request(f"can't parse entities: unsupported entity type {kind!r}")
    if not isinstance(offset, int) or not isinstance(length, int) or offset < 0 or length <= 0:
        raise bad_request("can't parse entities: an entity has a wrong offset or length")
    if offset + length > units(text):
        raise bad_request(f"can't parse entities: the entity at UTF-16 offset {offset} ends after the end of the text")
    encoded = text.encode("utf-16-le", "surrogatepass")
    for place in (offset, offset + length):
        if place * 2 < len(encoded) and 0xDC <= encoded[place * 2 + 1] <= 0xDF:
            raise bad_request(f"can't parse entities: UTF-16 offset {place} is inside of a symbol")
    if kind == "text_link" and not entity.get("url"):
        raise bad_request("can't parse entities: a text_link has no url")


def _check_nesting(entities: Sequence[Entity]) -> None:
    """Entities nest or are apart; code holds nothing and is in nothing but a quote."""
    spans = [(entity["offset"], entity["offset"] + entity["length"], entity["type"]) for entity in entities]
    for number, (start, end, kind) in enumerate(spans):
        for other_start, other_end, other in spans[number + 1 :]:
            if end <= other_start or other_end <= start:
                continue
            nested = (start <= other_start and other_end <= end) or (other_start <= start and end <= other_end)
            pair = {kind, other}
            if not nested:
                raise bad_request(f"can't parse entities: {kind} and {other} overlap")
            if pair & {"pre", "code"} and not pair & {"blockquote", "expandable_blockquote"}:
                raise bad_request(f"can't parse entities: {kind} and {other} can't be nested")


def _trimmed(text: str, entities: Sequence[Entity]) -> Formatted:
    stripped = text.lstrip(" \n\t\r")
    lost = units(text) - units(stripped)
    stripped = stripped.rstrip(" \n\t\r")
    length = units(stripped)
    kept = []
    for entity in entities:
        start = max(entity["offset"] - lost, 0)
        end = min(entity["offset"] + entity["length"] - lost, length)
        if end > start:
            kept.append(tuple(sorted({**entity, "offset": start, "length": end - start}.items())))
    return Formatted(stripped, tuple(kept))


def parse_html(source: str) -> tuple[str, list[Entity]]:
    """Read Telegram's HTML.

    Raises:
        ApiError: An unknown or unmatched tag.
    """
    text, entities = "", list[Entity]()
    opened: list[tuple[str, int, str]] = []
    for token in _TOKEN.finditer(source):
        closing, tag, attributes = token[1], (token[2] or "").lower(), token[3] or ""
        where = len(source[: token.start()].encode())
        if not tag:
            if token[0] == "<":
                raise bad_request(f"can't parse entities: Unexpected end of name token at byte offset {where}")
            text += html.unescape(token[0])
        elif not closing:
            if tag not in _TAGS:
                raise bad_request(f'can\'t parse entities: Unsupported start tag "{tag}" at byte offset {where}')
            opened.append((tag, units(text), attributes))
        else:
            if not opened or opened[-1][0] != tag:
                raise bad_request(f'can\'t parse entities: Unmatched end tag at byte offset {where}, found "</{tag}>"')
            _, start, attributes = opened.pop()
            if units(text) > start:
                entities.append(_entity(tag, start, units(text) - start, attributes))
    if opened:
        raise bad_request(f"can't parse entities: Can't find end tag corresponding to start tag \"{opened[-1][0]}\"")
    return text, entities


def _entity(tag: str, offset: int, length: int, attributes: str) -> Entity:
    entity: Entity = {"type": _TAGS[tag], "offset": offset, "length": length}
    if tag == "a":
        href = _HREF.search(attributes)
        entity["url"] = html.unescape(next((group for group in href.groups() if group), "")) if href else ""
    return entity


_FOUND = re.compile(r"(?<![\w@/])(?:(@[A-Za-z]\w{3,31})|(/[a-z0-9_]{1,32}(?:@\w{4,32})?))(?!\w)", re.ASCII)


def found_entities(text: str) -> list[Entity]:
    """The mentions and commands that Telegram finds in what a person types."""
    return [
        {
            "type": "mention" if match[1] else "bot_command",
            "offset": units(text[: match.start()]),
            "length": units(match[0]),
        }
        for match in _FOUND.finditer(text)
    ]
