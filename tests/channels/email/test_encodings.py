"""Charsets, encoded words, parameters and transfer encodings, there and back."""

from __future__ import annotations

import base64
import quopri
from email.charset import QP, Charset
from email.header import Header
from email.message import Message

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.email.reading.charsets import codec_of, declared_in_html, decode_text
from channels.email.reading.encoded_words import decode_words, one_line
from channels.email.reading.parameters import read_content_type, read_disposition
from channels.email.reading.transfer import decode_base64, decode_transfer

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp", "Zs")), min_size=1)
LABELS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["idna", "punycode", "undefined", "rot13", "zlib", "hex", "unicode_escape", "raw_unicode_escape", "mbcs", "oem"]
    ),
    st.sampled_from(["utf-7", "hz", "utf-16", "iso-2022-jp", "iso-2022-kr", "gb2312", "koi8-r", "us-ascii", "big5"]),
)


@given(st.binary(max_size=100), LABELS)
def test_any_bytes_are_text_by_any_label(data: bytes, label: str) -> None:
    """Nothing raises, and what comes out can be stored."""
    text = decode_text(data, label)
    text.encode()
    assert "\0" not in text


@pytest.mark.parametrize(
    "label", ["idna", "punycode", "undefined", "rot13", "zlib", "base64", "string_escape", "../x", ""]
)
def test_what_is_no_charset_is_not_used_as_one(label: str) -> None:
    """Python has codecs that are no charsets, and finds modules by the names that it is asked for."""
    assert codec_of(label) is None


@pytest.mark.parametrize(
    "html",
    [b'<meta charset="koi8-r">', b"<META http-equiv=Content-Type content='text/html; charset = koi8-r'>"],
)
def test_an_html_text_may_name_its_own_charset(html: bytes) -> None:
    """Both ways to write it."""
    assert declared_in_html(b"<html><head>" + html) == "koi8-r"


@given(TEXTS, st.sampled_from(["utf-8", "q"]))
def test_an_encoded_text_is_decoded(text: str, form: str) -> None:
    """However long it is and wherever it was cut."""
    charset = Charset("utf-8")
    if form == "q":
        charset.header_encoding = QP
    encoded = Header(text, charset, maxlinelen=75).encode(linesep="\r\n").replace("\r\n", "")
    assert decode_words(encoded) == text


@given(st.text(max_size=100))
def test_a_line_is_a_line(text: str) -> None:
    """Whatever was in it."""
    line = one_line(decode_words(text))
    assert len(line.splitlines()) <= 1
    line.encode()


@given(TEXTS)
def test_a_file_name_is_read_as_it_was_written(name: str) -> None:
    """As the standard library writes one that is not ASCII (RFC 2231)."""
    message = Message()
    message.add_header("Content-Disposition", "attachment", filename=("utf-8", "", name))
    read = read_disposition(message["Content-Disposition"].encode())
    assert read.value == "attachment"
    assert read.text("filename") == one_line(name)[-255:].strip()


@given(st.binary(max_size=200))
def test_no_parameters_raise(field: bytes) -> None:
    """Whatever they are; a type is always there."""
    assert "/" in read_content_type(b"text/plain" + field).value
    read_content_type(field).text("name")
    read_disposition(b"attachment; filename" + field).text("filename")


@given(st.binary(max_size=300), st.text(" \r\n\t!-_.~\x00", max_size=3))
def test_base64_is_decoded_through_noise(data: bytes, noise: str) -> None:
    """What does not belong into it is skipped, missing padding is made up for."""
    encoded = base64.b64encode(data).rstrip(b"=")
    assert decode_base64(noise.encode().join(encoded[at : at + 7] for at in range(0, len(encoded), 7))) == data


@pytest.mark.parametrize("size", [1_500_000, 1_500_001, 1_500_002])
@pytest.mark.parametrize("encoding", ["base64", "quoted-printable", "8bit"])
def test_a_large_part_comes_in_pieces_and_whole(encoding: str, size: int) -> None:
    """Nothing is lost where one piece ends and the next begins."""
    content = bytes(range(32, 127)) * (size // 95) + b"x" * (size % 95)
    encode = {"base64": base64.encodebytes, "quoted-printable": quopri.encodestring}.get(encoding, bytes)
    raw = b"head" + encode(content) + b"tail"
    pieces = list(decode_transfer(raw, 4, len(raw) - 4, encoding))
    assert len(pieces) > 1
    assert b"".join(pieces) == content


@given(st.binary(max_size=300))
def test_quoted_printable_is_decoded(data: bytes) -> None:
    """As the standard library writes it, with line ends of both kinds."""
    lines = data.replace(b"\r", b"")
    for encoded in (quopri.encodestring(lines), quopri.encodestring(lines).replace(b"=\n", b"= \t\r\n")):
        assert b"".join(decode_transfer(encoded, 0, len(encoded), "quoted-printable")) == lines
