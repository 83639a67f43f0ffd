"""What a server's answers say; pure, and never an exception, whatever the lines are.

Lines are as aioimaplib gives them: without `* `, a literal as an element of its own (a `bytearray`), last the text of
the answer that ends the command. https://www.rfc-editor.org/rfc/rfc3501#section-7
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from channels.email.imap.names import decode_name

Lines = Sequence[bytes | bytearray]
MAX_UID = 2**32 - 1
BEGINS_MAIL = re.compile(rb"(?:\* )?\d+ FETCH \(", re.IGNORECASE)
"""How the answer about one mail begins."""

_CODE = re.compile(r"\s*\[([^\]\s]+)(?: ([^\]]*))?\]")
# A quoted string, a parenthesis, or an atom, perhaps with a section behind it: BODY[HEADER.FIELDS (TO)]<0>.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[()]|[^\s()"\[]+(?:\[[^\]]*\](?:<\d+>)?)?')
_LISTED = re.compile(rb'(?:LIST )?\(([^)]*)\) (?:NIL|"(?:[^"\\]|\\.)*") ?(.*)', re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(rb"\d{1,10}")
_NUMBERED = re.compile(r"\d{1,10}")
_SAID = ("UIDVALIDITY", "UIDNEXT")
_LONGEST_TEXT = 200


@dataclass(frozen=True, slots=True)
class Entry:
    """A mail in a folder."""

    uid: int
    size: int = 0
    """Bytes, as the server counts them."""
    flags: frozenset[str] = frozenset()
    """In lower case: `\\seen`, `\\answered`, ..."""
    body: bytes | None = None
    """The part of it that was asked for; None: it was not given."""

    @property
    def seen(self) -> bool:
        """Whether somebody has read it."""
        return "\\seen" in self.flags


@dataclass(frozen=True, slots=True)
class Folder:
    """A selected folder."""

    name: str
    validity: int
    """UIDs mean the same mails only as long as this number stays (RFC 3501, section 2.3.1.1)."""
    next_uid: int
    """What the next mail gets, at least; 0: the server does not say."""
    exists: int
    """How many mails there are."""


def told(line: bytes | bytearray) -> str:
    """A server's words, for a log: printable ASCII on one line, cut."""
    text = line[:_LONGEST_TEXT].decode("ascii", "replace")
    return "".join(character if " " <= character <= "~" else "?" for character in text).strip()


def code_of(line: bytes | bytearray) -> tuple[str, str]:
    """The response code of an answer's text, in upper case, and what stands behind it; both may be empty."""
    match = _CODE.match(told(line))
    return (match[1].upper(), match[2] or "") if match else ("", "")


def capabilities_of(lines: Lines) -> frozenset[str]:
    """The names that a CAPABILITY answer lists, in upper case."""
    return frozenset(word.decode("ascii", "replace").upper() for line in lines[:-1] for word in line.split())


def found_by(lines: Lines) -> list[int]:
    """The numbers that a SEARCH answer lists, sorted, each once."""
    numbers = {int(word) for line in lines[:-1] for word in line.split() if _NUMBER.fullmatch(word)}
    return sorted(number for number in numbers if 0 < number <= MAX_UID)


def folder_of(name: str, lines: Lines) -> Folder:
    """What SELECT or EXAMINE answered; what is not said is 0."""
    codes: dict[str, str] = {}
    exists = 0
    for line in lines:
        status, _, rest = bytes(line).partition(b" ")
        if rest.strip().upper() == b"EXISTS" and _NUMBER.fullmatch(status):
            exists = int(status)
        code, detail = code_of(rest if status.upper() == b"OK" else line)
        codes.setdefault(code, detail)
    validity, next_uid = (int(codes[key]) if _NUMBERED.fullmatch(codes.get(key, "")) else 0 for key in _SAID)
    return Folder(name, validity, next_uid, exists)


def entries_of(lines: Lines) -> Iterator[Entry]:
    """The mails of a FETCH answer that have a UID; what other sessions did to other mails in between is left out."""
    tokens: list[bytes | bytearray] = []
    for line in lines[:-1]:
        if isinstance(line, bytearray):
            # In the place of its announcement, {SIZE}.
            tokens[-1:] = [line]
            continue
        begins = BEGINS_MAIL.match(line)
        if begins:
            yield from _entry(tokens)
            tokens = []
        tokens += _TOKEN.findall(line, begins.end() if begins else 0)
    yield from _entry(tokens)


def special_folders(lines: Lines) -> Mapping[str, str]:
    r"""The folders of a LIST answer by each of their attributes, in lower case (RFC 6154: `\sent`, `\trash`, ...)."""
    folders: dict[str, str] = {}
    for number, line in enumerate(lines[:-1]):
        match = None if isinstance(line, bytearray) else _LISTED.match(line)
        if match is None:
            continue
        following = lines[number + 1]
        raw = bytes(following) if isinstance(following, bytearray) else _unquoted(match[2].strip())
        with contextlib.suppress(ValueError):
            name = decode_name(raw.decode("ascii"))
            for attribute in match[1].decode("ascii", "replace").lower().split():
                folders.setdefault(attribute, name)
    return folders


def appended_uid(line: bytes | bytearray) -> int | None:
    """The UID that APPEND answered (RFC 4315, section 3)."""
    code, detail = code_of(line)
    words = detail.split()
    return int(words[1]) if code == "APPENDUID" and len(words) == 2 and words[1].isdecimal() else None


def _entry(tokens: Sequence[bytes | bytearray]) -> Iterator[Entry]:
    """One mail, from the tokens between the outermost parentheses."""
    items: dict[str, bytes | bytearray | list[bytes]] = {}
    name = ""
    group: list[bytes] | None = None
    for token in tokens:
        if token == b"(" and isinstance(token, bytes):
            group = []
        elif token == b")" and isinstance(token, bytes):
            if group is None:
                break
            items[name], group, name = group, None, ""
        elif group is not None:
            group.append(bytes(token))
        elif not name:
            name = "" if isinstance(token, bytearray) else token.decode("ascii", "replace").upper()
        else:
            items[name], name = token, ""
    uid = _number(items.get("UID"))
    if 0 < uid <= MAX_UID:
        flags = items.get("FLAGS")
        words = flags if isinstance(flags, list) else []
        body = next((value for key, value in items.items() if key.startswith("BODY[")), None)
        yield Entry(
            uid,
            _number(items.get("RFC822.SIZE")),
            frozenset(word.decode("ascii", "replace").lower() for word in words),
            None if body is None or isinstance(body, list) else _text(body),
        )


def _number(value: bytes | bytearray | list[bytes] | None) -> int:
    return int(value) if isinstance(value, bytes) and re.fullmatch(rb"\d{1,18}", value) else 0


def _text(value: bytes | bytearray) -> bytes:
    """A string, in whichever of its three forms it came."""
    if isinstance(value, bytearray):
        return bytes(value)
    return b"" if value.upper() == b"NIL" else _unquoted(value)


def _unquoted(value: bytes) -> bytes:
    if len(value) < 2 or value[:1] != b'"' or value[-1:] != b'"':
        return value
    return re.sub(rb"\\(.)", rb"\1", value[1:-1])
