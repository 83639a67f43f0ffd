"""File names that come with attachments, brought to one harmless path component."""

import re
import unicodedata

from zerobot.security.visible import is_hidden

MAX_BYTES = 200
"""UTF-8 bytes; file systems take 255, and a counter may be put in front of the extension."""

_FALLBACK = "file"
_MAX_SUFFIX_BYTES = 20
# Separators, and what shells, markup and other systems give a meaning to.
_SPECIAL = re.compile(r"""[/\\<>:"|?*;`$&'{}\[\]%#!~=^\n\t]""")
# Device names of Windows, with any extension (Microsoft: Naming Files, Paths, and Namespaces).
_RESERVED = re.compile(r"(?i)(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?=\.|\Z)")


def safe_name(name: str) -> str:
    """Make one path component of a name that somebody else chose.

    The result is not empty, is no `.` or `..`, leads with neither dot nor dash, ends in neither dot nor blank, and has
    no separator, control, invisible or shell character. Compatibility forms (full-width dots and slashes) are first
    brought to what they look like. Ordinary names stay as they are. Two names may become one: create exclusively.
    """
    text = unicodedata.normalize("NFKC", name.replace("\0", ""))
    text = "".join("" if is_hidden(ch) else ch for ch in text)
    # Only the last component: what stands before a separator was never part of the name.
    parts = [part for part in re.split(r"[/\\]+", text) if part.strip(" .")]
    text = _SPECIAL.sub("_", parts[-1]) if parts else ""
    text = re.sub(r"\s+", " ", text).strip(" .").lstrip(".-_ ")
    if not text:
        return _FALLBACK
    if _RESERVED.match(text):
        text = f"{_FALLBACK}_{text}"
    return _shortened(text)


def with_counter(name: str, number: int) -> str:
    """The same name, made another: `report.pdf` and 2 give `report-2.pdf`."""
    stem, suffix = _split(name)
    return f"{stem}-{number}{suffix}"


def _split(name: str) -> tuple[str, str]:
    stem, dot, suffix = name.rpartition(".")
    if stem and 0 < len(suffix.encode("utf-8", "replace")) <= _MAX_SUFFIX_BYTES:
        return stem, dot + suffix
    return name, ""


def _shortened(name: str) -> str:
    if len(name.encode("utf-8", "replace")) <= MAX_BYTES:
        return name
    stem, suffix = _split(name)
    room = MAX_BYTES - len(suffix.encode("utf-8", "replace"))
    cut = stem.encode("utf-8", "replace")[:room].decode("utf-8", "ignore")
    return (cut.rstrip(" .-_") or _FALLBACK) + suffix
