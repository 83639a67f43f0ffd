"""The guard that keeps secrets out of answers while they stream: drafts are covered like the final text.

Only what may still become a secret is held back: a run of key characters that could begin a known value or the form of
a key, a value behind `password =` and the like, and the inside of a key block. Each kind of secret has a position from
which on nothing is decided; a new piece is looked at from there on, so that the work is the same however long the
answer is.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from string import ascii_letters, digits

from zerobot.security.beginnings import beginnings
from zerobot.security.redact import LONGEST_PIECE, MASK, Redactor, Span, joined, masked, one_of
from zerobot.security.secret_forms import (
    BLOCK_BEGIN,
    BLOCK_END,
    CONTEXT,
    CONTEXTS,
    KEY,
    KEYS,
    NO_BLOCK_BODY,
    is_secret,
)

HARMLESS = 3
"""Characters of a known secret, or of a value behind its name, that may be seen when an answer breaks off."""
HARMLESS_OF_KEY = 8
"""The same of what only begins like a key: so many say nothing yet, and may well be an ordinary word."""

_KEY = re.compile(KEY, re.ASCII)
_BLOCK_BEGIN = re.compile(BLOCK_BEGIN)
_BLOCK_END = re.compile(rf"({BLOCK_END})(?:\\n)?|{NO_BLOCK_BODY}")
_LONGEST_END = 160
"""Characters of a block in which the end of it may have begun."""

# What is still open at the end of a text.
_OPEN_KEY = re.compile(rf"(?<![\w-])(?:{'|'.join(map(beginnings, KEYS))})\Z", re.ASCII)
_OPEN_BLOCK = re.compile(rf"(?=-){beginnings(BLOCK_BEGIN)}\Z")
_CONTEXT = re.compile(CONTEXT, re.ASCII)
_OPEN_VALUE = re.compile(
    "(?:" + "|".join(f"{each.head}({each.held}*)(?:{each.tail_begun})?" for each in CONTEXTS) + r")\Z", re.ASCII
)
_OPEN_CONTEXT = re.compile(rf"(?:{'|'.join(beginnings(each.head) for each in CONTEXTS)})\Z", re.ASCII)
_RUN = ascii_letters + digits + "_.:/+=~%@!$&*-"
"""What keys and values are made of."""
_BLOCK_MARK = "-----BEGIN"


class LeakGuard:
    """Masks in every answer what the redactor would mask in the whole of it. A `StreamGuard`."""

    name = "leaks"

    def __init__(self, redactor: Redactor) -> None:
        self._known = KnownForms(redactor.forms)

    def begin(self) -> "LeakStream":
        """See `StreamGuard`."""
        return LeakStream(self._known)


class KnownForms:
    """Finds texts that are known, and their beginnings at the end of a text.

    Args:
        forms: The texts, longest first.
    """

    def __init__(self, forms: Sequence[str]) -> None:
        self.whole = one_of(forms)
        self._sorted = sorted(forms)
        self._longest = max(map(len, forms), default=0)
        self._first = re.compile("|".join(re.escape(first) for first in sorted({form[0] for form in forms})))

    def open(self, text: str, at: int) -> int:
        """Where, from `at` on, the end of a text begins that is the beginning of a known one; else the text's end."""
        if self.whole is None:
            return len(text)
        for found in self._first.finditer(text, max(at, len(text) - self._longest + 1)):
            ending = text[found.start() :]
            after = bisect_right(self._sorted, ending)
            if after < len(self._sorted) and self._sorted[after].startswith(ending):
                return found.start()
        return len(text)


