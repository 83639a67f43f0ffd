"""Reads single values out of JSON that other people's servers wrote, without trusting any of it."""

from collections.abc import Mapping
from typing import Any


def text_of(value: object) -> str:
    """Return a string as it is, and anything else as no text."""
    return value if isinstance(value, str) else ""


def mapping_of(value: object) -> Mapping[str, Any]:
    """Return an object as it is, and anything else as an empty one."""
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """Return a list as it is, and anything else as an empty one."""
    return value if isinstance(value, list) else []


def count_of(value: object) -> int:
    """Return a number of tokens; what is no such number counts as none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
