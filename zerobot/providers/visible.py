"""Keeps reasoning out of what people see: drops `<think>` parts from streamed text, and mends broken characters."""

import re

_TAGS = ("think", "thinking", "final")
_TAG = re.compile(rf"<(/?)({'|'.join(_TAGS)})\s*/?>", re.IGNORECASE)
_LONGEST_TAG = 24
"""Characters that a tag may have, blanks included; nothing longer is ever held back."""
_KEEPS_LINE_START = frozenset(" \t>")
_FENCE = 3


def joined(text: str) -> str:
    """Join surrogate pairs and replace lone ones, so that the text can be encoded."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _may_become_tag(text: str) -> bool:
    """Whether more characters could make a tag out of `text`, which begins with `<`."""
    if len(text) > _LONGEST_TAG:
        return False
    rest = text[1:].removeprefix("/").lower()
    word = rest.rstrip(" \t/")
    if word != rest:
        return word in _TAGS
    return any(tag.startswith(word) for tag in _TAGS)


class _Code:
    """Knows whether the next character stands in code: a fenced block, or a span between backticks."""

    def __init__(self) -> None:
        self._fence = ""
        self._span = 0
        self._run = ""
        self._line_start = True
        self._info_line = False
        self._closing = False

    def feed(self, text: str) -> None:
        """Take visible text, in pieces of any length."""
        for char in text:
            self._take(char)

    def now_inside(self) -> bool:
        """Whether something other than a backtick or tilde, coming now, stands in code."""
        self._end_run()
        return bool(self._fence or self._span)

    def _take(self, char: str) -> None:
        if char in "`~":
            if self._run and self._run[0] != char:
                self._end_run()
            self._run += char
            return
        self._end_run()
        if char == "\n":
            self._end_line()
        elif char not in _KEEPS_LINE_START:
            self._line_start = False
            self._closing = False

    def _end_line(self) -> None:
        if self._closing:
            self._fence = ""
        if self._line_start:
            # A blank line ends the paragraph, and with it a span that was never closed.
            self._span = 0
        self._line_start, self._info_line, self._closing = True, False, False

    def _end_run(self) -> None:
        run, self._run = self._run, ""
        if not run:
            return
        at_start, self._line_start = self._line_start, False
        if self._fence:
            self._run_in_fence(run, at_start=at_start)
        elif self._span:
            if run == "`" * self._span:
                self._span = 0
        elif at_start and len(run) >= _FENCE:
            self._fence, self._info_line = run, True
        elif run[0] == "`":
            self._span = len(run)

    def _run_in_fence(self, run: str, *, at_start: bool) -> None:
        if self._info_line and self._fence[0] == "`" == run[0]:
            # Backticks after the opening ones in the same line: it was a span that only looked like a fence.
            self._span = 0 if run == self._fence else len(self._fence)
            self._fence, self._info_line = "", False
        elif at_start and run[0] == self._fence[0] and len(run) >= len(self._fence):
            self._closing = True


class VisibleText:
    """Turns a model's raw text deltas into what people may see.

    A part between `<think>` and `</think>` is hidden, also when the tags are cut over deltas, nested, in upper case
    or never closed; a `<final>` in it ends it. Tags in code stay as they are. Only what may be the beginning of a tag
    is held back, ordinary text never.
    """

    def __init__(self) -> None:
        self._code = _Code()
        self._depth = 0
        self._held = ""
        self._half = ""
        self._has_hidden = False
        self._skip_blanks = False
        self._shown = False

    def feed(self, delta: str) -> str:
        """Take the next delta and return what of the text becomes visible; may be empty."""
        delta = self._half + delta
        self._half = ""
        if delta and "\ud800" <= delta[-1] <= "\udbff":
            # One half of a character outside the basic plane: JSON escapes may be cut between the two.
            self._half, delta = delta[-1], delta[:-1]
        delta = joined(delta)
        if not (self._held or self._depth or "<" in delta):
            return self._show(delta)
        return "".join([self._take(char) for char in delta])

    def end(self) -> str:
        """Take the end of the text and return what was held back and turned out to be no tag."""
        rest = self._held if self._depth == 0 else ""
        self._held = ""
        half, self._half = ("\ufffd", "") if self._half and not self._depth else ("", "")
        return self._show(rest + half)

    def _take(self, char: str) -> str:
        if not self._held:
            if char == "<" and (self._depth or not self._code.now_inside()):
                self._held = char
                return ""
            return "" if self._depth else self._show(char)
        candidate = self._held + char
        if tag := _TAG.fullmatch(candidate):
            self._held = ""
            return self._take_tag(candidate, closes=bool(tag[1]), name=tag[2].lower())
        if _may_become_tag(candidate):
            self._held = candidate
            return ""
        literal, self._held = self._held, ""
        return ("" if self._depth else self._show(literal)) + self._take(char)

    def _take_tag(self, tag: str, *, closes: bool, name: str) -> str:
        if name == "final":
            if not self._has_hidden:
                return self._show(tag)
            self._depth = 0
        elif closes:
            self._depth = max(0, self._depth - 1)
        elif not tag.endswith("/>"):
            self._depth += 1
        self._has_hidden = True
        self._skip_blanks = not self._shown
        return ""

    def _show(self, text: str) -> str:
        if self._skip_blanks:
            # Blank lines between the reasoning and the first visible word belong to neither.
            text = text.lstrip()
            self._skip_blanks = not text
        if text:
            self._shown = True
            self._code.feed(text)
        return text
