"""What is told of each kind of document."""

import pytest

from tests.tools.documents.made import (
    book,
    opendocument,
    packed,
    paragraph,
    pdf,
    slides,
    text_of,
    told,
    word,
    workbook,
)
from zerobot.tools.documents.endings import Ending
from zerobot.tools.documents.pdf import UNREADABLE_PAGE

# -- Word -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (paragraph("One") + paragraph("") * 3 + paragraph("Two"), "One\n\nTwo"),
        (paragraph("Title", "Heading2") + paragraph("text", "Normal"), "## Title\ntext"),
        ("<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>item</w:t></w:r></w:p>", "- item"),
        (
            (
                "<w:p><w:pPr><w:tabs><w:tab w:val='left'/></w:tabs></w:pPr><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t>"
                "<w:br/><w:t>c"
                "</w:t><w:noBreakHyphen/></w:r></w:p>"
            ),
            "a\tb\nc-",
        ),
        (
            (
                f"<w:tbl><w:tr><w:tc>{paragraph('a')}{paragraph('b')}</w:tc><w:tc>{paragraph('c')}</w:tc></w:tr><w:tr><w:tc/>"
                f"<w:tc>{paragraph('d')}</w:tc></w:tr></w:tbl>"
            ),
            "a b\tc\n\td",
        ),
        (
            (
                "<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r><w:r><w:rPr><w:vanish w:val='0'/></w:rPr>"
                "<w:t>seen</w:t></w:r></w:p>"
            ),
            "seen",
        ),
        (
            (
                "<w:p><w:del><w:r><w:t>old</w:t><w:delText>old</w:delText></w:r></w:del><w:ins><w:r><w:t>new</w:t></w:r></w:ins>"
                "<w:r><w:instrText>PAGE</w:instrText></w:r></w:p>"
            ),
            "new",
        ),
        (
            (
                "<x:AlternateContent xmlns:x='u'><x:Choice><w:p><w:r><w:t>once</w:t></w:r></w:p></x:Choice>"
                "<x:Fallback><w:p>"
                "<w:r><w:t>once</w:t></w:r></w:p></x:Fallback></x:AlternateContent>"
            ),
            "once",
        ),
    ],
)
def test_a_word_document_keeps_its_shape(body: str, text: str) -> None:
    """Paragraphs, headings, lists, tables; nothing that is hidden, deleted or there twice."""
    assert text_of(word(body)) == text


def test_what_stands_beside_a_text_follows_it() -> None:
    """Headers, footers, notes and comments, each below its name; empty ones are not named."""
    parts = word(paragraph("Body"), header=paragraph("Letterhead"), footnotes=paragraph("see"), comments=paragraph(""))
    assert text_of(parts) == "Body\n[footnotes]\nsee\n[header]\nLetterhead"


# -- spreadsheets -----------------------------------------------------------------------------------------------------

STYLES = (
    '<numFmts><numFmt numFmtId="170" formatCode="[$-407]d. mmm yyyy;@"/>'
    '<numFmt numFmtId="171" formatCode="&quot;days&quot; 0"/>'
    '</numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>'
    '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="170"/><xf numFmtId="171"/></cellXfs>'
)
STRINGS = "<si><t>Ann</t></si><si><r><t>Be</t></r><r><t>n</t></r><rPh><t>ben</t></rPh></si>"


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        ('<c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1" t="s"><v>9</v></c>', "Ann\tBen"),
        ('<c r="A1"><v>1.5</v></c><c r="D1"><f>A1*2</f><v>3</v></c>', "1.5\t\t\t3"),
        ('<c t="inlineStr"><is><t>in\nline</t></is></c><c t="str"><v>b</v></c>', "in line\tb"),
        ('<c r="A1" t="b"><v>1</v></c><c r="B1" t="e"><v>#N/A</v></c>', "TRUE\t#N/A"),
        ('<c r="A1"><v>1</v></c><c r="XFD1"><v>2</v></c>', "1\t[XFD]\t2"),
        ('<c r="A1" s="1"><v>46143</v></c><c r="B1" s="2"><v>46143.5625</v></c>', "2026-05-01\t2026-05-01 13:30:00"),
        (
            '<c r="A1" s="1"><v>0.34375</v></c><c r="B1" s="3"><v>5</v></c><c r="C1" s="1"><v>1e99</v></c>',
            "08:15:00\t5\t1e99",
        ),
    ],
)
def test_a_row_is_told_with_its_values_in_their_columns(cells: str, text: str) -> None:
    """Shared and own strings, numbers, dates by the format of the cell, and gaps."""
    parts = workbook(f"<row>{cells}</row><row/>", STRINGS, STYLES)
    assert text_of(parts) == f"[sheet Data]\n{text}"


