"""Documents that are made to break whoever reads them."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZipFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.documents.made import (
    book,
    opendocument,
    packed,
    paragraph,
    pdf,
    pdf_of,
    slides,
    told,
    word,
    workbook,
)
from zerobot.tools.documents.child import OutOfTimeError, read
from zerobot.tools.documents.endings import Ending, UnreadableError
from zerobot.tools.documents.package import Package, resolved
from zerobot.tools.documents.reading import document_text

MEGABYTE = 1_000_000


def swollen(part: str, parts: dict[str, bytes], megabytes: int) -> bytes:
    """A ZIP file in which `@@` of a part stands for very many letters."""
    before, after = parts[part].split(b"@@")
    out = io.BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        for name in parts.keys() - {part}:
            archive.writestr(name, parts[name])
        with archive.open(part, "w") as writer:
            writer.write(before)
            for _ in range(megabytes):
                writer.write(b"x" * MEGABYTE)
            writer.write(after)
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "memory"),
    [
        (swollen("word/document.xml", word("@@"), 260), 512 * MEGABYTE),
        (swollen("word/document.xml", word(paragraph("@@")), 100), 128 * MEGABYTE),
    ],
    ids=["unpacked", "held"],
)
async def test_what_unpacks_to_too_much_is_given_up(tmp_path: Path, data: bytes, memory: int) -> None:
    """By a count of what is unpacked, or by the memory of the process."""
    (tmp_path / "a").write_bytes(data)
    with io.FileIO(tmp_path / "a") as file:
        assert (await document_text(file, 10, memory=memory)).ending is Ending.TOO_LARGE


def test_all_parts_together_are_counted() -> None:
    """Also a part that is read again."""
    package = Package(io.BytesIO(packed({"a": b"x" * 600})), limit=1_000)
    assert b"".join(package.pieces("a")) == b"x" * 600
    with pytest.raises(UnreadableError, match="unpacks to more"):
        list(package.pieces("a"))


ENTITIES = (
    b"<!DOCTYPE d [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'><!ENTITY x SYSTEM 'file:///etc/passwd'>]>"
    b"<document><p><r><t>&b;&x;</t></r></p></document>"
)


def test_entities_are_refused() -> None:
    """Neither multiplied nor fetched: nothing of such a part is read."""
    assert told(packed(word("") | {"word/document.xml": ENTITIES})) == (Ending.DAMAGED, "")


def test_what_was_read_in_time_counts() -> None:
    """The end of the time is no fault of a page, which would be passed over."""

    class Late(io.BytesIO):
        def write(self, data: Any, /) -> int:
            if bytes(data).startswith(b"[page 2]"):
                raise OutOfTimeError
            return super().write(data)

    out = Late()
    assert read(io.BytesIO(pdf("One", "Two")), out) is Ending.TOO_SLOW
    assert out.getvalue().endswith(b"[page 1]\nOne\n")


def test_only_the_usual_packing_is_unpacked() -> None:
    """Others unpack in pieces that nobody bounds."""
    out = io.BytesIO()
    with ZipFile(out, "w", ZIP_BZIP2) as archive:
        for name, data in word("").items():
            archive.writestr(name, data)
    assert told(out.getvalue())[0] is Ending.DAMAGED


def test_pages_that_hold_themselves_end() -> None:
    """A tree of pages in a circle."""
    data = pdf_of(["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Count 1/Kids[2 0 R]>>"])
    assert told(data)[0] is Ending.DAMAGED


@pytest.mark.parametrize(
    ("folder", "reference", "name"),
    [
        ("a/b", "c.xml", "a/b/c.xml"),
        ("a", "../../../etc/passwd", "etc/passwd"),
        ("a", "/b%20c#d", "b c"),
        ("", "//a", "a"),
    ],
)
def test_a_reference_stays_in_its_package(folder: str, reference: str, name: str) -> None:
    """Whatever it says."""
    assert resolved(folder, reference) == name


@pytest.mark.parametrize(("library", "data"), [("pypdf", pdf("x")), ("striprtf", b"{\\rtf1 x}")])
def test_a_missing_library_is_told(tmp_path: Path, library: str, data: bytes) -> None:
    """By a status of its own; what does without it is read."""
    code = f"""import sys; sys.modules[{library!r}] = None
from zerobot.tools.documents.child import main
sys.exit(main())"""
    order = json.dumps({"seconds": 10, "memory": 512 * MEGABYTE})

    def status(document: bytes) -> int:
        (tmp_path / "a").write_bytes(document)
        with (tmp_path / "a").open("rb") as file:
            argv = [sys.executable, "-c", code, order]
            return subprocess.run(argv, stdin=file, stdout=subprocess.DEVNULL, check=False).returncode

    assert status(data) == Ending.NO_LIBRARY
    assert status(packed(word(""))) == Ending.COMPLETE


WHOLE: tuple[dict[str, bytes], ...] = (
    word(paragraph("text", "Heading1"), footnotes=paragraph("note")),
    workbook(
        '<row><c r="B1" t="s" s="0"><v>0</v></c></row>', "<si><t>a</t></si>", '<cellXfs><xf numFmtId="14"/></cellXfs>'
    ),
    slides("<a:p><a:r><a:t>a</a:t></a:r></a:p>", notes="<a:p/>"),
    opendocument("<text:list><text:p>a</text:p></text:list><table:table-cell><text:p>b</text:p></table:table-cell>"),
    book("<h1>a</h1>"),
)
PIECES = st.sampled_from(
    [b"<", b">", b"/", b'"', b"&", b"=", b"\0", b"-1", b"99999999999", b"<w:p>", b"<w:tc>", b"</w:tc>"]
)


@settings(max_examples=200)
@given(st.sampled_from(WHOLE), st.data())
def test_any_change_of_a_part_is_survived(parts: dict[str, bytes], data: st.DataObject) -> None:
    """Nothing is raised, and there is no more text than there was."""
    name = data.draw(st.sampled_from(sorted(parts)))
    part = parts[name]
    at = data.draw(st.integers(0, len(part)))
    changed = part[:at] + data.draw(PIECES | st.binary(max_size=3)) + part[at + data.draw(st.integers(0, 6)) :]
    ending, text = told(packed(parts | {name: changed}))
    assert isinstance(ending, Ending)
    assert len(text) < 2_000


@settings(max_examples=200)
@given(st.sampled_from([pdf("One", "Two"), b"{\\rtf1\\ansi{\\fonttbl{\\f0 A;}}\\u8364?\\'e9\\par{\\b x}}"]), st.data())
def test_any_change_of_a_file_is_survived(whole: bytes, data: st.DataObject) -> None:
    """Nothing is raised, and there is no more text than there could be."""
    at = data.draw(st.integers(0, len(whole)))
    changed = whole[:at] + data.draw(st.binary(max_size=5)) + whole[at + data.draw(st.integers(0, 20)) :]
    ending, text = told(changed)
    assert isinstance(ending, Ending)
    assert len(text) < 2_000
