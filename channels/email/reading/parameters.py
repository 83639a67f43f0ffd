"""Content-Type and Content-Disposition: a value and its parameters (RFC 2045, RFC 2183, RFC 2231)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from channels.email.reading.charsets import decode_text
from channels.email.reading.encoded_words import decode_words, header_text, one_line

MOST_PARAMETERS = 100
_MOST_BYTES = 20_000
"""Of a field: as much as is read."""
_MOST_NAME_CHARACTERS = 255

_CHARACTER = r"[^\x00-\x20\x7f()<>@,;:\\\"/\[\]?=]"
_MIME_TYPE = re.compile(rf"\s*({_CHARACTER}{{1,100}})\s*/\s*({_CHARACTER}{{1,100}})")
_WORD = re.compile(rf"\s*({_CHARACTER}{{1,100}})")
_PARAMETER = re.compile(
    rf";\s*+(?P<name>{_CHARACTER}{{1,100}}+)\s*+=\s*+(?:\"(?P<quoted>(?:[^\"\\]|\\.)*+)|(?P<bare>[^;]*+))", re.DOTALL
)
_CONTINUED = re.compile(r"([^*]+)\*(\d{1,3})(\*?)")
_ESCAPED = re.compile(r"\\([\"\\])")


@dataclass(frozen=True, slots=True)
class Parameterized:
    """A field's value, read."""

    value: str
    """`type/subtype` or a single word, in lower case; empty when there is none."""
    parameters: Mapping[str, bytes]
    """By name in lower case, as they came; a name with `*` holds a value that names its charset (RFC 2231)."""

    def token(self, name: str) -> str:
        """A parameter that is a single word of ASCII; empty when there is none."""
        words = self.parameters.get(name, b"").decode("ascii", "replace").split()
        return words[0] if words else ""

    def text(self, name: str) -> str:
        """A parameter for people, by whatever way it is encoded, on one line; empty when there is none."""
        extended = self.parameters.get(f"{name}*")
        if extended is not None:
            charset, quote, rest = extended.partition(b"'")
            _, second, value = rest.partition(b"'")
            text = decode_text(unquote_to_bytes(value), charset.decode("ascii", "replace")) if quote and second else ""
            if one_line(text):
                return _shortened(one_line(text))
        # An encoded word has no place in a parameter, and many mail programs put file names into one.
        return _shortened(one_line(decode_words(header_text(self.parameters.get(name, b"")))))


def read_content_type(field: bytes) -> Parameterized:
    """Read a Content-Type; what is none is `text/plain` (RFC 2045, section 5.2)."""
    text = field[:_MOST_BYTES].decode("latin-1")
    found = _MIME_TYPE.match(text)
    return Parameterized(f"{found[1]}/{found[2]}".lower() if found else "text/plain", _parameters(text))


def read_disposition(field: bytes) -> Parameterized:
    """Read a Content-Disposition, or another field that is a word and parameters."""
    text = field[:_MOST_BYTES].decode("latin-1")
    found = _WORD.match(text)
    return Parameterized(found[1].lower() if found else "", _parameters(text))


def _parameters(text: str) -> Mapping[str, bytes]:
    whole: dict[str, bytes] = {}
    continued: dict[str, dict[int, tuple[bytes, bool]]] = {}
    for count, found in enumerate(_PARAMETER.finditer(text)):
        if count == MOST_PARAMETERS:
            break
        quoted = found["quoted"]
        value = (found["bare"].strip() if quoted is None else _ESCAPED.sub(r"\1", quoted)).encode("latin-1")
        name = found["name"].lower()
        part = _CONTINUED.fullmatch(name)
        if part is None:
            whole.setdefault(name, value)
        else:
            continued.setdefault(part[1], {}).setdefault(int(part[2]), (value, bool(part[3])))
    for name, parts in continued.items():
        joined, extended = _joined(parts)
        whole.setdefault(f"{name}*" if extended else name, joined)
    return whole


def _joined(parts: Mapping[int, tuple[bytes, bool]]) -> tuple[bytes, bool]:
    """Join the sections of a value; where some are percent-encoded, those that are not are made so."""
    extended = any(encoded for _, encoded in parts.values())
    values = [
        value if encoded or not extended else value.replace(b"%", b"%25")
        for _, (value, encoded) in sorted(parts.items())
    ]
    return b"".join(values), extended


def _shortened(name: str) -> str:
    """The end is kept: it says what kind of file it is."""
    return name[-_MOST_NAME_CHARACTERS:].strip()
