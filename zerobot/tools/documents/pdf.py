"""The text of PDF files (ISO 32000), by pypdf."""

from collections.abc import Iterator
from typing import BinaryIO

from pypdf import PdfReader
from pypdf.errors import DependencyError, PdfReadError

from zerobot.tools.documents.document import Document
from zerobot.tools.documents.endings import Ending, UnreadableError

UNREADABLE_PAGE = "[this page cannot be read]"


def pdf(file: BinaryIO) -> Document:
    """The text of a file, page by page; a page that is broken does not keep the others back.

    Raises:
        UnreadableError: It is protected by a password.
        Exception: Whatever pypdf raises for what is no PDF.
    """
    reader = PdfReader(file)
    if reader.is_encrypted:
        try:
            # Many files ask no password of who reads them, only of who changes them.
            opened = bool(reader.decrypt(""))
        except (DependencyError, PdfReadError, NotImplementedError) as error:
            raise UnreadableError(Ending.PROTECTED) from error
        if not opened:
            raise UnreadableError(Ending.PROTECTED)
    pages = len(reader.pages)
    return Document(f"a PDF of {pages} page{'' if pages == 1 else 's'}", _lines(reader, pages))


def _lines(reader: PdfReader, pages: int) -> Iterator[str]:
    for number in range(pages):
        yield f"[page {number + 1}]"
        yield _page(reader, number)
    fields = _fields(reader)
    if fields:
        yield "[form]"
        yield from fields


def _page(reader: PdfReader, number: int) -> str:
    try:
        return reader.pages[number].extract_text()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a broken page may raise anything
        return UNREADABLE_PAGE


def _fields(reader: PdfReader) -> list[str]:
    """What was filled in, which is no text of a page."""
    try:
        fields = reader.get_form_text_fields()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - and so may a broken form
        return []
    return [f"{name}: {value}" for name, value in fields.items() if value]