class LeakStream:
    """One answer on its way. An `OutputStream`."""

    def __init__(self, known: KnownForms) -> None:
        self._known = known
        self._text = ""
        """What is not shown yet, and before it what is still needed to judge it."""
        self._shown = 0
        self._known_at = 0
        self._keys_at = 0
        self._contexts_at = 0
        self._masks: list[Span] = []
        self._dropping: _Block | _Run | None = None

    def feed(self, delta: str) -> str:
        """See `OutputStream`."""
        shown = []
        rest = delta
        while rest:
            if self._dropping is not None:
                behind = self._dropping.take(rest)
                if behind is None:
                    break
                self._dropping, rest = None, behind
                continue
            self._text += rest
            block = _BLOCK_BEGIN.search(self._text, self._shown) if "PRIVATE KEY" in self._text else None
            if block is not None:
                rest = self._text[block.end() :]
                shown += [self._decided(self._text[: block.start()]), MASK]
                self._drop(_Block(), before=" ")
            else:
                rest = ""
                shown.append(self._advance())
        return "".join(shown)

    def finish(self, *, cut: bool) -> str:
        """See `OutputStream`. What an answer that broke off was about to say is masked, if it is more than a hint."""
        if self._dropping is not None:
            return ""
        if cut:
            known, keys, values = self._open()
            if len(self._text) - min(known, values) > HARMLESS:
                self._masks.append((min(known, values), len(self._text)))
            if len(self._text) - keys > HARMLESS_OF_KEY:
                self._masks.append((keys, len(self._text)))
        return self._decided(self._text)

    def _advance(self) -> str:
        """Show all that is decided."""
        held = min(self._open())
        end = len(self._text)
        if end - held <= LONGEST_PIECE:
            return self._release(held)
        # So long a run is no word: it counts as what it looks like.
        self._masks.append((held, end))
        run = _Run(self._text)
        shown = self._release(end)
        self._drop(run, before="x")
        return shown

    def _open(self) -> tuple[int, int, int]:
        """Take note of the secrets that are complete; returns from where on the others are open, for each kind."""
        return self._open_known(), self._open_keys(), self._open_values()

    def _open_known(self) -> int:
        begun = self._known.open(self._text, self._known_at)
        whole = self._known.whole
        while whole and (found := whole.search(self._text, self._known_at)) and found.start() < begun:
            self._masks.append(found.span())
            self._known_at = found.end()
            if begun < self._known_at:
                begun = self._known.open(self._text, self._known_at)
        self._known_at = begun
        return begun

    def _open_keys(self) -> int:
        begun = _start(_OPEN_KEY, self._text, self._keys_at)
        while (found := _KEY.search(self._text, self._keys_at)) and found.start() < begun:
            self._masks.append(found.span())
            self._keys_at = found.end()
            if begun < self._keys_at:
                begun = _start(_OPEN_KEY, self._text, self._keys_at)
        self._keys_at = begun
        # A key may take in the dashes with which a block begins; it is shown when it is clear what they are.
        return min(begun, _start(_OPEN_BLOCK, self._text, self._shown))

    def _open_values(self) -> int:
        value = _OPEN_VALUE.search(self._text, self._contexts_at)
        held = len(self._text) if value is None else value.start(value.lastindex or 0)
        for found in _CONTEXT.finditer(self._text, self._contexts_at):
            start, end = found.span(found.lastindex or 0)
            if start >= held:
                break
            if is_secret(found):
                self._masks.append((start, end))
        begun = _start(_OPEN_CONTEXT, self._text, self._contexts_at)
        self._contexts_at = begun if value is None else min(begun, value.start())
        return held

    def _release(self, end: int) -> str:
        """Show the text up to `end`, but for a mask that goes on behind it, and forget what is needed no more."""
        masks = joined(self._masks)
        end = min([end, *(start for start, stop in masks if start < end < stop)])
        shown = _between(self._text, self._shown, end, masks)
        keep = max(0, min(end, self._known_at, self._keys_at, self._contexts_at) - 1)
        self._text = self._text[keep:]
        self._shown = end - keep
        self._known_at -= keep
        self._keys_at -= keep
        self._contexts_at -= keep
        self._masks = [(start - keep, stop - keep) for start, stop in masks if stop > end]
        return shown

    def _decided(self, text: str) -> str:
        """The rest of what is to be shown, when nothing follows `text`."""
        masks = list(self._masks)
        for whole, at in ((self._known.whole, self._known_at), (_KEY, self._keys_at)):
            if whole is not None:
                masks += [found.span() for found in whole.finditer(text, at)]
        values = _CONTEXT.finditer(text, self._contexts_at)
        masks += [found.span(found.lastindex or 0) for found in values if is_secret(found)]
        return _between(text, self._shown, len(text), joined(masks))

    def _drop(self, what: "_Block | _Run", *, before: str) -> None:
        """Begin anew behind something that is not shown; `before` stands for its last character."""
        self._dropping = what
        self._text = before
        self._masks = []
        self._shown = self._known_at = self._keys_at = self._contexts_at = 1


class _Run:
    """The rest of a run of key characters that was too long to be held.

    Args:
        begun: What of the run has come.
    """

    def __init__(self, begun: str) -> None:
        self._end = begun[-len(_BLOCK_MARK) :]

    def take(self, text: str) -> str | None:
        """Take a piece in; returns what is behind the run, None when it goes on."""
        behind = text.lstrip(_RUN)
        self._end = (self._end + text.removesuffix(behind))[-len(_BLOCK_MARK) :]
        if not behind:
            return None
        # The first word of a key block has nothing that a run could not have: it is given back with what follows it.
        return _BLOCK_MARK + behind if self._end == _BLOCK_MARK else behind


class _Block:
    """The inside of a private key block."""

    def __init__(self) -> None:
        self._tail = ""

    def take(self, text: str) -> str | None:
        """Take a piece in; returns what is behind the block, None when it goes on."""
        text = self._tail + text
        end = _BLOCK_END.search(text)
        if end is None:
            self._tail = text[-_LONGEST_END:]
            return None
        if end[1] is None:
            return text[end.start() :]
        if text[end.end(1) :] in ("", "\\"):
            # In JSON a line end may follow that belongs to the block.
            self._tail = text[end.start() :]
            return None
        return text[end.end() :]


def _start(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.search(text, at)
    return len(text) if found is None else found.start()


def _between(text: str, start: int, end: int, masks: Sequence[Span]) -> str:
    inside = [(max(left, start) - start, right - start) for left, right in masks if left < end and right > start]
    return masked(text[start:end], inside)
