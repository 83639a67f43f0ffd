"""Small documents of each kind, made by hand: what is in them is known, and each part can be changed."""

import io
from collections.abc import Mapping, Sequence
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from zerobot.tools.documents.child import read
from zerobot.tools.documents.endings import Ending

Parts = Mapping[str, bytes]

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
SLIDE = "http://schemas.openxmlformats.org/presentationml/2006/main"
PAGE = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents {} 0 R>>"
"""Of a PDF file: to be filled with the number of its content."""
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"


def packed(parts: Parts) -> bytes:
    """A ZIP file; as OpenDocument and EPUB want it, the media type comes first and is not compressed."""
    out = io.BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for name in sorted(parts, key=lambda name: name != "mimetype"):
            archive.writestr(name, parts[name], ZIP_STORED if name == "mimetype" else ZIP_DEFLATED)
    return out.getvalue()


def relations(*each: tuple[str, str, str]) -> bytes:
    """A part of relations: id, kind, target."""
    rows = "".join(f'<Relationship Id="{a}" Type="{OFFICE}/{b}" Target="{c}"/>' for a, b, c in each)
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{rows}</Relationships>'.encode()


def word(body: str, **beside: str) -> dict[str, bytes]:
    """A Word document with a body, and parts beside it by their kind."""

    def part(root: str, text: str) -> bytes:
        return f'<w:{root} xmlns:w="{WORD}">{text}</w:{root}>'.encode()

    return {
        "_rels/.rels": relations(("r1", "officeDocument", "word/document.xml")),
        "word/document.xml": part("document", f"<w:body>{body}</w:body>"),
        "word/_rels/document.xml.rels": relations(*((kind, kind, f"{kind}.xml") for kind in beside)),
        **{f"word/{kind}.xml": part(kind, text) for kind, text in beside.items()},
    }


def paragraph(text: str, style: str = "") -> str:
    """A paragraph of a Word document."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def workbook(rows: str, strings: str = "", styles: str = "", book: str = "") -> dict[str, bytes]:
    """A spreadsheet with one sheet, called Data."""
    return {
        "_rels/.rels": relations(("r1", "officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": (
            f'<workbook xmlns="{SHEET}" xmlns:r="{OFFICE}">{book}'
            '<sheets><sheet name="Data" sheetId="7" r:id="r9"/></sheets></workbook>'
        ).encode(),
        "xl/_rels/workbook.xml.rels": relations(
            ("r9", "worksheet", "/xl/worksheets/one.xml"),
            ("r2", "sharedStrings", "sharedStrings.xml"),
            ("r3", "styles", "styles.xml"),
        ),
        "xl/worksheets/one.xml": f'<worksheet xmlns="{SHEET}"><sheetData>{rows}</sheetData></worksheet>'.encode(),
        "xl/sharedStrings.xml": f'<sst xmlns="{SHEET}">{strings}</sst>'.encode(),
        "xl/styles.xml": f'<styleSheet xmlns="{SHEET}">{styles}</styleSheet>'.encode(),
    }


def slides(*texts: str, notes: str = "") -> dict[str, bytes]:
    """A presentation whose slides are numbered against their order; the notes are those of the first."""
    parts = {
        "_rels/.rels": relations(("r1", "officeDocument", "ppt/presentation.xml")),
        "ppt/_rels/presentation.xml.rels": relations(
            *((f"s{n}", "slide", f"slides/slide{9 - n}.xml") for n in range(len(texts)))
        ),
        "ppt/presentation.xml": (
            f'<p:presentation xmlns:p="{SLIDE}" xmlns:r="{OFFICE}">'
            + "".join(f'<p:sldId id="{256 + n}" r:id="s{n}"/>' for n in range(len(texts)))
            + "</p:presentation>"
        ).encode(),
        "ppt/slides/_rels/slide9.xml.rels": relations(("n", "notesSlide", "../notesSlides/n.xml")),
        "ppt/notesSlides/n.xml": _slide("notes", notes),
    }
    return parts | {f"ppt/slides/slide{9 - n}.xml": _slide("sld", text) for n, text in enumerate(texts)}


def _slide(root: str, text: str) -> bytes:
    return f'<p:{root} xmlns:p="{SLIDE}" xmlns:a="{DRAWING}">{text}</p:{root}>'.encode()


def opendocument(body: str, kind: str = "text") -> dict[str, bytes]:
    """An OpenDocument file with a body."""
    names = {
        "office": "urn:oasis:names:tc:opendocument:xmlns:office:1.0",
        "text": "urn:oasis:names:tc:opendocument:xmlns:text:1.0",
        "table": "urn:oasis:names:tc:opendocument:xmlns:table:1.0",
        "draw": "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0",
        "presentation": "urn:oasis:names:tc:opendocument:xmlns:presentation:1.0",
        "dc": "http://purl.org/dc/elements/1.1/",
    }
    spaces = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in names.items())
    return {
        "mimetype": f"application/vnd.oasis.opendocument.{kind}".encode(),
        "content.xml": f"<office:document-content {spaces}>{body}</office:document-content>".encode(),
        "META-INF/manifest.xml": b"<manifest><file-entry/></manifest>",
    }


def book(*chapters: str) -> dict[str, bytes]:
    """An EPUB book."""
    items = "".join(f'<item id="c{n}" href="text/c%20{n}.xhtml"/>' for n in range(len(chapters)))
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    return {
        "mimetype": b"application/epub+zip",
        "META-INF/container.xml": b'<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>',
        "OPS/book.opf": f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>".encode(),
        **{f"OPS/text/c {n}.xhtml": text.encode() for n, text in enumerate(chapters)},
    }


def pdf(*pages: str, extra: str = "", trailer: str = "", objects: Sequence[str] = ()) -> bytes:
    """A PDF file with a line of text a page.

    Args:
        pages: The operators that draw each page's text, or plain words.
        extra: More entries of the catalogue.
        trailer: More entries of the trailer.
        objects: More of them, from number 4 + 2 * pages on.
    """
    made = [f"<</Type/Catalog/Pages 2 0 R{extra}>>"]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    made.append(f"<</Type/Pages/Count {len(pages)}/Kids[{kids}]>>")
    made.append("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    for number, page in enumerate(pages):
        draws = page if page.startswith("BT") else f"BT /F1 12 Tf 72 700 Td ({page}) Tj ET"
        made.append(PAGE.format(5 + 2 * number))
        made.append(f"<</Length {len(draws)}>>stream\n{draws}\nendstream")
    return pdf_of([*made, *objects], trailer)


def pdf_of(objects: Sequence[str], trailer: str = "") -> bytes:
    """A PDF file of objects, the first of which is the catalogue."""
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    places = []
    for number, text in enumerate(objects, start=1):
        places.append(len(out))
        out += f"{number} 0 obj{text}endobj\n".encode("latin-1")
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{place:010} 00000 n \n".encode() for place in places)
    out += f"trailer<</Size {len(objects) + 1}/Root 1 0 R{trailer}>>\nstartxref\n{start}\n%%EOF".encode()
    return bytes(out)


def told(data: bytes) -> tuple[Ending, str]:
    """How the reading of a document ends, and what is told of it."""
    out = io.BytesIO()
    ending = read(io.BytesIO(data), out)
    return ending, out.getvalue().decode().removesuffix("\n")


def text_of(parts: Parts | bytes) -> str:
    """The text of a document that can be read as a whole, without the line that says what it is."""
    ending, text = told(parts if isinstance(parts, bytes) else packed(parts))
    assert ending is Ending.COMPLETE, ending
    return text.partition("\n")[2]
