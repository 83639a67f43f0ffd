"""The text of RTF files (Rich Text Format 1.9.1), by striprtf."""

from collections.abc import Callable
from typing import BinaryIO

from striprtf.striprtf import rtf_to_text

from zerobot.tools.documents.document import Document


def rtf(file: BinaryIO) -> Document:
    """The text of a file."""
    read: Callable[..., str] = rtf_to_text
    text = read(file.read().decode("latin-1"), errors="replace")
    # Characters beyond the basic plane are written as two halves.
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return Document("an RTF document", iter(whole.split("\n")))
