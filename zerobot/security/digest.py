"""One number that stands for exactly one call: what was shown is what runs."""

import hashlib
import json
from collections.abc import Iterable, Mapping


def canonical_json(value: object) -> bytes:
    """JSON in one form only: sorted keys, no blanks, UTF-8; lone surrogates stay escaped.

    Raises:
        ValueError: The value holds NaN or an infinity, which are no JSON.
        TypeError: The value is not made of JSON's types.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def sha256_hex(data: bytes) -> str:
    """SHA-256 as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def arguments_digest(arguments: Mapping[str, object]) -> str:
    """SHA-256 over the arguments of a call, whatever the order of their keys."""
    return sha256_hex(canonical_json(dict(arguments)))


def call_digest(
    tool: str, arguments: Mapping[str, object], frozen: Mapping[str, str], touched: Iterable[str] = ()
) -> str:
    """SHA-256 over all that an approval is for.

    Args:
        tool: The tool's name.
        arguments: What it is called with.
        frozen: The operands that it executes: name -> SHA-256 of the content.
        touched: The places that it reads and writes, links resolved: a link put there later leads to others.
    """
    parts = {"tool": tool, "arguments": dict(arguments), "frozen": dict(frozen), "touched": sorted(set(touched))}
    return sha256_hex(canonical_json(parts))
