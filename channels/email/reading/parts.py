"""The tree of a mail's parts (RFC 2046), found in one pass over its bytes; nothing is copied, nothing is decoded.

The standard library's parser is not used here. For a mail of 34 MB it took a second and held 250 MB more; a few hundred
levels of multiparts in 90 kB raised RecursionError, and 90 levels around 600 kB took three seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from channels.email.reading.fields import Header, read_header
from channels.email.reading.parameters import Parameterized, read_content_type, read_disposition

MOST_LEVELS = 50
"""Of multiparts within each other; deeper ones are not opened."""
MOST_PARTS = 1_000
_MOST_FIELDS = 100
"""Of a part below the top."""
_MOST_LOOKALIKES = 500_000
"""Lines that begin like a delimiter and are none: SQL and patches have some."""
_MOST_BOUNDARY_BYTES = 200
"""The RFC allows 70."""


@dataclass(frozen=True, slots=True)
class Part:
    """A node of the tree."""

    number: str
    """As IMAP numbers parts: `2.1`; empty for a multipart that is the whole mail (RFC 9051, section 6.4.5.1)."""
    header: Header
    type: Parameterized
    start: int
    """Where its body begins in the mail."""
    end: int
    parts: tuple[Part, ...] = ()
    """Empty for a leaf, and for a multipart whose delimiter never comes."""

    @property
    def disposition(self) -> Parameterized:
        """How it wants to be shown; without a value when it doesn't say."""
        return read_disposition(self.header.first("content-disposition"))

    @property
    def encoding(self) -> str:
        """Its Content-Transfer-Encoding, in lower case."""
        return read_disposition(self.header.first("content-transfer-encoding")).value

    @property
    def name(self) -> str:
        """The name that its sender gave it, on one line; empty when it has none."""
        return self.disposition.text("filename") or self.type.text("name")

    def leaves(self) -> Iterator[Part]:
        """All leaves below, or the part itself, in the order of the mail."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()


@dataclass(frozen=True, slots=True)
class Tree:
    """A whole mail."""

    root: Part
    cut: bool
    """Whether something was not looked into because a limit was reached."""


def read_tree(raw: bytes) -> Tree:
    """Find the parts of a mail. Time is linear in its length, whatever is in it."""
    return _Reader(raw).read()


@dataclass(slots=True)
class _Open:
    """A multipart whose end has not come yet."""

    number: str
    header: Header
    type: Parameterized
    boundary: bytes
    parts: list[Part] = field(default_factory=list)
    leaf: tuple[Header, Parameterized] | None = None
    """The part that is being read, unless that is a multipart itself."""

    def next_number(self) -> str:
        number = str(len(self.parts) + 1)
        return f"{self.number}.{number}" if self.number else number


# Blanks behind a delimiter are of the transport (RFC 2046, section 5.1.1).
_DELIMITER = re.compile(rb"\n--([^\r\n]{1,300}+)\r?(?=\n|\Z)")


class _Reader:
    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._stack: list[_Open] = []
        self._levels: dict[bytes, int] = {}
        self._lookalikes = 0
        self._count = 0
        self._cut = False

    def read(self) -> Tree:
        header = read_header(self._raw)
        kind = read_content_type(header.first("content-type"))
        self._cut = header.cut
        if not self._opens(kind):
            return Tree(Part("1", header, kind, header.body, len(self._raw)), self._cut)
        self._open("", header, kind)
        root: Part | None = None
        at = header.body
        while root is None:
            found = self._next_delimiter(max(at - 1, 0)) if self._count < MOST_PARTS else None
            if found is None:
                self._cut = self._cut or self._count >= MOST_PARTS or self._lookalikes > _MOST_LOOKALIKES
                root = self._close(0, len(self._raw))
            else:
                root, at = self._delimit(found)
        return Tree(root, self._cut)

    def _next_delimiter(self, at: int) -> re.Match[bytes] | None:
        for found in _DELIMITER.finditer(self._raw, at):
            if self._level_of(found) is not None:
                return found
            self._lookalikes += 1
            if self._lookalikes > _MOST_LOOKALIKES:
                break
        return None

    def _level_of(self, delimiter: re.Match[bytes]) -> int | None:
        """Which multipart of the stack a line divides or ends; None: it is an ordinary line."""
        line = delimiter[1].rstrip(b" \t")
        level = self._levels.get(line)
        return level if level is not None or not line.endswith(b"--") else self._levels.get(line[:-2])

    def _is_delimiter(self, at: int) -> bool:
        """Whether the line that begins here is a delimiter."""
        found = _DELIMITER.match(self._raw, at - 1) if self._raw.startswith(b"--", at) else None
        return found is not None and self._level_of(found) is not None

    def _delimit(self, found: re.Match[bytes]) -> tuple[Part | None, int]:
        """Go over a delimiter.

        Returns:
            The whole tree, when it ends here, and where to read on.
        """
        level = self._level_of(found) or 0
        # The line end before a delimiter belongs to it.
        end = found.start() - self._raw.startswith(b"\r\n", found.start() - 1)
        self._close(level + 1, end)
        frame = self._stack[level]
        self._end_leaf(frame, end)
        if found[1].rstrip(b" \t") != frame.boundary:
            return self._close(level, end), found.end()
        header = read_header(self._raw, min(found.end() + 1, len(self._raw)), self._is_delimiter, _MOST_FIELDS)
        digest = frame.type.value == "multipart/digest" and not header.first("content-type")
        kind = read_content_type(b"message/rfc822" if digest else header.first("content-type"))
        self._count += 1
        self._cut = self._cut or header.cut
        if self._opens(kind):
            self._open(frame.next_number(), header, kind)
        else:
            frame.leaf = (header, kind)
        return None, header.body

    def _opens(self, kind: Parameterized) -> bool:
        if not kind.value.startswith("multipart/") or not 0 < len(_boundary(kind)) <= _MOST_BOUNDARY_BYTES:
            return False
        deep = len(self._stack) == MOST_LEVELS
        self._cut = self._cut or deep
        return not deep

    def _open(self, number: str, header: Header, kind: Parameterized) -> None:
        self._stack.append(_Open(number, header, kind, _boundary(kind)))
        self._number_levels()

    def _number_levels(self) -> None:
        # Where two within each other share a boundary, it is the inner one's.
        self._levels = {frame.boundary: level for level, frame in enumerate(self._stack)}

    def _end_leaf(self, frame: _Open, end: int) -> None:
        if frame.leaf is not None:
            header, kind = frame.leaf
            frame.parts.append(Part(frame.next_number(), header, kind, header.body, max(header.body, end)))
            frame.leaf = None

    def _close(self, level: int, end: int) -> Part | None:
        """End all multiparts from a level inward.

        Returns:
            The whole tree, when the outermost has ended.
        """
        while len(self._stack) > level:
            frame = self._stack.pop()
            self._end_leaf(frame, end)
            body = frame.header.body
            part = Part(frame.number, frame.header, frame.type, body, max(body, end), tuple(frame.parts))
            self._number_levels()
            if not self._stack:
                return part
            self._stack[-1].parts.append(part)
        return None


def _boundary(kind: Parameterized) -> bytes:
    """What its delimiters are made of; empty when it names none."""
    return kind.parameters.get("boundary", b"").rstrip()
