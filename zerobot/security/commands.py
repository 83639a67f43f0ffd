"""Shell lines, read by a small strict grammar: what it reads completely is proved, everything else is not.

The grammar knows plain words, quotes without expansions, backslashes, `|`, `&&`, `||`, `;`, line ends, copies of the
standard streams, `> /dev/null` and `< file`. What it does not know it does not guess: the line is simply not proved,
and then an operator decides. Words are compared after quote removal, never folded, never normalised.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from zerobot.security.program_tables import KEYWORDS, Words
from zerobot.security.programs import (
    executed,
    grant_words,
    hazard,
    is_narrow,
    is_script_runner,
    needs_network,
    only_reads,
    talks_to_network,
)
from zerobot.security.visible import has_hidden

MAX_LENGTH = 8_192
"""Characters; a longer line is not proved."""
MAX_SEGMENTS = 32
EXACTLY = "="
"""Begins the pattern of a grant that stands for one command as it was written, and not for what begins like it."""

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:+@%^=")
_QUOTED_BY_BACKSLASH = frozenset('"\\')
_COPY = re.compile(r"[12]?>&[12](?=[ \t\n;|&]|\Z)")
_OUT = re.compile(r"[12]?>>?(?![>&|(])")
_IN = re.compile(r"<(?![<>&(])")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_LOOSE_WORD = re.compile(r"[^\s;|&<>()\"'`$\\]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReading:
    """What was read of a line."""

    segments: tuple[Words, ...] = ()
    """The simple commands in the order of the line, as words after quote removal; empty when not proved."""
    inputs: Words = ()
    """Files that are read by `<`."""
    unproved: str = ""
    """Why the line is not proved, for people; empty when it is."""
    loose_words: Words = field(default=())
    """When not proved: what looks like words. Good enough to notice a forbidden path, never to allow anything."""

    @property
    def proved(self) -> bool:
        """Whether the segments are all that the shell would run."""
        return not self.unproved

    @property
    def only_reads(self) -> bool:
        """Whether every segment is a known reader, used as one."""
        return self.proved and all(only_reads(words) for words in self.segments)

    @property
    def networked(self) -> bool:
        """Whether the line names a program that is made for the network."""
        if self.proved:
            return any(talks_to_network(words[0]) for words in self.segments)
        return any(talks_to_network(word) for word in self.loose_words)

    @property
    def speaks_for_network(self) -> bool:
        """Whether who allowed these commands allowed the network too: each needs it by its nature, or only reads."""
        needy = [words for words in self.segments if needs_network(words)]
        return bool(needy) and all(words in needy or only_reads(words) for words in self.segments)

    def targets(self) -> Words:
        """Texts in the line that may be paths: more than are, but none that is written out is missing."""
        words = [word for segment in self.segments for word in segment[1:]]
        found = [*self.inputs]
        for word in words or self.loose_words:
            found.extend(_paths_in(word))
        return tuple(dict.fromkeys(found))

    def operands(self) -> Words:
        """Texts that name files which the proved segments execute: programs given by a path, and scripts."""
        return executed(self.segments).files

    @property
    def runs_only_operands(self) -> bool:
        """Whether the line executes no other files than `operands` and the system's programs."""
        return self.proved and executed(self.segments).sure


def read_command(line: str) -> CommandReading:
    """Read a line completely, or say why not. Total: it never raises, and takes time linear in the line."""
    if len(line) > MAX_LENGTH:
        return CommandReading(unproved=f"it is longer than {MAX_LENGTH} characters")
    reader = _Reader(line)
    try:
        reader.read()
    except _Unproved as reason:
        return CommandReading(unproved=str(reason), loose_words=tuple(_LOOSE_WORD.findall(line)))
    return CommandReading(segments=tuple(reader.segments), inputs=tuple(reader.inputs))


