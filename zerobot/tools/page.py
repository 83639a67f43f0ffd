"""What a model reads of what a server sent: its text, whatever form it came in, with nothing hidden in it."""

import asyncio
import codecs
import json
import math
import re
import sys
import unicodedata
from contextlib import suppress
from pathlib import Path

from zerobot.security.visible import is_hidden

MAX_CHARACTERS = 200_000
"""Of the text of a page; what comes later is left out."""
CONVERSION_SECONDS = 10.0
"""For turning a page into Markdown."""
CONVERSION_BYTES = 1 << 30
"""Memory that the conversion of a page may use."""

_CHILD = Path(__file__).with_name("page_child.py")

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = frozenset(
    {
        "application/json",
        "application/xml",
        "application/javascript",
        "application/ecmascript",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/x-sh",
        "application/sql",
    }
)
_HTML_BEGINS = re.compile(rb"(?i)<(?:!doctype\s+html|html|head|body)\b")
_CHARSET = re.compile(r"(?i);\s*charset\s*=\s*[\"']?([^\s\"';]+)")
_META_CHARSET = re.compile(rb"(?i)<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-z0-9_.:-]{1,40})")
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))

# Of all that Python can decode, what the Web is written in: some of the others take very long, or are no charsets.
_CHARSETS = re.compile(r"utf-8|utf-16(-[bl]e)?|ascii|iso8859-\d+|cp\d+|koi8-[rtu]|mac-|gb|big5|euc_|shift_jis|iso2022_")


class UnreadableError(Exception):
    """There is no text to be had from it; `str(error)` is a clause that says why."""


async def page_text(data: bytes, content_type: str, address: str, seconds: float = CONVERSION_SECONDS) -> str:
    """The text of what a server sent: pages as Markdown, other texts as they are.

    Args:
        data: What it sent.
        content_type: As the header says; may be empty or nonsense.
        address: Where it came from, for the links of a page.
        seconds: After which the conversion of a page is ended.

    Raises:
        UnreadableError: It is something else than text, or a page that cannot be converted.
    """
    kind, charset = _kind(content_type)
    if not kind:
        begins = data[:2_000].lstrip()
        kind = "text/html" if begins.startswith(b"<") and _HTML_BEGINS.search(begins) else "text/plain"
    if not _is_text(kind):
        raise UnreadableError(f"it is {kind} and not text")
    text = decoded(data, charset, html=kind in _HTML)
    if "\0" in text[:8_000]:
        raise UnreadableError("it is not text")
    if kind in _HTML:
        text = await _markdown(text, address, seconds)
    return cleaned(text[:MAX_CHARACTERS])


def decoded(data: bytes, charset: str, *, html: bool) -> str:
    """Bytes as text, by their byte order mark, the header's charset, the page's own, UTF-8, or Windows-1252."""
    marked = next((name for mark, name in _MARKS if data.startswith(mark)), "")
    meta = _META_CHARSET.search(data[:2_000]) if html else None
    for name in (marked, _known(charset), _known(meta[1].decode("ascii")) if meta else "", "utf-8"):
        if name:
            with suppress(UnicodeError):
                return data.decode(name)
    return data.decode("cp1252", "replace") if not charset else data.decode(_known(charset) or "utf-8", "replace")


def cleaned(text: str) -> str:
    """A text without characters that nobody sees, and with ordinary blanks and line ends."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    # A long text has few different characters.
    return text.translate({ord(ch): _plain(ch) for ch in set(text) if is_hidden(ch)})


def _plain(ch: str) -> str:
    return {"Zs": " ", "Zl": "\n", "Zp": "\n"}.get(unicodedata.category(ch), "")


def _kind(content_type: str) -> tuple[str, str]:
    """Media type and charset, in lower case; "" for what it does not say."""
    kind = content_type.partition(";")[0].strip().lower()
    charset = _CHARSET.search(content_type)
    return (kind if "/" in kind else ""), (charset[1].lower() if charset else "")


def _is_text(kind: str) -> bool:
    return kind.startswith("text/") or kind in _HTML or kind in _TEXT or kind.endswith(("+json", "+xml"))


def _known(charset: str) -> str:
    """The name under which Python knows a charset that a server may use; "" for any other."""
    # The Web calls Windows' charset by the names of its older relatives (Encoding standard).
    if charset in ("iso-8859-1", "latin1", "latin-1", "us-ascii", "ascii"):
        return "cp1252"
    try:
        name = codecs.lookup(charset).name if charset else ""
    except (LookupError, ValueError):
        return ""
    return name if _CHARSETS.match(name) else ""


async def _markdown(html: str, address: str, seconds: float) -> str:
    """A page as Markdown, converted by a process that ends when it takes too long."""
    order = {
        "address": address,
        "seconds": math.ceil(seconds),
        "memory": CONVERSION_BYTES,
        "characters": MAX_CHARACTERS,
    }
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(_CHILD),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    try:
        async with asyncio.timeout(seconds):
            text, _ = await child.communicate(json.dumps(order).encode() + b"\n" + html.encode("utf-8", "replace"))
    except TimeoutError as error:
        raise UnreadableError("it is a page that takes too long to read") from error
    finally:
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()
    if child.returncode:
        raise UnreadableError("it is a page that cannot be read")
    return text.decode("utf-8")
