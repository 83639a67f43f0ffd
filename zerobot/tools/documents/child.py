"""Reads a document: the main module of a process of its own, so that it can be ended.

A document can be made so that any reader takes minutes or all memory for it. This process finds the file on its
standard input, open for reading, and a JSON order (`seconds`, `memory`) as its argument. It writes a line that says
what the document is, then its text, and ends with a status of `Ending`. It opens nothing else.
"""

import json
import math
import resource
import signal
import sys
from typing import BinaryIO
from zipfile import BadZipFile

from zerobot.tools.documents.document import Document
from zerobot.tools.documents.endings import Ending, UnreadableError

HEAD = 1_024
"""Bytes in which `%PDF-` may stand (ISO 32000-1, annex H, implementation note 13)."""

_MIMETYPE = 100
"""Bytes of a media type, at most."""


def opened(file: BinaryIO) -> Document:
    """A document by what is in it, whatever its name says.

    Raises:
        UnreadableError: There is no text to be had, or not of this kind.
        ImportError: The library for it is missing.
    """
    head = file.read(HEAD)
    file.seek(0)
    # The libraries are loaded by who needs one.
    if head.startswith(b"PK"):
        return _packed(file)
    if head.startswith(b"{\\rtf"):
        from zerobot.tools.documents.rtf import rtf  # noqa: PLC0415

        return rtf(file)
    if b"%PDF-" in head:
        from zerobot.tools.documents.pdf import pdf  # noqa: PLC0415

        return pdf(file)
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        # A compound file ([MS-CFB]); newer Office wraps what it encrypts into one ([MS-OFFCRYPTO], 2.3.4.4).
        protected = "EncryptedPackage".encode("utf-16-le") in file.read()
        raise UnreadableError(Ending.PROTECTED if protected else Ending.OLD_OFFICE)
    raise UnreadableError(Ending.NO_DOCUMENT)


def _packed(file: BinaryIO) -> Document:
    from zerobot.tools.documents import epub, opendocument  # noqa: PLC0415
    from zerobot.tools.documents.office import office  # noqa: PLC0415
    from zerobot.tools.documents.package import Package  # noqa: PLC0415

    try:
        package = Package(file)
    except BadZipFile as error:
        raise UnreadableError(Ending.DAMAGED) from error
    media = ""
    if package.has("mimetype"):
        media = next(package.pieces("mimetype"), b"")[:_MIMETYPE].decode("ascii", "replace").strip()
    if media.startswith(opendocument.MEDIA):
        return opendocument.opendocument(package, media)
    if media == epub.MEDIA:
        return epub.epub(package)
    return office(package)


def write(document: Document, out: BinaryIO) -> None:
    """Write what a document is, and its text; an empty line only between others, and never two in a row."""
    out.write(document.kind.encode("ascii") + b"\n")
    between = b""
    begun = False
    for lines in document.lines:
        for line in lines.split("\n"):
            if text := line.rstrip().encode("utf-8", "replace"):
                out.write(between + text + b"\n")
                between, begun = b"", True
            elif begun:
                between = b"\n"


def read(file: BinaryIO, out: BinaryIO) -> Ending:
    """Read a document and write what it is and its text, as far as it goes; say how it ended, whatever is in it."""
    try:
        write(opened(file), out)
    except UnreadableError as error:
        return error.ending
    except ImportError:
        return Ending.NO_LIBRARY
    except MemoryError:
        return Ending.TOO_LARGE
    except OutOfTimeError:
        return Ending.TOO_SLOW
    except Exception:  # noqa: BLE001 - what is made to break a reader may raise anything
        return Ending.DAMAGED
    return Ending.COMPLETE


class OutOfTimeError(BaseException):
    """The time is over. No ordinary exception: libraries catch those, and go on."""


def _late(_number: int, _frame: object) -> None:
    raise OutOfTimeError


def main() -> Ending:
    """Read and write, within the limits that the order sets."""
    order = json.loads(sys.argv[1])
    seconds = math.ceil(order["seconds"])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds + 1, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (order["memory"], order["memory"]))
    signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, order["seconds"])
    ending = read(sys.stdin.buffer, sys.stdout.buffer)
    signal.setitimer(signal.ITIMER_REAL, 0)
    # What could be read before an end of any kind counts.
    sys.stdout.buffer.flush()
    return ending


if __name__ == "__main__":
    sys.exit(main())
