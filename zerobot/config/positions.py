"""On which line a key of a TOML text stands; used when there is a fault to report, never on the way to a start."""

import tomllib

from zerobot.config.keys import KeyPath

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def find_lines(text: str) -> dict[KeyPath, int]:
    """Find the line, counted from 1, of every key, table and list element.

    Args:
        text: TOML that `tomllib` has read, so that this need not judge it.
    """
    return _Reader(text).read()


class _Reader:
    """Walks through a valid TOML text once."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n")
        self._at = 0
        self._lines: dict[KeyPath, int] = {}
        self._counts: dict[KeyPath, int] = {}
        """How many `[[tables]]` of a name there were."""

    def read(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._skip(" \t\n"):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)
        return self._lines

    def _skip(self, blanks: str) -> bool:
        """Go over blanks and comments; False at the end of the text."""
        text, end = self._text, len(self._text)
        while self._at < end:
            if text[self._at] in blanks:
                self._at += 1
            elif text[self._at] == "#":
                newline = text.find("\n", self._at)
                self._at = end if newline < 0 else newline
            else:
                return True
        return False

    def _mark(self, path: KeyPath, at: int) -> None:
        line = self._text.count("\n", 0, at) + 1
        for length in range(1, len(path) + 1):
            self._lines.setdefault(path[:length], line)

    def _header(self) -> KeyPath:
        start = self._at
        several = self._text.startswith("[[", self._at)
        self._at += 2 if several else 1
        path = self._inside(self._key())
        self._at += 2 if several else 1
        if several:
            index = self._counts.get(path, 0)
            self._counts[path] = index + 1
            path = (*path, index)
        self._mark(path, start)
        # A table may be made by the header of one below it; then its own header, further down, says more.
        self._lines[path] = self._text.count("\n", 0, start) + 1
        return path

    def _inside(self, key: tuple[str, ...]) -> KeyPath:
        """Where a header's key leads: through the last element of each list of tables on the way."""
        path: KeyPath = ()
        for number, part in enumerate(key, 1):
            path = (*path, part)
            if number < len(key) and path in self._counts:
                path = (*path, self._counts[path] - 1)
        return path

    def _key(self) -> tuple[str, ...]:
        parts: list[str] = []
        while True:
            self._skip(" \t")
            parts.append(self._part())
            self._skip(" \t")
            if self._text[self._at] != ".":
                return tuple(parts)
            self._at += 1

    def _part(self) -> str:
        start = self._at
        if self._text[start] in "\"'":
            self._string()
            quoted: str = tomllib.loads(f"x={self._text[start : self._at]}")["x"]
            return quoted
        while self._at < len(self._text) and self._text[self._at] in _BARE:
            self._at += 1
        return self._text[start : self._at]

    def _pair(self, table: KeyPath) -> None:
        start = self._at
        path = (*table, *self._key())
        self._mark(path, start)
        self._at += 1
        self._skip(" \t")
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        opening = self._text[self._at]
        if opening in "\"'":
            self._string()
        elif opening == "[":
            self._list(path)
        elif opening == "{":
            self._inline(path)
        else:
            while self._at < len(self._text) and self._text[self._at] not in ",]}#\n":
                self._at += 1

    def _string(self) -> None:
        """Go over a string of any of the four sorts."""
        text, quote = self._text, self._text[self._at]
        mark = quote * 3 if text.startswith(quote * 3, self._at) else quote
        self._at += len(mark)
        while not text.startswith(mark, self._at):
            self._at += 2 if quote == '"' and text[self._at] == "\\" else 1
        self._at += len(mark)
        # Up to two quotes may stand right before the three that close.
        while len(mark) == 3 and text.startswith(quote, self._at):
            self._at += 1

    def _list(self, path: KeyPath) -> None:
        self._at += 1
        index = 0
        while self._skip(" \t\n,") and self._text[self._at] != "]":
            element = (*path, index)
            self._mark(element, self._at)
            self._value(element)
            index += 1
        self._at += 1

    def _inline(self, path: KeyPath) -> None:
        self._at += 1
        while self._skip(" \t\n,") and self._text[self._at] != "}":
            self._pair(path)
        self._at += 1
