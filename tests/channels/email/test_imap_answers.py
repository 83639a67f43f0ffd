"""A server's answers and the names of folders, whatever is in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.email.imap.answers import (
    appended_uid,
    capabilities_of,
    code_of,
    entries_of,
    folder_of,
    found_by,
    special_folders,
    told,
)
from channels.email.imap.names import decode_name, encode_name, quoted

PIECES = [
    b"1 FETCH (",
    b"* 2 FETCH (",
    b"UID 5",
    b"UID",
    b" ",
    b"FLAGS (",
    b"(",
    b")",
    b"BODY[",
    b"BODY[]",
    b"]",
    b"{3}",
]
PIECES += [
    b'"',
    b'"a"',
    b"\\",
    b"RFC822.SIZE ",
    b"99999999999999999999",
    b"NIL",
    b"LIST (\\Sent) ",
    b"[UIDNEXT 5]",
    b"[",
    b"\xff",
]
lines = st.lists(st.lists(st.sampled_from(PIECES) | st.binary(max_size=3)).map(b"".join) | st.binary().map(bytearray))


@given(lines)
def test_no_answer_is_an_exception(lines: list[bytes | bytearray]) -> None:
    """Whatever the server writes."""
    answer = [*lines, b"done"]
    for entry in entries_of(answer):
        assert 0 < entry.uid < 2**32
    found_by(answer)
    folder_of("INBOX", answer)
    special_folders(answer)
    capabilities_of(answer)
    for line in lines:
        assert told(line).isascii()
        code_of(line)
        appended_uid(line)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_name_comes_back(name: str) -> None:
    """Through ASCII, as RFC 3501 has it."""
    wire = encode_name(name)
    assert wire.isascii()
    assert wire.isprintable()
    assert decode_name(wire) == ("INBOX" if name.upper() == "INBOX" else name)


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("~peter/mail/台北/日本語", "~peter/mail/&U,BTFw-/&ZeVnLIqe-"),
        ("a & b", "a &- b"),
        ("😀", "&2D3eAA-"),
        ("inbox", "INBOX"),
    ],
)
def test_names_as_the_rfc_writes_them(name: str, wire: str) -> None:
    """Section 5.1.3's own example, and characters beyond the first plane."""
    assert encode_name(name) == wire


@pytest.mark.parametrize("wire", ["&", "&Jjo", "&U,BTFw-&ZeVnLIqe-", "&AGE-", "a&b-", "ä"])
def test_a_name_that_is_no_modified_utf7_is_refused(wire: str) -> None:
    """It would be asked for by another one."""
    with pytest.raises(ValueError, match="no name"):
        decode_name(wire)


@pytest.mark.parametrize("text", ["a\r\nA1 LOGOUT", "a\nb", "a\0b"])
def test_nothing_quoted_begins_another_command(text: str) -> None:
    """A line break is refused."""
    with pytest.raises(ValueError, match="line break"):
        quoted(text)
