"""The grammar: CommonMark with tables and strikethrough, and what models write beyond it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Scanned

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import Any

    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

MAX_DEPTH = 16
"""Levels of quotes and lists (a list counts twice); what is deeper stays text, so that a storm of `>` costs nothing."""

MAX_FORMULA = 1000
"""Characters of a formula."""

# An address ends before any of these; brackets and quotes close what it stands in.
_ADDRESS_ENDS = frozenset(' \t\n<>"`\\^{}[]|“”‘’«»')
_NOT_LAST = frozenset("?!.,:;*_~'")
_CJK = (
    ("\u2e80", "\ua4cf"),
    ("\uac00", "\ud7af"),
    ("\uf900", "\ufaff"),
    ("\ufe30", "\ufe4f"),
    ("\uff00", "\uffef"),
    ("\U00020000", "\U0003ffff"),
)


@cache
def parser() -> MarkdownIt:
    """Return the one parser; it keeps nothing between texts."""
    # `html` only lets tags be recognised as tokens; nothing of it is ever passed on as HTML.
    md = MarkdownIt("commonmark", {"html": True, "maxNesting": MAX_DEPTH + 8})
    md.enable(["table", "strikethrough"]).disable("html_block")
    md.inline = _Inline(md.inline)
    md.inline.ruler.before("escape", "formula", _formula)
    md.inline.ruler.after("text", "bare_address", _bare_address)
    md.block.ruler.before("table", "too_deep", _too_deep)
    md.block.ruler.after("fence", "formula_block", _formula_block, {"alt": ["paragraph", "reference", "blockquote"]})
    # Dangerous addresses are refused when the tree is made; refused here, their Markdown would be shown raw.
    md.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005
    return md


class _State(StateInline):
    """Reads stars and underscores as their author meant them, where CommonMark would lose some of the text."""

    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:  # noqa: FBT001, N802, N803 - as in the base class
        scanned = super().scanDelims(start, canSplitWord)
        end = start + scanned.length
        before = self.src[start - 1] if start > 0 else " "
        after = self.src[end] if end < self.posMax else " "
        if not canSplitWord:
            is_name = after == "(" or (after == "." and self.src[end + 1 : end + 2].isalpha())
            return scanned._replace(can_close=False) if is_name else scanned  # `__init__.py`, `_private()`
        if scanned.length == 1 and (before + after).isalnum() and (before.isdigit() or after.isdigit()):
            return Scanned(can_open=False, can_close=False, length=1)  # `2*3*4`
        if _is_cjk(before) or _is_cjk(after):
            # Chinese, Japanese and Korean are written without blanks: `**注意：**内容` is bold.
            return Scanned(not after.isspace(), not before.isspace(), scanned.length)
        return scanned


class _Inline(ParserInline):
    """The inline parser with our state."""

    def __init__(self, base: ParserInline) -> None:
        super().__init__()
        self.ruler, self.ruler2 = base.ruler, base.ruler2

    def parse(self, src: str, md: MarkdownIt, env: MutableMapping[str, Any], tokens: list[Token]) -> list[Token]:
        """Parse the text of one block."""
        state = _State(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


def _is_cjk(char: str) -> bool:
    return char >= "\u2e80" and any(first <= char <= last for first, last in _CJK)


def _too_deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - called by position
    if state.level < MAX_DEPTH or silent:
        return False
    line = start
    while line < end and (state.isEmpty(line) or state.sCount[line] >= state.blkIndent):
        line += 1
    state.line = max(line, start + 1)
    state.push("paragraph_open", "p", 1)
    inline = state.push("inline", "", 0)
    inline.content = state.getLines(start, state.line, state.blkIndent, keepLastLF=False).strip()
    inline.children = []
    state.push("paragraph_close", "p", -1)
    return True


def _formula_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - called by position
    """A formula whose opening mark stands alone on its line."""
    opening = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]].rstrip()
    closing = {"$$": "$$", "\\[": "\\]"}.get(opening)
    if closing is None:
        return False
    for line in range(start + 1, min(end, start + 64)):
        if state.sCount[line] < state.blkIndent:
            return False
        if state.src[state.bMarks[line] : state.eMarks[line]].strip() == closing:
            if not silent:
                token = state.push("formula_block", "", 0)
                token.content = state.getLines(start + 1, line, state.sCount[start], keepLastLF=False)
                state.line = line + 1
            return True
    return False


def _formula(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - called by position
    r"""A formula, in which stars and underscores are no emphasis: `$…$`, `$$…$$`, `\(…\)`, `\[…\]`."""
    start = state.pos
    opening = state.src[start : start + 2]
    closing = {"$$": "$$", "\\(": "\\)", "\\[": "\\]"}.get(opening)
    if closing is None:
        return opening[:1] == "$" and _dollar_formula(state, silent=silent)
    end = state.src.find(closing, start + 2, min(state.posMax, start + MAX_FORMULA))
    content = state.src[start + 2 : end].strip()
    if end < 0 or not content:
        return False
    if not silent:
        state.push("formula", "", 0).content = content
    state.pos = end + 2
    return True


def _dollar_formula(state: StateInline, *, silent: bool) -> bool:
    """One dollar is money more often than mathematics: it only keeps its text from being read as emphasis."""
    start = state.pos
    end = state.src.find("$", start + 1, min(state.posMax, start + MAX_FORMULA))
    content = state.src[start + 1 : end]
    if end < 0 or content != content.strip() or "`" in content or state.src[end + 1 : end + 2].isdigit():
        return False
    if not any(char in content for char in "\\^_={"):
        return False
    if not silent:
        state.push("text", "", 0).content = state.src[start : end + 1]
    state.pos = end + 1
    return True


def _bare_address(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - called by position
    """An address without any marks: otherwise its stars would be emphasis and its end a guess of the platform's."""
    colon = state.pos
    if state.linkLevel or not state.src.startswith("://", colon):
        return False
    scheme = next((s for s in ("https", "http") if state.src[max(0, colon - 5) : colon].lower().endswith(s)), "")
    start = colon - len(scheme)
    if not scheme or (start > 0 and state.src[start - 1].isalnum() and state.src[start - 1].isascii()):
        return False
    end = _address_end(state.src, colon + 3, state.posMax)
    if end <= colon + 3:
        return False
    if not silent:
        if not state.pending.endswith(state.src[start:colon]):
            return False
        state.pending = state.pending[: -len(scheme)]
        url = state.src[start:end]
        opened = state.push("link_open", "a", 1)
        opened.attrSet("href", state.md.normalizeLink(url))
        state.push("text", "", 0).content = url
        state.push("link_close", "a", -1)
    state.pos = end
    return True


def _address_end(text: str, start: int, limit: int) -> int:
    end, open_brackets = start, 0
    while end < limit and text[end] not in _ADDRESS_ENDS:
        char = text[end]
        if char == "(":
            open_brackets += 1
        elif char == ")":
            open_brackets -= 1
            if open_brackets < 0:
                break
        elif not char.isascii() and not char.isalnum():
            break  # a full stop, comma or bracket of another script
        end += 1
    while end > start and text[end - 1] in _NOT_LAST:
        end -= 1
    return end