def matches(prefixes: Iterable[Words], reading: CommandReading) -> bool:
    """Whether every segment of a proved line begins with the words of some prefix, and uses it for nothing else."""
    return not unmatched(prefixes, reading)


def unmatched(prefixes: Iterable[Words], reading: CommandReading) -> str:
    """The first thing that keeps a line from being covered by prefixes, for people; empty when it is covered."""
    if not reading.proved:
        return f"the line cannot be read with certainty: {reading.unproved}"
    known = [prefix for prefix in prefixes if prefix]
    for words in reading.segments:
        if not any(words[: len(prefix)] == prefix for prefix in known):
            return f"{' '.join(words[:3])!r} is not an allowed command"
        against = hazard(words)
        if against:
            return against
    return "" if reading.segments else "it runs nothing that could be recognised"


def grant_prefix(reading: CommandReading) -> str:
    """What "always" would store for a line, words joined by one blank; empty where nothing may be offered.

    It is a prefix only for programs that are known to read, and for verbs (`git push`); for any other program the line
    stands for itself alone, behind an `EXACTLY`: one more option may write where this one read.
    None is offered for what is not proved, for several different commands in one line, and for interpreters, shells,
    wrappers and whatever else starts other programs.
    """
    prefixes = {grant_words(words) for words in reading.segments} if reading.proved else set()
    if len(prefixes) != 1:
        return ""
    (prefix,) = prefixes
    harmful = any(is_script_runner(words[0]) or "/" in words[0] or hazard(words) for words in reading.segments)
    storable = all(word and not re.search(r"\s", word) for word in prefix)
    if harmful or not storable:
        return ""
    return f"{'' if is_narrow(prefix) else EXACTLY}{' '.join(prefix)}"


class _Unproved(Exception):  # noqa: N818 - not a failure: the way out of the grammar
    """The grammar does not know this; `str()` says what, for people."""


