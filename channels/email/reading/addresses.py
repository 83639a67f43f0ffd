"""Addresses in fields: From by the grammar and nothing else, To and Cc as far as they can be read (RFC 5322, 3.4).

No parser of the standard library is used: `parseaddr` and its kin find an address in nearly anything, and not always
the one that other programs find.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice

from channels.email.mail import Mailbox
from channels.email.reading.comments import without_comments
from channels.email.reading.encoded_words import decode_words, one_line

MOST_MAILBOXES = 200
_MOST_PIECES = 1_000
_MOST_CHARACTERS = 10_000
"""Of a field that holds one mailbox."""
_MOST_NAME_CHARACTERS = 200
_MOST_ADDRESS_CHARACTERS = 320
_MOST_HOST_CHARACTERS = 253

# Said by what it has not: a class that goes beyond U+FFFF takes a millisecond to compile, each time it is used.
_ATOM = r'[^\x00- "(),.:;<>@\[\\\]\x7f]++'
_DOT_ATOM = rf"{_ATOM}(?:\.{_ATOM})*+"
_QUOTED = r'"(?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[^\x00-\x08\x0a-\x1f\x7f])*+"'
_BLANKS = r"[ \t]*+"
_ADDRESS = re.compile(rf"({_DOT_ATOM}|{_QUOTED}){_BLANKS}@{_BLANKS}({_DOT_ATOM}|\[[!-Z^-~]++\])")
# By the grammar a name's dots are obsolete, and an `@` must be quoted. Many programs write both: they can be read in
# one way only, since the address is what stands in the brackets behind them.
_NAME_WORD = re.compile(rf"{_BLANKS}({_ATOM}|{_QUOTED}|[.@]++)")
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*+")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_MARK = re.compile(r'\\.|["()<>,;:]', re.DOTALL)
_LAST_BRACKETS = re.compile(r"<([^<>]*)>[^<>]*\Z")


def one_mailbox(values: Sequence[str]) -> Mailbox | None:
    """Read the sender: the one mailbox of the one field.

    Args:
        values: Of all fields of the name, unfolded.

    Returns:
        None when there are several fields or addresses, a group, a route, or anything that is not the grammar.
    """
    if len(values) != 1 or len(values[0]) > _MOST_CHARACTERS or not _is_closed(values[0]):
        return None
    return _mailbox(values[0])


def mailboxes(values: Sequence[str]) -> tuple[Mailbox, ...]:
    """Read recipients, members of groups among them; what can't be read is left out, and what is beyond 200 too."""
    found: dict[str, Mailbox] = {}
    for piece in islice((piece for value in values for piece in _pieces(value)), _MOST_PIECES):
        box = _mailbox(piece) or _in_brackets(piece)
        if box is not None:
            found.setdefault(box.address, box)
        if len(found) == MOST_MAILBOXES:
            break
    return tuple(found.values())


def _mailbox(text: str) -> Mailbox | None:
    """Read `address` or `name <address>`, comments anywhere between their words."""
    bare = without_comments(text).strip(" \t")
    alone = _ADDRESS.fullmatch(bare)
    if alone is not None:
        return _made("", alone)
    words: list[str] = []
    at = 0
    while word := _NAME_WORD.match(bare, at):
        words.append(word[0] if word[1][0] != '"' else word[0].replace(word[1], _unquoted(word[1])))
        at = word.end()
    rest = bare[at:].strip(" \t")
    if not (rest.startswith("<") and rest.endswith(">")):
        return None
    bracketed = _ADDRESS.fullmatch(rest[1:-1].strip(" \t"))
    return None if bracketed is None else _made("".join(words), bracketed)


def _made(name: str, found: re.Match[str]) -> Mailbox | None:
    address = _address(found[1], found[2])
    return None if address is None else Mailbox(one_line(decode_words(name))[:_MOST_NAME_CHARACTERS], address)


def _address(local: str, domain: str) -> str | None:
    """The one form of an address that is compared; None when there is none."""
    # Some letters become others in lower case (the Kelvin sign a k); none of those is of the normal form.
    if not unicodedata.is_normalized("NFC", local + domain):
        return None
    local = local.lower()
    if local.startswith('"'):
        content = _unquoted(local)
        plain = re.fullmatch(_DOT_ATOM, content) is not None
        local = content if plain else '"' + re.sub(r'([\\"])', r"\\\1", content) + '"'
    host = _host(domain.lower())
    if host is None or not local.isprintable() or len(local) + len(host) >= _MOST_ADDRESS_CHARACTERS:
        return None
    return f"{local}@{host}"


def _host(domain: str) -> str | None:
    """The ASCII form of a domain in lower case, without any mapping of one letter to another (RFC 5891)."""
    if domain.startswith("["):
        return domain
    if len(domain) > _MOST_HOST_CHARACTERS:
        return None
    if not domain.isascii():
        import idna  # noqa: PLC0415 - 10 ms that hardly any address needs

        try:
            domain = idna.encode(domain, strict=True).decode("ascii")
        except idna.IDNAError:
            return None
    return domain if len(domain) <= _MOST_HOST_CHARACTERS and _HOST.fullmatch(domain) else None


def _unquoted(text: str) -> str:
    return _ESCAPED.sub(r"\1", text[1:-1])


def _is_closed(value: str) -> bool:
    """Whether each comment and each quoted string ends, and no comment ends that has not begun."""
    depth, quoted = 0, False
    for mark in _MARK.finditer(value):
        if mark[0] == '"' and depth == 0:
            quoted = not quoted
        elif mark[0] in "()" and not quoted:
            depth += 1 if mark[0] == "(" else -1
            if depth < 0:
                return False
    return depth == 0 and not quoted


def _pieces(value: str) -> Iterator[str]:
    """Cut a list at its commas, and groups at their colon and semicolon."""
    depth, quoted, bracketed, start = 0, False, False, 0
    for mark in _MARK.finditer(value):
        if mark[0] == '"' and depth == 0:
            quoted = not quoted
        elif quoted:
            continue
        elif mark[0] in "()":
            depth = max(depth + (1 if mark[0] == "(" else -1), 0)
        elif depth == 0 and mark[0] in "<>":
            bracketed = mark[0] == "<"
        elif depth == 0 and not bracketed and mark[0] in ",;:":
            yield value[start : mark.start()]
            start = mark.end()
    yield value[start:]


def _in_brackets(piece: str) -> Mailbox | None:
    """Read the address in the last brackets, whatever stands before them."""
    found = _LAST_BRACKETS.search(piece)
    address = _ADDRESS.fullmatch(found[1].strip()) if found else None
    return None if found is None or address is None else _made(piece[: found.start()].strip(' "'), address)
