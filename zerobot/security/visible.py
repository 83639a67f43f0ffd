"""Text from outside, made safe to look at: whatever changes or hides what is seen becomes a visible escape."""

import re
import unicodedata
from collections.abc import Callable

# Controls, formats (bidirectional marks, tags, joiners), line and paragraph separators, odd blanks, private use,
# surrogates, unassigned.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs", "Co", "Cs", "Cn"})

# Letters and marks by category, but drawn as nothing or as a blank (Unicode: Default_Ignorable_Code_Point, fillers).
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")

_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}

# Full-width and other compatibility forms of ASCII punctuation, letters and digits pass for the real ones.
_LOOKALIKES = re.compile("[\uff01-\uff5e\u2024-\u2026\u2044\u2215\u29f8\u3002\uff61\u2010-\u2012\u2212]")

_PLAIN = re.compile(r"[ -~]*\Z")


def is_hidden(ch: str) -> bool:
    """Whether a character changes or hides what is seen; the blank, the line feed and the tab do not count."""
    if ch in "\n\t ":
        return False
    if unicodedata.category(ch) in _HIDDEN_CATEGORIES or ch in _BLANK_LETTERS:
        return True
    # Variation selectors and their supplement carry data that nobody sees.
    return 0xFE00 <= ord(ch) <= 0xFE0F or 0xE0100 <= ord(ch) <= 0xE01EF


def has_hidden(text: str) -> bool:
    """Whether any character of a text is hidden."""
    return not _PLAIN.match(text) and any(map(is_hidden, set(text)))


def escape(text: str) -> str:
    r"""Make every hidden character visible as `\u{…}`; line feeds, tabs and ordinary text of any script stay."""
    if _PLAIN.match(text):
        return text
    return _with_visible(text, is_hidden)


def one_line(text: str) -> str:
    r"""The same, on one line: line feeds, returns and tabs become `\n`, `\r`, `\t`."""
    if _PLAIN.match(text):
        return text
    return _with_visible(text, lambda ch: ch in _SHORT or is_hidden(ch))


def as_code(text: str) -> str:
    """The same as Markdown code: nothing in it is markup, and it cannot pass for words around it."""
    shown = one_line(text).replace("`", "'") or " "
    return f"`{shown}`"


def lookalikes(text: str) -> tuple[str, ...]:
    """The characters of a text that pass for ASCII ones but are not, each once, in the order of the text."""
    return tuple(dict.fromkeys(_LOOKALIKES.findall(text)))


def _with_visible(text: str, is_meant: Callable[[str], bool]) -> str:
    # Each character is looked at once: a text may have millions, and everybody waits while it is drawn.
    table = {ord(ch): _visible(ch) for ch in set(text) if is_meant(ch)}
    return text.translate(table) if table else text


def _visible(ch: str) -> str:
    return _SHORT.get(ch, f"\\u{{{ord(ch):x}}}")
