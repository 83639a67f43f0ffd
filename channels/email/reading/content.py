"""What of a mail's parts is text to read, what is a file, and what is only named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from channels.email.mail import Body, MailFile
from channels.email.reading.charsets import declared_in_html, decode_text
from channels.email.reading.parts import MOST_LEVELS, Part
from channels.email.reading.pgp import unarmour
from channels.email.reading.transfer import decode_transfer

MOST_FILES = 100
MOST_TEXT_BYTES = 5_000_000
"""Of all texts of a mail together; they are for a model to read."""

_HTML = "text/html"
_TEXTS = frozenset({"text", "text/plain", "text/markdown", "text/x-markdown", "text/enriched", "text/richtext", _HTML})
_CALENDAR = "text/calendar"
_NAMED = {
    _CALENDAR: "a calendar invitation",
    "text/vcard": "a contact",
    "text/x-vcard": "a contact",
    "text/directory": "a contact",
    "application/pgp-signature": "a PGP signature",
    "application/pkcs7-signature": "an S/MIME signature",
    "application/x-pkcs7-signature": "an S/MIME signature",
    "application/pkcs7-mime": "S/MIME content that is not opened",
    "application/x-pkcs7-mime": "S/MIME content that is not opened",
}
# A person may have attached them, and the model may be asked about them.
_FILES_TOO = frozenset({_CALENDAR, "text/vcard", "text/x-vcard", "text/directory"})
_CALENDAR_NAMES = {"REPLY": "an answer to a calendar invitation", "CANCEL": "a cancelled calendar event"}
_METHOD = re.compile(rb"^METHOD:([A-Za-z]{1,20})", re.MULTILINE | re.IGNORECASE)
_METHOD_WITHIN = 4_000
# What programs write as the plain alternative when they have none to offer.
_EXCUSE = re.compile(r"\bhtml\b", re.IGNORECASE)
_MOST_EXCUSE_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Content:
    """What is in a mail below its header."""

    bodies: tuple[Body, ...]
    files: tuple[MailFile, ...]
    named: tuple[str, ...]
    calendar: str
    """The method of the calendar part, in upper case."""
    cut: bool


def read_content(raw: bytes, root: Part) -> Content:
    """Sort the parts of a mail."""
    sorter = _Sorter(raw)
    bodies = sorter.texts(root)
    return Content(tuple(bodies), tuple(sorter.files), tuple(dict.fromkeys(sorter.named)), sorter.calendar, sorter.cut)


class _Sorter:
    """Goes through a mail in its order; what a text does not hold is kept aside."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._text_bytes = 0
        self.files: list[MailFile] = []
        self.named: list[str] = []
        self.calendar = ""
        self.cut = False

    def texts(self, part: Part) -> list[Body]:
        """The texts to read in a part; its files and what is only named are noted on the way."""
        if not part.parts:
            return self._leaf(part)
        match part.type.value:
            case "multipart/alternative":
                return _best([self.texts(each) for each in part.parts])
            case "multipart/related":
                return self._related(part)
            case "multipart/encrypted":
                # Nothing in it can be read, so nothing in it is a file either.
                self.named.append("encrypted content that is not opened")
                return []
            case _:  # RFC 2046, section 5.1.3: what is unknown is mixed
                return [body for each in part.parts for body in self.texts(each)]

    def _related(self, part: Part) -> list[Body]:
        """Of parts that belong to one, that one is read (RFC 2387); a text beside it is its material."""
        start = part.type.parameters.get("start", b"").strip()
        ids = [each.header.first("content-id").strip() for each in part.parts]
        root = ids.index(start) if start and start in ids else 0
        bodies: list[Body] = []
        for place, each in enumerate(part.parts):
            if place == root:
                bodies = self.texts(each)
            else:
                for leaf in each.leaves():
                    self._keep(leaf)
        return bodies

    def _leaf(self, part: Part) -> list[Body]:
        if self._is_text(part):
            return self._read(part)
        self._keep(part)
        return []

    def _is_text(self, part: Part) -> bool:
        if part.type.value.startswith("multipart/"):
            # Its delimiter never comes. One that lies too deep has not been looked for.
            return part.number.count(".") < MOST_LEVELS - 1
        disposition = part.disposition
        if part.type.value not in _TEXTS or disposition.value not in {"", "inline"}:
            return False
        # A text with a name is a file, but for the first one: some programs give their own text a name.
        named = disposition.text("filename") or (self._text_bytes and part.type.text("name"))
        return not named

    def _keep(self, part: Part) -> None:
        """Note what is no text to read."""
        kind = part.type.value
        disposition = part.disposition.value
        if kind in _NAMED:
            name = _NAMED[kind]
            if kind == _CALENDAR:
                self.calendar = self.calendar or self._method(part)
                name = _CALENDAR_NAMES.get(self.calendar, name)
            self.named.append(name)
            if kind not in _FILES_TOO or not (disposition == "attachment" or part.name):
                return
        if len(self.files) == MOST_FILES:
            self.cut = True
            return
        size = sum(map(len, decode_transfer(self._raw, part.start, part.end, part.encoding)))
        self.files.append(MailFile(path=part.number, name=part.name, mime=kind, size=size))

    def _method(self, part: Part) -> str:
        """What a calendar part asks for; the mail says so beside the type, or it is looked up within (RFC 6047)."""
        said = part.type.token("method").upper()
        if said:
            return said
        found = _METHOD.search(self._decoded(part, _METHOD_WITHIN))
        return found[1].decode("ascii").upper() if found else ""

    def _read(self, part: Part) -> list[Body]:
        data = self._decoded(part, MOST_TEXT_BYTES - self._text_bytes)
        self._text_bytes += len(data)
        html = part.type.value == _HTML
        charset = part.type.token("charset") or (declared_in_html(data) if html else "")
        text = decode_text(data, charset).replace("\r\n", "\n").replace("\r", "\n")
        if not html:
            bare = unarmour(text)
            text = bare.text
            if bare.encrypted:
                self.named.append("encrypted content that is not opened")
            if bare.signed:
                self.named.append(_NAMED["application/pgp-signature"])
        if not text or text.isspace():
            return []
        flowed = not html and part.type.token("format").lower() == "flowed"
        return [Body(text=text, html=html, flowed=flowed, delsp=flowed and part.type.token("delsp").lower() == "yes")]

    def _decoded(self, part: Part, limit: int) -> bytes:
        pieces: list[bytes] = []
        left = limit
        for piece in decode_transfer(self._raw, part.start, part.end, part.encoding):
            pieces.append(piece[:left])
            left -= len(piece)
            if left < 0:
                self.cut = self.cut or limit != _METHOD_WITHIN
                break
        return b"".join(pieces)


def _best(choices: Sequence[Sequence[Body]]) -> list[Body]:
    """Choose among alternatives: the plain one, unless it is empty or only says that there is another one.

    They say the same in other forms, and the richest is the last (RFC 2046, section 5.1.4).
    """
    said = [choice for choice in choices if choice]
    plain = [choice for choice in said if not any(body.html for body in choice)]
    rich = [choice for choice in said if any(body.html for body in choice)]
    if plain and not (rich and _is_excuse(plain[0])):
        return list(plain[0])
    return list(rich[-1]) if rich else []


def _is_excuse(bodies: Sequence[Body]) -> bool:
    return all(len(body.text) < _MOST_EXCUSE_CHARACTERS and _EXCUSE.search(body.text) for body in bodies)
