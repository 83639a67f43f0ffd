"""What a client may write to an IMAP server, read strictly: https://www.rfc-editor.org/rfc/rfc3501#section-9."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TAG = re.compile(r"[A-Za-z0-9]{1,32}")
# An atom; a section of BODY may have blanks and parentheses inside its brackets.
_ATOM = re.compile(r'[^\x00-\x20\x7f-\U0010ffff(){"\[\]]+(?:\[[^\]\r\n]*\](?:<\d+\.[1-9]\d*>)?)?')
_QUOTED = re.compile(r'"((?:[\x01-\x09\x0b\x0c\x0e-\x21\x23-\x5b\x5d-\x7f]|\\["\\])*)"')
LITERAL = re.compile(rb"\{(\d+)\}$")
_SET = re.compile(r"(?:[1-9]\d*|\*)(?::(?:[1-9]\d*|\*))?(?:,(?:[1-9]\d*|\*)(?::(?:[1-9]\d*|\*))?)*")
_LONGEST_LINE = 8192
"""RFC 2683, section 3.2.1.5: what a client can count on."""


class GrammarError(Exception):
    """The client wrote what no client may write."""


@dataclass(frozen=True, slots=True)
class Text:
    """A string: quoted, or a literal."""

    value: bytes


Word = str | Text | list["Word"]
"""An atom, a string, or a parenthesised list."""


@dataclass(frozen=True, slots=True)
class Request:
    """A command."""

    tag: str
    name: str
    """In upper case; with `UID ` before it if it has that."""
    words: Sequence[Word]


def read(parts: Sequence[bytes]) -> Request:
    """Read a command.

    Args:
        parts: Lines without their ends; between two lines the literal that the first one announced.

    Raises:
        GrammarError: It is none.
    """
    words = _list(_tokens(parts), closed=False)
    if len(words) < 2 or not isinstance(words[0], str) or not _TAG.fullmatch(words[0]):
        raise GrammarError("no tag and command")
    tag, name, *rest = words
    if str(name).upper() == "UID" and rest:
        name, rest = f"UID {rest[0]}", rest[1:]
    return Request(str(tag), str(name).upper(), rest)


def without_end(line: bytes) -> bytes:
    """A line without its CRLF.

    Raises:
        GrammarError: It has none.
    """
    if not line.endswith(b"\r\n"):
        raise GrammarError("a line without CRLF")
    return line[:-2]


def numbers(word: Word, last: int) -> Iterator[range]:
    """The ranges of a sequence set.

    Args:
        word: The set.
        last: What `*` means.

    Raises:
        GrammarError: It is none.
    """
    if not isinstance(word, str) or not _SET.fullmatch(word):
        raise GrammarError(f"no sequence set: {word!r}")
    for each in word.split(","):
        low, _, high = each.partition(":")
        ends = sorted(last if end == "*" else int(end) for end in (low, high or low))
        yield range(ends[0], ends[1] + 1)


def text(word: Word) -> str:
    """A string or an atom (an astring).

    Raises:
        GrammarError: It is a list.
    """
    if isinstance(word, list):
        raise GrammarError("a list where a string belongs")
    return word if isinstance(word, str) else word.value.decode()


def _tokens(parts: Sequence[bytes]) -> Iterator[str | Text]:
    for number, part in enumerate(parts):
        if number % 2:
            yield Text(part)
            continue
        if len(part) > _LONGEST_LINE:
            raise GrammarError("a line longer than 8192 bytes")
        line = part.decode("utf-8")
        if number + 1 < len(parts):
            line = line[: line.rindex("{")]
        yield from _line_tokens(line)


def _line_tokens(line: str) -> Iterator[str | Text]:
    place = 0
    if line != line.strip(" ") and not line.endswith(" "):
        raise GrammarError("blanks around a command")
    while place < len(line):
        quoted, atom = _QUOTED.match(line, place), _ATOM.match(line, place)
        if line[place] in "()":
            yield line[place]
            place += 1
        elif quoted:
            yield Text(re.sub(r"\\(.)", r"\1", quoted[1]).encode())
            place = quoted.end()
        elif atom:
            yield atom[0]
            place = atom.end()
        else:
            raise GrammarError(f"no token: {line[place : place + 20]!r}")
        if line[place : place + 2] == "  ":
            raise GrammarError("two blanks")
        place += line[place : place + 1] == " "


def _list(tokens: Iterator[str | Text], *, closed: bool) -> list[Word]:
    words: list[Word] = []
    for token in tokens:
        if token == "(":
            words.append(_list(tokens, closed=True))
        elif token == ")":
            if not closed:
                raise GrammarError("a parenthesis that was not opened")
            return words
        else:
            words.append(token)
    if closed:
        raise GrammarError("a parenthesis that is not closed")
    return words
