"""Which addresses may become links, and how a link says where it goes."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

# They run something, hold a whole file, or notify a person by number: as text they help nobody either.
_NEVER_SHOWN = frozenset({"javascript", "vbscript", "data", "tg", "blob"})
_LINKED = ("https://", "http://")
_INVISIBLE = frozenset("\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u2060\u2800\u3164\ufeff\uffa0")


@dataclass(frozen=True, slots=True)
class Target:
    """What becomes of the address of a link."""

    href: str = ""
    """The address to link to; empty when the label must not be a link."""
    shown: str = ""
    """What to write after the label, because the label does not say it; may be empty."""
    full: bool = True
    """`shown` is the whole address, not only its beginning."""


def target_of(address: str, label: str, limit: int | None = None) -> Target:
    """Decide about a link that a model wrote.

    Args:
        address: Percent-encoded by the parser, so plain ASCII.
        label: What the reader sees.
        limit: The longest address, in characters, that is written out whole; None writes out any.
    """
    scheme, colon, rest = address.partition(":")
    scheme = "".join(char for char in unquote(scheme) if char.isalnum()).lower() if colon else ""
    if scheme in _NEVER_SHOWN:
        return Target()
    if scheme in {"mailto", "tel"}:
        return Target(shown="" if _says(label, rest) else rest)
    if not _is_web_address(address):
        return Target(shown="" if _says(label, address) else address)
    if _says(label, address):
        return Target(href=address)
    shown = address if limit is None else _shortened(address, limit)
    return Target(href=address, shown=shown, full=shown == address)


def has_visible_text(text: str) -> bool:
    """Return whether a reader sees anything of the text."""
    return any(not char.isspace() and char.isprintable() and char not in _INVISIBLE for char in text)


def _is_web_address(address: str) -> bool:
    if not address[:8].lower().startswith(_LINKED):
        return False
    return bool(_host(address).strip(".:@[]"))


def _host(address: str) -> str:
    host = address.partition("://")[2]
    for end in "/?#\\":
        host = host.partition(end)[0]
    return host


def _says(label: str, address: str) -> bool:
    """Whether the label is the address. A host in other letters than its ASCII form is not: it may be a look-alike."""
    return _bare(label) == _bare(address)


def _bare(address: str) -> str:
    address = unquote(address.strip())
    for prefix in (*_LINKED, "mailto:"):
        if address[: len(prefix)].lower() == prefix:
            address = address[len(prefix) :]
            break
    return address.removesuffix("/")


def _shortened(address: str, limit: int) -> str:
    host = _host(address)
    if len(address) <= limit or "@" in host:  # what stands before an @ only looks like the host
        return address
    return address[: max(address.index("://") + 3 + len(host) + 1, limit - 1)] + "…"