class _Reader:
    """One pass over a line. After `read`, `segments` and `inputs` hold all that it says."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.at = 0
        self.segments: list[Words] = []
        self.inputs: list[str] = []
        self._words: list[str] = []

    def read(self) -> None:
        """Read everything.

        Raises:
            _Unproved: The line has something that the grammar does not know.
        """
        if has_hidden(self.line):
            raise _Unproved("it has invisible or control characters")
        needs_command = True
        while self.at < len(self.line):
            if self._skip_blank():
                continue
            operator = self._operator()
            if operator:
                needs_command = self._end_segment(operator, needs_command=needs_command)
            elif not self._redirection():
                self._word_of_command()
                needs_command = False
        if self._words:
            self._close()
        elif needs_command:
            raise _Unproved("it ends where a command should follow")
        if len(self.segments) > MAX_SEGMENTS:
            raise _Unproved(f"it has more than {MAX_SEGMENTS} commands")

    def _skip_blank(self) -> bool:
        if self.line[self.at] in " \t":
            self.at += 1
            return True
        if self.line.startswith("\\\n", self.at):
            self.at += 2
            return True
        return False

    def _operator(self) -> str:
        for operator in ("&&", "||", "|", ";", "\n"):
            if self.line.startswith(operator, self.at):
                self.at += len(operator)
                if operator == "|" and self.line.startswith("&", self.at):
                    raise _Unproved("|& is not a form that is read")
                return operator
        return ""

    def _end_segment(self, operator: str, *, needs_command: bool) -> bool:
        if self._words:
            self._close()
            return operator in ("&&", "||", "|")
        # Line ends may come where a command is still to follow, and after another line end.
        if operator == "\n":
            return needs_command
        raise _Unproved(f"there is no command before {operator}")

    def _redirection(self) -> bool:
        copy = _COPY.match(self.line, self.at)
        if copy:
            self.at = copy.end()
            return True
        out = _OUT.match(self.line, self.at)
        if out:
            self.at = out.end()
            if self._target() != "/dev/null":
                raise _Unproved("it writes to a file by redirection")
            return True
        if _IN.match(self.line, self.at):
            self.at += 1
            self.inputs.append(self._target())
            return True
        return False

    def _target(self) -> str:
        while self.at < len(self.line) and self.line[self.at] in " \t":
            self.at += 1
        if self.at == len(self.line) or self.line[self.at] in "\n;|&<>":
            raise _Unproved("a redirection names no file")
        return self._word()

    def _word_of_command(self) -> None:
        start = self.at
        word = self._word()
        if self.at == start:
            raise _Unproved(f"{self.line[start]} is not a form that is read there")
        if self.line[start : self.at].isdigit() and self.line[self.at : self.at + 1] in ("<", ">"):
            raise _Unproved("a redirection of a numbered descriptor is not read")
        if not self._words:
            bare = self.line[start : self.at]
            if not word:
                raise _Unproved("a command has no name")
            if word in KEYWORDS:
                raise _Unproved(f"{word} is a keyword of the shell")
            if "=" in bare and _ASSIGNMENT.match(word):
                raise _Unproved("it sets a variable in front of a command")
        self._words.append(word)

    def _word(self) -> str:
        parts: list[str] = []
        start = self.at
        while self.at < len(self.line):
            ch = self.line[self.at]
            if ch in " \t\n;|&<>":
                break
            parts.append(self._piece(ch, start))
        return "".join(parts)

    def _piece(self, ch: str, start: int) -> str:
        if ch == "'":
            return self._single_quoted()
        if ch == '"':
            return self._double_quoted()
        if ch == "\\":
            return self._escaped()
        # `HEAD~1` is plain; a tilde that bash would replace by a home is not.
        plain_tilde = ch == "~" and self.at > start and self.line[self.at - 1] not in "=:"
        if ch not in _PLAIN and not plain_tilde and ch.isascii():
            raise _Unproved(f"{ch} has a meaning for the shell there")
        self.at += 1
        return ch

    def _single_quoted(self) -> str:
        end = self.line.find("'", self.at + 1)
        if end < 0:
            raise _Unproved("a quote is not closed")
        text = self.line[self.at + 1 : end]
        self.at = end + 1
        return text

    def _double_quoted(self) -> str:
        parts: list[str] = []
        self.at += 1
        while self.at < len(self.line):
            ch = self.line[self.at]
            self.at += 1
            if ch == '"':
                return "".join(parts)
            if ch in "$`":
                raise _Unproved(f"{ch} inside double quotes is expanded")
            if ch == "\\" and self.at < len(self.line):
                following = self.line[self.at]
                if following in "$`\n":
                    raise _Unproved("a backslash in double quotes is not read there")
                if following in _QUOTED_BY_BACKSLASH:
                    ch = following
                    self.at += 1
            parts.append(ch)
        raise _Unproved("a quote is not closed")

    def _escaped(self) -> str:
        following = self.line[self.at + 1 : self.at + 2]
        if not following:
            raise _Unproved("it ends in a backslash")
        self.at += 2
        # A backslash and a line end are nothing at all: the word goes on in the next line.
        return "" if following == "\n" else following

    def _close(self) -> None:
        self.segments.append(tuple(self._words))
        self._words = []


def _paths_in(word: str) -> list[str]:
    """The texts within a word that may be a path: itself, after `=`, `@`, `:` or `,`, glued to an option, in a URL."""
    found: list[str] = []
    if word.startswith("-") and not (word.startswith("--") and "=" in word):
        # `-oPATH`: from the first place that looks like the beginning of a path.
        glued = re.search(r"\.{0,2}/|~|\.\.", word)
        if glued:
            found.append(word[glued.start() :])
    elif word:
        found.append(word)
    found += [part for part in re.split(r"[=@,]|(?<!:):(?!//)", word)[1:] if part]
    if word.lower().startswith("file:"):
        found.append("/" + word[5:].lstrip("/"))
    return found
