"""What a model reads of a document: its text, read by a process that ends when it takes too long."""

import asyncio
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO

from zerobot.tools.documents.endings import Ending
from zerobot.tools.page import cleaned

SECONDS = 20.0
"""For reading a document."""
GRACE = 2.0
"""Seconds until a process that does not end itself is ended."""
MEMORY = 512 * 1024**2
"""Bytes that the process which reads may use."""
MAX_TEXT = 4_000_000
"""Bytes of text; what comes later is left out."""
MAX_LINE = 1_000
"""Characters; a paragraph that is longer is told in several lines."""

_MODULE = "zerobot.tools.documents.child"
_PIECE = 1 << 16
_BEGINS = (b"PK\x03\x04", b"PK\x05\x06", b"{\\rtf", b"%PDF-", b"\xef\xbb\xbf%PDF-", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentText:
    """What was read of a document."""

    kind: str
    """With its article: `a Word document`; "" when that was not found out."""
    lines: list[str]
    """From its beginning; no two in a row are empty."""
    ending: Ending | None
    """Why it ends here; None: it goes on, and nobody has asked for more."""


def is_document(head: bytes) -> bool:
    """Whether a file begins like one of the documents that can be read (or told apart), whatever its name says."""
    return head.startswith(_BEGINS) or (b"\0" in head[:8_000] and b"%PDF-" in head[:1_024])


async def document_text(file: FileIO, lines: int, seconds: float = SECONDS, memory: int = MEMORY) -> DocumentText:
    """The beginning of a document's text.

    Args:
        file: The document.
        lines: How many lines are wanted; there are fewer only if the text ends before, in whichever way.
        seconds: After which the reading is ended.
        memory: Bytes that it may use.
    """
    order = json.dumps({"seconds": seconds, "memory": memory})
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-m",
        _MODULE,
        order,
        stdin=file,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    data = bytearray()
    try:
        # The process ends itself first, and then hands over what it has, if it is not deep in one long operation.
        async with asyncio.timeout(seconds + GRACE):
            ending = await _collect(child, data, lines)
    except TimeoutError:
        ending = Ending.TOO_SLOW
    finally:
        await _end(child)
    kind, _, text = bytes(data).partition(b"\n")
    told = await asyncio.to_thread(lambda: list(_lines(text.decode("utf-8", "replace"))))
    return DocumentText(kind=kind.decode("ascii", "replace"), lines=told, ending=ending)


async def _collect(child: asyncio.subprocess.Process, data: bytearray, lines: int) -> Ending | None:
    """Take the output of the process until it ends or is enough."""
    assert child.stdout is not None, "made with a pipe"
    # The first line is not of the text.
    breaks = -1
    while breaks <= lines:
        piece = await child.stdout.read(_PIECE)
        if not piece:
            return _ending(await child.wait())
        data += piece
        breaks += piece.count(b"\n")
        if len(data) > MAX_TEXT:
            return Ending.TOO_LONG
    return None


def _ending(status: int) -> Ending:
    if status == -signal.SIGXCPU:
        return Ending.TOO_SLOW
    try:
        return Ending(status)
    except ValueError:
        return Ending.DAMAGED


async def _end(child: asyncio.subprocess.Process) -> None:
    assert child.stdout is not None, "made with a pipe"
    with suppress(ProcessLookupError):
        child.kill()
    # What still stands in the pipe is not wanted, but the pipe is closed only behind it.
    while await child.stdout.read(_PIECE):
        pass
    await child.wait()


def _lines(text: str) -> Iterator[str]:
    for line in cleaned(text).removesuffix("\n").split("\n") if text else ():
        rest = line
        while len(rest) > MAX_LINE:
            cut = rest.rfind(" ", MAX_LINE // 2, MAX_LINE) + 1 or MAX_LINE
            yield rest[:cut]
            rest = rest[cut:]
        yield rest
