"""`Authentication-Results`, read as RFC 8601 writes it; pure. What can't be read is nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass

from channels.email.reading.comments import end_of_comment

_LONGEST = 16_384
"""Characters; the fields of the large providers have some 2,000."""
_ID = re.compile(r"[^\s;()\"=]+")
_VERSION = re.compile(r"\d+")
_KEYWORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?")
_PIECE = re.compile(r"[^\s;()\"]+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_INSTANCE = re.compile(r"\s*i\s*=\s*\d{1,2}\s*;", re.IGNORECASE)
_BLANKS = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class MethodResult:
    """What one check found."""

    method: str
    """`dkim`, `dmarc`, `spf`, …, in lower case."""
    result: str
    """`pass`, `fail`, `none`, …, in lower case."""
    properties: tuple[tuple[str, str], ...] = ()
    """What the check was about: `header.from` (in lower case) and its value as it stands there, without quotes."""

    def about(self, name: str) -> str | None:
        """The value of a property; None when it has none, or several that differ."""
        values = {value for key, value in self.properties if key == name}
        return values.pop() if len(values) == 1 else None


@dataclass(frozen=True, slots=True)
class AuthResults:
    """One field."""

    authserv_id: str
    """Who checked, in lower case."""
    results: tuple[MethodResult, ...] = ()
    """In the order of the field; none when it says that nothing was checked."""

    def of(self, method: str) -> tuple[MethodResult, ...]:
        """All results of a method: there is one of `dkim` for each signature."""
        return tuple(each for each in self.results if each.method == method)


class _UnreadableError(Exception):
    pass


class _Scanner:
    """Goes through the value of a field once, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def skip(self) -> None:
        """Pass over blanks and comments, which nest (RFC 5322, section 3.2.2)."""
        while True:
            self._at = self._end_of(_BLANKS)
            if not self._text.startswith("(", self._at):
                return
            end = end_of_comment(self._text, self._at)
            if end is None:
                raise _UnreadableError
            self._at = end

    def take(self, pattern: re.Pattern[str]) -> str | None:
        """Take what matches here, if anything does."""
        match = pattern.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return match[0]

    def meets(self, character: str) -> bool:
        """Whether a character is the next one, behind blanks and comments."""
        self.skip()
        return self._text.startswith(character, self._at)

    def takes(self, character: str) -> bool:
        """Take a character if it is the next one, behind blanks and comments."""
        met = self.meets(character)
        self._at += met
        return met

    def value(self) -> str:
        """Take a value: a quoted string, a token, or a local part in quotes with its domain."""
        self.skip()
        pieces = []
        while True:
            quoted = self.take(_QUOTED)
            piece = _ESCAPE.sub(r"\1", quoted[1:-1]) if quoted is not None else self.take(_PIECE)
            if piece is None:
                break
            pieces.append(piece)
        if not pieces:
            raise _UnreadableError
        return "".join(pieces)

    def word(self, pattern: re.Pattern[str]) -> str:
        """Take a word that must be here."""
        self.skip()
        word = self.take(pattern)
        if not word:
            raise _UnreadableError
        return word

    def ended(self) -> bool:
        """Whether nothing is left."""
        self.skip()
        return self._at == len(self._text)

    def _end_of(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self._text, self._at)
        return self._at if match is None else match.end()


def read_results(value: str, *, chained: bool = False) -> AuthResults | None:
    """Read the value of an `Authentication-Results` field (RFC 8601, section 2.2).

    Servers write more than the grammar has, and this is taken: properties without a type (`action=none`), a `;` at the
    end, values with characters of no token (`header.b=aB/c=`).

    Args:
        value: Folded or not.
        chained: It is of an `ARC-Authentication-Results` field, which has its place in the chain before
            (RFC 8617, section 4.1.1).

    Returns:
        None: it can't be read, has no authserv-id, or is of another version of the grammar.
    """
    if len(value) > _LONGEST:
        return None
    if chained:
        instance = _INSTANCE.match(value)
        if instance is None:
            return None
        value = value[instance.end() :]
    try:
        return _field(_Scanner(value))
    except _UnreadableError:
        return None


def _field(scanner: _Scanner) -> AuthResults:
    authserv_id = scanner.value() if scanner.meets('"') else scanner.word(_ID)
    scanner.skip()
    if not authserv_id or scanner.take(_VERSION) not in (None, "1"):
        raise _UnreadableError
    results: list[MethodResult] = []
    while not scanner.ended():
        if not scanner.takes(";"):
            raise _UnreadableError
        if scanner.ended():
            break
        method = scanner.word(_KEYWORD).lower()
        if method == "none" and not results and scanner.ended():
            break
        results.append(_result(scanner, method))
    return AuthResults(authserv_id.lower(), tuple(results))


def _result(scanner: _Scanner, method: str) -> MethodResult:
    version = scanner.word(_VERSION) if scanner.takes("/") else "1"
    if version != "1" or not scanner.takes("="):
        raise _UnreadableError
    result = scanner.word(_KEYWORD).lower()
    properties = []
    while not (scanner.ended() or scanner.meets(";")):
        name = scanner.word(_KEYWORD).lower()
        if scanner.takes("."):
            name = f"{name}.{scanner.word(_KEYWORD).lower()}"
        if not scanner.takes("="):
            raise _UnreadableError
        properties.append((name, scanner.value()))
    return MethodResult(method, result, tuple(properties))
