"""One number that stands for exactly one call: what was shown is what runs."""

import hashlib
import json
from collections.abc import Mapping


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


def call_digest(tool: str, arguments: Mapping[str, object], frozen: Mapping[str, str]) -> str:
    """SHA-256 over a tool's name, its arguments and its frozen operands (name -> SHA-256 of the content)."""
    return sha256_hex(canonical_json({"tool": tool, "arguments": dict(arguments), "frozen": dict(frozen)}))
