"""Paths of keys, and how people write them."""

import re
import tomllib
from collections.abc import Iterable

KeyPath = tuple[str | int, ...]
"""From the root of the document to a value: names of keys, and places in lists from 0."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def dotted(path: KeyPath) -> str:
    """Write a path as TOML would: `channels.main.allowed_users[0]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if _BARE.fullmatch(part) else '"' + part.replace("\\", "\\\\").replace('"', '\\"') + '"'
            text += f".{name}" if text else name
    return text


def parse_key(text: str) -> tuple[str, ...]:
    """Read a dotted key, with quotes where TOML has them.

    Raises:
        ValueError: It is no key.
    """
    try:
        value: object = tomllib.loads(f"{text}=0") if "\n" not in text and "=" not in text else None
    except (ValueError, RecursionError):
        value = None
    parts: list[str] = []
    while isinstance(value, dict) and len(value) == 1:
        ((part, value),) = value.items()
        parts.append(part)
    if not parts or value != 0:
        raise ValueError(f"{text!r} is no key; write for example agent.max_steps")
    return tuple(parts)


def matches(path: KeyPath, pattern: str) -> bool:
    """Whether a path is what a pattern names; `*` in it stands for any one part."""
    parts = pattern.split(".")
    return len(parts) == len(path) and all(part in ("*", name) for part, name in zip(parts, path, strict=True))


def lookup(tree: object, path: Iterable[str | int]) -> object:
    """The value at a path of a document; None when there is none."""
    for part in path:
        if isinstance(tree, dict):
            tree = tree.get(part)
        elif isinstance(tree, list) and isinstance(part, int) and part < len(tree):
            tree = tree[part]
        else:
            return None
    return tree
