"""What is wrong with a mail as it was handed to a server, by RFC 5322, RFC 2046 and RFC 5321."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email import message_from_bytes
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.policy import compat32, default
from email.utils import getaddresses, parsedate_to_datetime

LINE = 998
_FIELD = re.compile(rb"[!-9;-~]+: ?\S.*|[!-9;-~]+:", re.DOTALL)
_ENCODED_WORD = re.compile(rb"=\?[^?\s]+\?[bBqQ]\?[^?\s]*\?=")
_ONCE = ("From", "To", "Subject", "Date", "Message-ID", "MIME-Version")
_AT_MOST_ONCE = ("Cc", "In-Reply-To", "References", "Reply-To", "Sender", "Auto-Submitted")


def read(raw: bytes) -> EmailMessage:
    """A mail as a mail program reads it."""
    return message_from_bytes(raw, policy=default)


def complaints(raw: bytes, *, eight_bit: bool = False, utf8: bool = False) -> list[str]:
    """What is wrong with a mail; empty when nothing is.

    Args:
        raw: As it stood between DATA and the full stop, which is undoubled.
        eight_bit: The sender has said BODY=8BITMIME.
        utf8: The sender has said SMTPUTF8.
    """
    head, _, _ = raw.partition(b"\r\n\r\n")
    return [*_lines(raw, eight_bit=eight_bit), *_header(head, utf8=utf8), *_fields(raw, utf8=utf8), *_parts(raw)]


def mailboxes(raw: bytes, field: str) -> list[tuple[str, str]]:
    """The names and addresses of a field.

    The standard library's newer reader puts a blank between the encoded words of a name, against RFC 2047, section 6.2.
    """
    value = str(message_from_bytes(raw, policy=compat32).get(field, ""))
    return [(str(make_header(decode_header(name))), address) for name, address in getaddresses([value])]


def _lines(raw: bytes, *, eight_bit: bool) -> Iterator[str]:
    if not raw.endswith(b"\r\n"):
        yield "the last line has no end"
    if not raw.count(b"\n") == raw.count(b"\r") == raw.count(b"\r\n"):
        yield "a line end that is not CR LF"
    if b"\0" in raw:
        yield "a NUL"
    if not raw.isascii() and not eight_bit:
        yield "8 bit without 8BITMIME"
    longest = max(len(line) for line in raw.split(b"\r\n"))
    if longest > LINE:
        yield f"a line of {longest} bytes"


def _header(head: bytes, *, utf8: bool) -> Iterator[str]:
    if not head.isascii() and not utf8:
        yield "a header beyond ASCII without SMTPUTF8"
    for line in head.split(b"\r\n"):
        if not line.strip():
            yield "an empty line in the header"
        elif line[:1] not in b" \t" and not _FIELD.fullmatch(line):
            yield f"no field: {line[:60]!r}"
        if any(byte < 0x20 and byte != 0x09 for byte in line):
            yield f"a control character in the header: {line[:60]!r}"
        yield from (f"an encoded word of {len(word)}" for word in _ENCODED_WORD.findall(line) if len(word) > 75)


def _fields(raw: bytes, *, utf8: bool) -> Iterator[str]:
    mail = read(raw)
    for name in _ONCE:
        if len(mail.get_all(name, [])) != 1:
            yield f"{name} stands there {len(mail.get_all(name, []))} times"
    for name in _AT_MOST_ONCE:
        if len(mail.get_all(name, [])) > 1:
            yield f"{name} stands there twice"
    if len(mail["From"].addresses) != 1:
        yield "From has not one mailbox"
    if not re.fullmatch(r"<[^<>@\s]+@[^<>@\s]+>", str(mail["Message-ID"])):
        yield f"no Message-ID: {mail['Message-ID']}"
    for each in str(mail.get("References", "")).split():
        if not re.fullmatch(r"<[^<>\s]+>", each):
            yield f"no id in References: {each}"
    if parsedate_to_datetime(str(mail["Date"])).tzinfo is None:
        yield "a Date without a zone"
    for name in () if utf8 else ("From", "To", "Cc"):
        yield from (f"{name}: {defect!r}" for field in mail.get_all(name, []) for defect in field.defects)


def _parts(raw: bytes) -> Iterator[str]:
    for part in read(raw).walk():
        yield from (f"{part.get_content_type()}: {defect!r}" for defect in part.defects)
        if part.is_multipart():
            if part.get("Content-Transfer-Encoding", "7bit") not in {"7bit", "8bit", "binary"}:
                yield "an encoded multipart"
            continue
        if part.get_content_type() in {"text/plain", "text/html"} and not part.is_attachment():
            part.get_content()