def test_dates_may_count_from_1904() -> None:
    """Old Macintosh workbooks begin four years later."""
    parts = workbook('<row><c s="1"><v>44681</v></c></row>', styles=STYLES, book='<workbookPr date1904="1"/>')
    assert text_of(parts).endswith("\n2026-05-01")


# -- presentations ----------------------------------------------------------------------------------------------------


def test_slides_come_in_their_order_with_their_notes() -> None:
    """The order is the presentation's, not that of the files; the number that a slide shows is left out."""
    line = "<a:p><a:r><a:t>{}</a:t></a:r><a:fld><a:t>7</a:t></a:fld></a:p>"
    parts = slides(line.format("First"), line.format("Second"), notes=line.format("say it"))
    assert text_of(parts) == "[slide 1]\nFirst\n[notes]\nsay it\n[slide 2]\nSecond"


# -- OpenDocument -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            (
                "<text:h text:outline-level='2'>Head</text:h> <text:p>a<text:s text:c='2'/>b"
                "<text:tab/>c<text:line-break/>d"
                "</text:p>"
            ),
            "## Head\na  b\tc\nd",
        ),
        (
            "<text:list><text:list-item><text:p>it</text:p></text:list-item></text:list><text:p>after</text:p>",
            "- it\nafter",
        ),
        (
            (
                "<text:p>a<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>foot</text:p>"
                "</text:note-body></text:note>b on <text:date>1 May</text:date></text:p>"
            ),
            "a [note: foot] b on 1 May",
        ),
        (
            (
                "<text:p>a<office:annotation><dc:creator>Al</dc:creator><dc:date>2026</dc:date><text:p>why</text:p>"
                "</office:annotation></text:p>"
            ),
            "a [comment: why]",
        ),
        ("<text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:p>here</text:p>", "here"),
        (
            (
                "<table:table table:name='T'><table:table-row><table:table-cell><text:p>a</text:p><text:p>b</text:p>"
                "</table:table-cell><table:table-cell table:number-columns-repeated='2'/>"
                "<table:table-cell><text:p>c</text:p></table:table-cell>"
                "<table:table-cell table:number-columns-repeated='99999999'/></table:table-row>"
                "<table:table-row table:number-rows-repeated='1048576'><table:table-cell/></table:table-row>"
                "</table:table>"
            ),
            "[table T]\na b\t\t\tc",
        ),
        (
            "<draw:page><text:p>Slide</text:p><presentation:notes><text:p>say</text:p></presentation:notes></draw:page>",
            "[slide 1]\nSlide\n[notes]\nsay",
        ),
    ],
)
def test_an_opendocument_file_keeps_its_shape(body: str, text: str) -> None:
    """Headings, blanks, lists, notes, comments, tables, slides; nothing that was deleted."""
    assert text_of(opendocument(body)) == text


# -- EPUB, RTF, PDF ---------------------------------------------------------------------------------------------------


def test_a_book_is_told_by_its_chapters() -> None:
    """In the order of the spine, as Markdown."""
    assert text_of(book("<h1>One</h1><p>a<script>x</script>", "<p>b")) == "# One\n\na\n\nb"


def test_rtf_is_told_with_its_characters() -> None:
    """Code pages, Unicode beyond the basic plane, paragraphs; no fonts, no unknown destinations."""
    data = rb"{\rtf1\ansi\ansicpg1251{\fonttbl{\f0 Arial;}}\'cf\'f0 \u8364?\u-10179?\u-8704?\par b{\*\x y}}"
    assert text_of(data) == "Пр €😀\nb"


