"""What of an HTML mail a reader sees, as its style says.

Text that nobody sees is no part of what was said: the line that is meant for the list of mails, and orders that a
sender hides from the person and not from a program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

_LENGTH = re.compile(r"(-?\d*\.?\d+)([a-z%]*)")
_PROPERTIES = frozenset(
    (
        "display",
        "visibility",
        "font-size",
        "opacity",
        "mso-hide",
        "overflow",
        "height",
        "max-height",
        "text-indent",
        "left",
        "top",
        "position",
        "white-space",
        "color",
    )
)
_SELECTOR = re.compile(r"([a-z][a-z0-9]*|\*)?([.#][\w-]+)?")
_BRACE = re.compile("[{}]")
_MAX_RULES = 2_000
_FAR_OUT = -999.0
"""Pixels; what is moved that far is moved out of sight."""


@dataclass(frozen=True, slots=True)
class Look:
    """How the text of an element looks, as far as it matters whether it is seen."""

    gone: bool = False
    """Nothing inside is shown, whatever it says of itself."""
    invisible: bool = False
    tiny: bool = False
    kept_blanks: bool = False
    """Blanks and line ends are shown as they are written."""

    @property
    def seen(self) -> bool:
        """Whether the text is shown."""
        return not (self.gone or self.invisible or self.tiny)

    def inside(self, style: Mapping[str, str]) -> Look:
        """The look of an element with these declarations that stands in one of this look."""
        if not style:
            return self
        look = self
        if _removes(style):
            look = replace(look, gone=True)
        if visibility := style.get("visibility"):
            look = replace(look, invisible=visibility in ("hidden", "collapse"))
        if (size := _pixels(style.get("font-size", ""))) is not None:
            # Templates set 0 on a table to close gaps and a real size on what is in it; 1 hides as well as 0.
            look = replace(look, tiny=size <= 1)
        if white_space := style.get("white-space"):
            look = replace(look, kept_blanks=white_space.startswith("pre") and white_space != "pre-line")
        return look


def _removes(style: Mapping[str, str]) -> bool:
    if style.get("display") == "none" or style.get("mso-hide") == "all" or style.get("color") == "transparent":
        return True
    if _pixels(style.get("opacity", "")) == 0:
        return True
    if style.get("overflow", "").startswith("hidden") and 0 in (
        _pixels(style.get("max-height", "")),
        _pixels(style.get("height", "")),
    ):
        return True
    moved = [style.get("text-indent", "")]
    if style.get("position") in ("absolute", "fixed"):
        moved += [style.get("left", ""), style.get("top", "")]
    return any((pixels := _pixels(value)) is not None and pixels <= _FAR_OUT for value in moved)


def _pixels(value: str) -> float | None:
    """A length in pixels, about; None for none (`auto`, `large`) and for shares of something else."""
    found = _LENGTH.fullmatch(value[:40])
    if found is None:
        return None
    number, unit = float(found[1]), found[2]
    if number == 0 or unit in ("", "px", "pt"):
        return number
    return number * 16 if unit in ("em", "rem") else None


def declarations(style: str) -> dict[str, str]:
    """The declarations of a style that matter here, by property, in lower case."""
    found: dict[str, str] = {}
    for declaration in _without_comments(style).lower().split(";"):
        name, _, value = declaration.partition(":")
        if (name := name.strip()) in _PROPERTIES:
            found[name] = value.replace("!important", "").strip()
    return found


def _without_comments(css: str) -> str:
    if "/*" not in css:
        return css
    first, *others = css.split("/*")
    return first + " ".join(other.partition("*/")[2] for other in others)


@dataclass(slots=True)
class StyleSheet:
    """Rules for all elements of a tag, a class or an id; others, and those for some screens only, are left out."""

    rules: dict[tuple[str, str], list[tuple[int, dict[str, str]]]] = field(default_factory=dict)
    """By tag (empty: any) and by `.class` or `#id` (empty: any); each with its place in the order of the sheet."""
    size: int = 0

    def read(self, css: str) -> None:
        """Add the rules of a `style` element."""
        for prelude, block in _rules(_without_comments(css)):
            style = declarations(block)
            for selector in prelude.split(",") if style else ():
                found = _SELECTOR.fullmatch(selector.strip())
                if found is None or self.size == _MAX_RULES:
                    continue
                self.size += 1
                tag = (found[1] or "").lower().replace("*", "")
                self.rules.setdefault((tag, found[2] or ""), []).append((self.size, style))

    def style(self, tag: str, attributes: Mapping[str, str]) -> dict[str, str]:
        """What holds for an element: the rules in their order, then what it says itself."""
        inline = attributes.get("style", "")
        if not self.rules:
            return declarations(inline) if inline else {}
        marks = ["", *(f".{name}" for name in attributes.get("class", "").split()[:20])]
        if identity := attributes.get("id"):
            marks.append(f"#{identity}")
        matching = [rule for mark in marks for key in ((tag, mark), ("", mark)) for rule in self.rules.get(key, ())]
        together: dict[str, str] = {}
        for _, style in sorted(matching, key=lambda rule: rule[0]):
            together |= style
        return together | declarations(inline)


def _rules(css: str) -> Iterator[tuple[str, str]]:
    """The rules of a sheet outside of `@media` and the like, as selectors and declarations."""
    at = 0
    while (start := css.find("{", at)) >= 0:
        prelude = css[at:start].rpartition(";")[2].replace("<!--", "").strip()
        if prelude.startswith("@"):
            at = _end_of_block(css, start)
            continue
        end = css.find("}", start)
        if end < 0:
            return
        yield prelude, css[start + 1 : end]
        at = end + 1


def _end_of_block(css: str, start: int) -> int:
    depth = 0
    for brace in _BRACE.finditer(css, start):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return brace.end()
    return len(css)
