"""Names of folders on their way to a server: modified UTF-7 (RFC 3501, section 5.1.3), and quoted strings; pure."""

from __future__ import annotations

import contextlib
import re
from base64 import b64decode, b64encode

_SHIFTED = re.compile(r"&([A-Za-z0-9+,]*)-")
_OTHER = re.compile(r"[^\x20-\x7e]+|&")


def encode_name(name: str) -> str:
    """Write a folder's name in ASCII, as a server keeps it. INBOX is one folder in whatever case (section 5.1)."""
    return "INBOX" if name.upper() == "INBOX" else _OTHER.sub(_shift, name)


def decode_name(name: str) -> str:
    """Read a folder's name as a server keeps it.

    Raises:
        ValueError: It is no modified UTF-7; the folder cannot be asked for by what we would make of it.
    """
    with contextlib.suppress(ValueError):
        plain = _SHIFTED.sub(_unshift, name)
        if name.upper() == "INBOX" or encode_name(plain) == name:
            return plain
    raise ValueError(f"no name of a folder: {name!r}")


def quoted(text: str) -> str:
    """Write a text as a quoted string (RFC 3501, section 4.3).

    Raises:
        ValueError: It has a line break or a NUL, which would begin another command.
    """
    if re.search(r"[\0\r\n]", text):
        raise ValueError("a line break cannot be quoted")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _shift(match: re.Match[str]) -> str:
    if match[0] == "&":
        return "&-"
    utf16 = match[0].encode("utf-16-be", "surrogatepass")
    return f"&{b64encode(utf16, b'+,').decode().rstrip('=')}-"


def _unshift(match: re.Match[str]) -> str:
    if not match[1]:
        return "&"
    padded = match[1] + "=" * (-len(match[1]) % 4)
    return b64decode(padded, b"+,", validate=True).decode("utf-16-be")
