"""Of a regular expression, the one that matches every beginning of what it matches: is a text still to become one?

Only what our own patterns are made of is read: literals, escapes, sets, groups with alternatives, counts, looking ahead
and back. Looking ahead is left out of the result, which can only make it match more.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_MANY = 1_000_000
_ATOM = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\\[\]()|?*+{}]", re.DOTALL)
_COUNT = re.compile(r"([?*+]|\{(\d+)(,?)(\d*)\})?(\??)")
_GROUP = re.compile(r"\((\?:|\?[ai-]+:|\?=|\?!|\?<=|\?<!)")
_LOOKS_AHEAD = ("(?=", "(?!")
_LOOKS_BACK = ("(?<=", "(?<!", "\\b")


@dataclass(frozen=True, slots=True)
class _Part:
    """An atom and how often it stands there."""

    opening: str
    """Of a group, such as `(?:`; empty for a single character."""
    body: str
    count: str
    most: int


def beginnings(pattern: str) -> str:
    """Return a pattern for the beginnings of what `pattern` matches, the empty one and the whole included.

    Raises:
        ValueError: The pattern has something in it that is not read here.
    """
    return "|".join(_of_sequence(_parts(alternative)) for alternative in _alternatives(pattern))


def _of_sequence(parts: Sequence[_Part]) -> str:
    rest = ""
    for part in reversed(parts):
        if part.opening in _LOOKS_AHEAD:
            continue
        whole = _written(part)
        back = part.opening in _LOOKS_BACK or part.body in _LOOKS_BACK
        rest = whole + rest if back else f"(?:{whole}{rest}|{_of_part(part)})"
    return rest


def _of_part(part: _Part) -> str:
    if not part.opening:
        return f"{part.body}{{0,{part.most}}}" if part.most < _MANY else f"{part.body}*"
    inner = f"{part.opening}{beginnings(part.body)})"
    if part.most == 1:
        return inner
    before = "*" if part.most >= _MANY else f"{{0,{part.most - 1}}}"
    return f"{part.opening}{part.body}){before}{inner}"


def _written(part: _Part) -> str:
    return f"{part.opening}{part.body}){part.count}" if part.opening else part.body + part.count


def _alternatives(pattern: str) -> list[str]:
    """Cut a pattern at the bars that stand in no group."""
    bars = [-1]
    at = 0
    while at < len(pattern):
        if pattern[at] == "|":
            bars.append(at)
            at += 1
        elif pattern[at] == "(":
            at = _group_end(pattern, at)
        else:
            at = _single_end(pattern, at)
    return [pattern[left + 1 : right] for left, right in pairwise([*bars, len(pattern)])]


def _parts(sequence: str) -> list[_Part]:
    parts = []
    at = 0
    while at < len(sequence):
        if sequence[at] == "(":
            end = _group_end(sequence, at)
            opening = _opening(sequence, at)
            body = sequence[at + len(opening) : end - 1]
        else:
            end = _single_end(sequence, at)
            opening, body = "", sequence[at:end]
        count = _COUNT.match(sequence, end)
        assert count is not None, "the pattern matches the empty text"
        parts.append(_Part(opening, body, count[0], _most(count)))
        at = count.end()
    return parts


def _opening(pattern: str, at: int) -> str:
    opening = _GROUP.match(pattern, at)
    if opening is None:
        raise ValueError(f"no group of a kind that is read here: {pattern[at : at + 10]!r}")
    return opening[0]


def _group_end(pattern: str, at: int) -> int:
    """Where the group that opens at `at` is closed, behind the bracket."""
    at += len(_opening(pattern, at))
    while at < len(pattern) and pattern[at] != ")":
        if pattern[at] == "(":
            at = _group_end(pattern, at)
        elif pattern[at] == "|":
            at += 1
        else:
            at = _single_end(pattern, at)
            count = _COUNT.match(pattern, at)
            at = count.end() if count else at
        if at < len(pattern) and pattern[at] in "?*+{":
            count = _COUNT.match(pattern, at)
            at = count.end() if count else at
    if at >= len(pattern):
        raise ValueError(f"a group is not closed: {pattern!r}")
    return at + 1


def _single_end(pattern: str, at: int) -> int:
    atom = _ATOM.match(pattern, at)
    if atom is not None:
        return atom.end()
    count = _COUNT.match(pattern, at)
    if count is None or not count[0]:
        raise ValueError(f"nothing that is read here: {pattern[at : at + 10]!r}")
    return count.end()


def _most(count: re.Match[str]) -> int:
    if not count[1]:
        return 1
    if count[1] in "*+":
        return _MANY
    if count[1] == "?":
        return 1
    if not count[3]:
        return int(count[2])
    return int(count[4]) if count[4] else _MANY
