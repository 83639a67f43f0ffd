"""A mail as bytes to a mail as values: nothing raises, nothing is without a limit, and numbers name what they name."""

from __future__ import annotations

import base64
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.email.correspondence import thread_root
from channels.email.mail import Mail
from channels.email.reading.automatic import why_unanswered
from channels.email.reading.content import MOST_FILES, MOST_TEXT_BYTES
from channels.email.reading.fields import MOST_FIELDS
from channels.email.reading.fingerprint import fingerprint
from channels.email.reading.mime import MOST_SUBJECT_CHARACTERS, part_bytes, read_mail
from channels.email.subjects import base_subject
from tests.channels.email.mime_trees import HEADER, Branch, damaged, leaves, trees


def check_limits(raw: bytes, mail: Mail) -> None:
    """What holds of every mail: it is no larger than its bytes, all of it can be stored and shown on a line."""
    lines = [mail.subject, *(file.name for file in mail.files), *(box.name for box in (*mail.to, *mail.cc))]
    assert not any(character in line for line in lines for character in "\r\n\t\0\u202e")
    assert not any("\0" in body.text for body in mail.bodies)
    for text in (*lines, *(value for _, value in mail.fields), *(body.text for body in mail.bodies)):
        text.encode()
    assert sum(len(body.text) for body in mail.bodies) <= min(len(raw), MOST_TEXT_BYTES)
    assert sum(file.size for file in mail.files) <= len(raw)
    assert len(mail.files) <= MOST_FILES
    assert len(mail.fields) <= MOST_FIELDS
    assert len(mail.subject) <= MOST_SUBJECT_CHARACTERS


def use(raw: bytes) -> Mail:
    """All that is done with a mail."""
    mail = read_mail(raw)
    why_unanswered(mail, frozenset({"bot@example.test"}))
    thread_root(mail)
    fingerprint(mail, raw)
    base_subject(mail.subject)
    return mail


@given(trees)
def test_each_part_is_fetched_by_its_number(tree: Branch) -> None:
    """As IMAP numbers them, with the bytes that were put in, whatever the tree looks like."""
    raw = HEADER + tree.render()
    known = dict(leaves(tree))
    for number, leaf in known.items():
        assert part_bytes(raw, number, len(raw)) == leaf.content
    mail = read_mail(raw)
    assert not mail.cut
    for file in mail.files:
        assert known[file.path].mime.startswith(file.mime)
        assert file.size == len(known[file.path].content)


@given(trees)
def test_a_part_is_text_or_a_file_and_never_both(tree: Branch) -> None:
    """Where nothing is an alternative, every part is somewhere, in the order of the mail."""
    mixed = Branch("mixed", tuple(leaf for _, leaf in leaves(tree)))
    mail = read_mail(HEADER + mixed.render())
    texts = [leaf.content.decode() for _, leaf in leaves(mixed) if leaf.mime.startswith("text/plain")]
    others = [number for number, leaf in leaves(mixed) if not leaf.mime.startswith("text/plain")]
    assert [body.text for body in mail.bodies] == [text.replace("\r\n", "\n") for text in texts if text.strip()]
    assert [file.path for file in mail.files] == others


@given(damaged())
def test_a_damaged_mail_is_read_as_far_as_it_goes(raw: bytes) -> None:
    """No fault raises, and each file that is listed can still be fetched."""
    mail = use(raw)
    check_limits(raw, mail)
    for file in mail.files:
        content = part_bytes(raw, file.path, file.size)
        assert content is not None
        assert len(content) == file.size


@given(st.binary(max_size=2_000))
def test_no_bytes_raise(raw: bytes) -> None:
    """Whatever a server hands over."""
    check_limits(raw, use(raw))


def test_a_part_that_is_too_large_or_missing_is_not_fetched() -> None:
    """The limit is that of the decoded bytes."""
    raw = HEADER + b"Content-Transfer-Encoding: base64\r\n\r\n" + base64.b64encode(b"x" * 1_000)
    assert part_bytes(raw, "1", 1_000) == b"x" * 1_000
    assert part_bytes(raw, "1", 999) is None
    assert part_bytes(raw, "2", 1_000) is None


def test_a_large_file_is_not_held_in_memory() -> None:
    """Beside the bytes that came, a mail with a file of 12 MB takes less than 4 MB to read."""
    raw = (
        HEADER
        + b'Content-Type: application/pdf; name="a.pdf"\r\nContent-Transfer-Encoding: base64\r\n\r\n'
        + base64.encodebytes(bytes(12_000_000)).replace(b"\n", b"\r\n")
    )
    tracemalloc.start()
    try:
        mail = read_mail(raw)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [file.size for file in mail.files] == [12_000_000]
    assert peak < 4_000_000


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(
            HEADER
            + b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n'
            + b"--b\r\nContent-Type: image/png\r\n\r\n\r\n" * 3_000,
            id="parts",
        ),
        pytest.param(
            HEADER
            + b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n'
            + b"--b\r\nContent-Type: image/png\r\n\r\n\r\n" * 200,
            id="files",
        ),
        pytest.param(
            HEADER
            + b"Content-Type: multipart/mixed; boundary=0\r\n\r\n"
            + b"".join(b"--%d\r\nContent-Type: multipart/x; boundary=%d\r\n\r\n" % (n, n + 1) for n in range(3_000)),
            id="levels",
        ),
        pytest.param(HEADER + b"X: y\r\n" * 3_000 + b"\r\ntext", id="fields"),
        pytest.param(HEADER + b"X: " + b"y" * 200_000 + b"\r\n\r\ntext", id="a long field"),
        pytest.param(HEADER + b"X:" + b"\r\n y" * 500_000 + b"\r\n\r\ntext", id="a long header"),
        pytest.param(HEADER + b"\r\n" + b"word " * 1_100_000, id="text"),
        pytest.param(
            HEADER + b"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + b"\n--c" * 600_000, id="near delimiters"
        ),
    ],
)
def test_what_goes_beyond_a_limit_is_left_out_and_said(raw: bytes) -> None:
    """Very many or very deep parts, very long headers, very much text."""
    mail = use(raw)
    check_limits(raw, mail)
    assert mail.cut


def test_where_fields_were_left_out_nobody_is_the_sender() -> None:
    """A second From may have been among them."""
    assert read_mail(HEADER + b"X: y\r\n" * 3_000 + b"From: mallory@evil.test\r\n\r\n").sender is None
