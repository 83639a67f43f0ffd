"""Whether the first line of an HTML mail is surely seen by who looks at it.

There is no end of ways to hide text by a style, and `visible` knows the usual ones. For reading that is enough. What a
mail orders must have been seen by who sent it, so for that it is asked the other way round: up to the end of its first
line, nothing may stand in the mail but what mail programs write around plain words. All else is in doubt.
"""

from __future__ import annotations

import re

from channels.email.said.html_tokens import Close, Open, Raw, Text, tokens

_MOST = 200_000
"""Characters that are looked at."""
_TAGS = re.compile(
    "html|head|meta|title|style|body|div|p|span|br|b|strong|i|em|u|font|a|pre|table|tbody|tr|td|h[1-6]|center|small|tt|"
    "code|o:p"
)
_LINE_ENDS = re.compile("br|div|p|pre|table|tr|h[1-6]|blockquote|hr|body|html|ul|ol")
_HARMLESS = re.compile(
    r"font-(?:family|weight|style|variant.*|stretch|kerning|feature-settings|size-adjust|optical-sizing)|mso-(?!hide).*|"
    r"text-(?:align|decoration.*|transform|size-adjust)|word-(?:wrap|break)|overflow-wrap|"
    r"line-break|white-space|direction|border.*|padding.*|orphans|widows|caret-color|page|panose-1|size|src|tab-size|"
    r"list-style.*|vertical-align|-webkit-(?:text-size-adjust|nbsp-mode|line-break|text-stroke-width)|text-stroke-width|"
    r"-ms-text-size-adjust|text-justify|text-underline-.*|layout-grid.*|punctuation-wrap"
)
_WHITE = re.compile(r"(?:white|#fff|#ffffff|window|transparent|none|initial|inherit)?")
_DARK = re.compile(
    r"(?:black|windowtext|inherit|initial|currentcolor|#[0-9a-f]{3}|#[0-9a-f]{6}|rgb\(\d{1,3},\d{1,3},\d{1,3}\))?"
)
_SMALLEST = 7.0
"""Pixels or points."""
_DARKEST_GREY = 160
_LENGTH = re.compile(r"(\d{0,4}\.?\d{1,4})(px|pt|em|rem|%|in|cm|mm)?")
_IN_PIXELS = {"px": 1.0, "pt": 1.0, "em": 16.0, "rem": 16.0, "%": 0.16, "in": 96.0, "cm": 38.0, "mm": 3.8}
_BLOCK = re.compile(r"\{([^{}]*)\}")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def first_line_is_seen(html: str) -> bool:
    """Tell whether nothing stands up to the end of the first line by which it could be hidden.

    Args:
        html: The whole document; a style sheet anywhere in it counts.
    """
    ended, said = False, False
    for token in tokens(html[:_MOST]):
        match token:
            case Raw("style", content):
                if not all(map(_is_harmless, _BLOCK.findall(_COMMENT.sub("", content)))):
                    return False
            case Text(text) if not ended:
                said = said or not text.isspace()
            case Open(name) | Close(name) if not ended and said and _LINE_ENDS.fullmatch(name):
                ended = True
            case Open(name, attributes) if not ended:
                colours = attributes.get("bgcolor", ""), attributes.get("color", "") or attributes.get("text", "")
                seen = _TAGS.fullmatch(name) is not None and not attributes.keys() & {"hidden", "background", "size"}
                if not (seen and _is_white(colours[0]) and _is_dark(colours[1])):
                    return False
                if not _is_harmless(attributes.get("style", "")):
                    return False
            case Raw(name) if not ended and name != "title":
                return False
    return said and len(html) <= _MOST


def _is_harmless(style: str) -> bool:
    """Whether declarations hide nothing, whatever they stand on."""
    for declaration in style.lower().split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        value = "".join(value.replace("!important", "").split())
        match name:
            case "color" | "text-fill-color":
                fits = _is_dark(value)
            case "background" | "background-color":
                fits = _is_white(value)
            case "font-size" | "line-height":
                fits = _is_large(value)
            case "display":
                fits = value in {"block", "inline", "inline-block"}
            case (
                "letter-spacing"
                | "word-spacing"
                | "margin"
                | "margin-left"
                | "margin-right"
                | "margin-top"
                | "margin-bottom"
            ):
                fits = "-" not in value
            case _:
                fits = not name or _HARMLESS.fullmatch(name) is not None
        if not fits:
            return False
    return True


def _is_white(value: str) -> bool:
    return _WHITE.fullmatch(value.strip().lower()) is not None


def _is_dark(value: str) -> bool:
    value = "".join(value.lower().split())
    if _DARK.fullmatch(value) is None:
        return False
    if value.startswith("#"):
        digits = value[1:] if len(value) > 4 else "".join(2 * digit for digit in value[1:])
        parts = [int(digits[place : place + 2], 16) for place in (0, 2, 4)]
    else:
        parts = [int(number) for number in re.findall(r"\d+", value)]
    return not parts or min(parts) < _DARKEST_GREY


def _is_large(value: str) -> bool:
    found = _LENGTH.fullmatch(value)
    if found is None:
        return value in {"small", "medium", "large", "x-large", "inherit", "initial", "normal", ""}
    # A bare number is so many times the size of the letters.
    return float(found[1]) * _IN_PIXELS.get(found[2] or "em", 16.0) >= _SMALLEST