def test_a_pdf_is_told_by_its_pages() -> None:
    """Each below its number."""
    assert text_of(pdf("Hello", "World")) == "[page 1]\nHello\n[page 2]\nWorld"


def test_what_was_filled_into_a_form_is_told() -> None:
    """The values of fields are no text of a page."""
    field = "<</Type/Annot/Subtype/Widget/FT/Tx/T(name)/V(Ann)/Rect[0 0 9 9]>>"
    assert (
        text_of(pdf("Form", extra="/AcroForm<</Fields[6 0 R]>>", objects=[field]))
        == "[page 1]\nForm\n[form]\nname: Ann"
    )


def test_a_broken_page_does_not_keep_the_others_back() -> None:
    """It is named."""
    data = pdf("One", "(Two", "Three")
    assert text_of(data) == f"[page 1]\nOne\n[page 2]\n{UNREADABLE_PAGE}\n[page 3]\nThree"


# -- what is no document, or not open ---------------------------------------------------------------------------------

LOCKED = f"/Encrypt<</Filter/Standard/V 1/R 2/O({'o' * 32})/U({'u' * 32})/P -4>>/ID[(a)(a)]"
COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)


@pytest.mark.parametrize(
    ("data", "ending"),
    [
        (b"", Ending.NO_DOCUMENT),
        (b"\x89PNG", Ending.NO_DOCUMENT),
        (packed({"a.txt": b"x"}), Ending.NO_DOCUMENT),
        (packed({"_rels/.rels": word("")["_rels/.rels"]}), Ending.NO_DOCUMENT),
        (packed(word("") | {"word/document.xml": b"<drawing/>"}), Ending.NO_DOCUMENT),
        (packed(word(""))[:200], Ending.DAMAGED),
        (packed(word("") | {"word/document.xml": b"<document><p>"}), Ending.DAMAGED),
        (packed({"mimetype": b"application/vnd.oasis.opendocument.text"}), Ending.DAMAGED),
        (packed(book("x") | {"OPS/book.opf": b""}), Ending.DAMAGED),
        (b"%PDF-1.4\nnothing", Ending.DAMAGED),
        (COMPOUND, Ending.OLD_OFFICE),
        (COMPOUND + "EncryptedPackage".encode("utf-16-le"), Ending.PROTECTED),
        (packed(opendocument("") | {"META-INF/manifest.xml": b"<m><encryption-data/></m>"}), Ending.PROTECTED),
        (packed(book("x") | {"META-INF/encryption.xml": b"<e><CipherReference URI='a.xhtml'/></e>"}), Ending.PROTECTED),
        (
            pdf(
                "x",
                trailer="/Encrypt<</Filter/Standard/V 1/R 2/O(" + "o" * 32 + ")/U(" + "u" * 32 + ")/P -4>>/ID[(a)(a)]",
            ),
            Ending.PROTECTED,
        ),
    ],
)
def test_what_cannot_be_read_is_told_apart(data: bytes, ending: Ending) -> None:
    """Something else, damaged, of another age, or protected."""
    assert told(data)[0] is ending


def test_fonts_of_a_book_may_be_obfuscated() -> None:
    """That does not make the book unreadable."""
    encrypted = {"META-INF/encryption.xml": b"<e><CipherReference URI='OPS/font.otf'/></e>"}
    assert text_of(book("<p>open") | encrypted) == "open"


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        (word(""), "a Word document"),
        (workbook(""), "a spreadsheet"),
        (slides(), "a presentation"),
        (opendocument(""), "a text document"),
        (opendocument("", "spreadsheet-template"), "a spreadsheet"),
        (opendocument("", "chart"), "a document"),
        (book(), "an EPUB book"),
        (pdf("x"), "a PDF of 1 page"),
        (b"{\\rtf1 }", "an RTF document"),
    ],
)
def test_a_document_is_known_by_what_is_in_it(parts: dict[str, bytes] | bytes, kind: str) -> None:
    """Whatever its name says."""
    assert told(parts if isinstance(parts, bytes) else packed(parts))[1].partition("\n")[0] == kind
