"""An answer as a mail: its header, its two texts and its files, as bytes that any server takes. Pure.

All lines are ASCII and short (RFC 5322, section 2.1.1), so no server needs an extension for them; only an address with
letters beyond ASCII before its `@` needs one (SMTPUTF8, RFC 6531).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime

import idna

from channels._text.clean import clean
from channels.email.mail import Mailbox
from channels.email.own_ids import own_id
from channels.email.reading.msgids import first_and_newest, ids_in
from channels.email.subjects import without_answer_marks
from channels.email.writing.body import html_of
from channels.email.writing.header_fields import MailPolicy
from channels.email.writing.html import document
from channels.email.writing.letter import Letter, Parcel

LOOP_FIELD = "X-Loop"
"""Names the mailbox that a mail came from; a mail that comes back with it is our own, whoever sent it on."""
SUBJECT_CHARACTERS = 200
NAME_CHARACTERS = 100
FILE_NAME_CHARACTERS = 150
REFERENCES = 20
"""Ids that are kept: the first and the last ones (RFC 5537, section 3.4.4, for the same field of news)."""
_RECIPIENTS = 50
_FORMAT = re.compile(r"[\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\U000e0000-\U000e007f]")
_ADDRESS_CHARACTERS = 254
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*|\[[0-9a-z:.]{{2,60}}\]")
_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
_LONGEST_KIND = 16
_UNKNOWN_MIME = "application/octet-stream"
# Parts of these kinds are read by mail programs as parts of the mail, not as files.
_NEVER_FILES = frozenset({"multipart", "message"})
_LETTER_SHARE = 6
"""A text with one byte in so many beyond ASCII is shorter in base64."""


class AddressError(ValueError):
    """No mail can be addressed like this."""


def pack(letter: Letter) -> Parcel:
    """Compose a letter and write its envelope.

    Raises:
        AddressError: An address that no mail can have.
    """
    sender, *recipients = (_address(box).addr_spec for box in (letter.sender, letter.to, *letter.cc[:_RECIPIENTS]))
    return Parcel(
        key=letter.key,
        message_id=own_id(letter.key, sender, letter.thread),
        sender=sender,
        recipients=tuple(dict.fromkeys(recipients)),
        raw=compose(letter),
    )


def compose(letter: Letter) -> bytes:
    """Write a letter as a mail (RFC 5322, RFC 2046). The same letter gives the same bytes.

    Raises:
        AddressError: An address that no mail can have.
    """
    boxes = [_address(box) for box in (letter.sender, letter.to, *letter.cc[:_RECIPIENTS])]
    mail = EmailMessage(
        MailPolicy(
            linesep="\r\n", max_line_length=76, cte_type="7bit", utf8=not all(box.addr_spec.isascii() for box in boxes)
        )
    )
    mail["From"] = boxes[0]
    mail["To"] = boxes[1]
    if boxes[2:]:
        mail["Cc"] = boxes[2:]
    mail["Subject"] = one_line(letter.subject, SUBJECT_CHARACTERS)
    mail["Date"] = format_datetime(letter.date)
    mail["Message-ID"] = own_id(letter.key, boxes[0].addr_spec, letter.thread)
    answered = _ids([letter.in_reply_to])
    if answered:
        mail["In-Reply-To"] = answered[0]
    references = first_and_newest(_ids([*letter.references, *answered]), REFERENCES)
    if references:
        mail["References"] = " ".join(references)
    # RFC 3834, section 5; the other one is Exchange's. `Precedence` is left out: RFC 3834 calls it a poor choice, and
    # filters take it for advertising.
    mail["Auto-Submitted"] = "auto-replied" if answered else "auto-generated"
    mail["X-Auto-Response-Suppress"] = "All"
    mail[LOOP_FIELD] = boxes[0].addr_spec
    _write_content(mail, letter)
    return mail.as_bytes()


def reply_subject(subject: str) -> str:
    """The subject of an answer: `Re: ` once, whatever mail programs of any language have put before it."""
    bare = without_answer_marks(one_line(subject, SUBJECT_CHARACTERS))
    return f"Re: {bare}" if bare else "Re: (no subject)"


def one_line(text: str, most: int) -> str:
    """Bring words from outside onto one line: no control characters, none that nobody sees, and not too long.

    Args:
        text: Decoded.
        most: Characters.
    """
    words = " ".join(_FORMAT.sub("", clean(text)).split())
    words = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in words)
    return words if len(words) <= most else words[: most - 1].rstrip() + "…"


def _write_content(mail: EmailMessage, letter: Letter) -> None:
    """Write the texts and the files; the parts are kept apart by lines that stand in none of them."""
    text = _whole(letter.body.text)
    mail.set_content(text, cte=_encoding(text))
    html = _whole(html_of(letter.body))
    if html:
        page = document(html)
        mail.add_alternative(page, subtype="html", cte=_encoding(page))
    for file in letter.files:
        maintype, subtype = _kind(file.mime)
        mail.add_attachment(file.data, maintype=maintype, subtype=subtype, filename=_file_name(file.name))
    digest = hashlib.sha256(letter.key.encode("utf-8", "replace")).hexdigest()[:24]
    for number, part in enumerate(part for part in mail.walk() if part.is_multipart()):
        # `=_` stands in no text that is quoted-printable, and in no base64 (RFC 2045, section 6.7).
        part.set_boundary(f"=_{digest}_{number}")


def _whole(text: str) -> str:
    """A text without halves of characters, its lines ended as everywhere in the house."""
    return text.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n")


def _encoding(text: str) -> str:
    """The shorter encoding of the two; neither leaves a line long, a blank at its end, or a letter beyond ASCII."""
    data = text.encode()
    beyond = sum(byte > 0x7E for byte in data)
    return "base64" if beyond * _LETTER_SHARE > len(data) else "quoted-printable"


def _file_name(name: str) -> str:
    """A name without a folder; of a long one the beginning and what says its kind.

    `=?` is taken out of it: the library would decode an encoded word in a name, and write out what comes of that.
    """
    line = one_line(name.replace("/", "_").replace("\\", "_").replace("=?", "=_"), len(name) + 1) or "file"
    stem, dot, kind = line.rpartition(".")
    if len(line) <= FILE_NAME_CHARACTERS or not dot or len(kind) > _LONGEST_KIND:
        return one_line(line, FILE_NAME_CHARACTERS)
    return one_line(stem, FILE_NAME_CHARACTERS - len(kind) - 1) + dot + kind


def _kind(mime: str) -> tuple[str, str]:
    maintype, _, subtype = (mime if _MIME.fullmatch(mime) else _UNKNOWN_MIME).partition("/")
    if maintype in _NEVER_FILES:
        maintype, _, subtype = _UNKNOWN_MIME.partition("/")
    return maintype, subtype


def _ids(ids: Iterable[str]) -> list[str]:
    """Those that can be written, each once. `=?` would be read as an encoded word."""
    fit = (each for each in ids if ids_in(each) == (each,) and "=?" not in each)
    return list(dict.fromkeys(fit))


def _address(box: Mailbox) -> Address:
    """A mailbox as the library writes it: its domain in ASCII, its local part quoted where it must be."""
    local, at, _ = box.address.rpartition("@")
    if len(local) > 1 and local[0] == local[-1] == '"':
        local = re.sub(r"\\(.)", r"\1", local[1:-1])
    if not (local and at):
        raise AddressError("it is no address")
    # The library would write such dots without the quotes that they need.
    dots = local.startswith(".") or local.endswith(".") or ".." in local
    if dots or not (local.isprintable() and len(box.address) <= _ADDRESS_CHARACTERS):
        raise AddressError("it has characters that no address has, or too many")
    try:
        return Address(one_line(box.name, NAME_CHARACTERS), local, _ascii_domain(_domain(box.address)))
    except (MessageError, ValueError, IndexError) as error:
        raise AddressError("it is no address") from error


def _domain(address: str) -> str:
    return address.rpartition("@")[2]


def _ascii_domain(domain: str) -> str:
    """A domain as DNS has it (RFC 5891); an address literal, `[192.0.2.1]`, stays."""
    try:
        ascii_form = domain.lower() if domain.isascii() else idna.encode(domain, uts46=True).decode()
    except idna.IDNAError as error:
        raise AddressError("its domain is none") from error
    if not _DOMAIN.fullmatch(ascii_form):
        raise AddressError("its domain is none")
    return ascii_form
