"""Characters that nobody sees and a program reads: taken out of what mails say, before anything reads it."""

from __future__ import annotations

import re

from channels._text.clean import clean

# Soft hyphens, fillers, blanks without width, invisible operators, annotations, formats of shorthand and music, tags
# and the selectors beyond them (Unicode: Default_Ignorable_Code_Point). The flags of England, Scotland and Wales are
# made of tags.
_UNSEEN = re.compile(
    "(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f)"
    "|[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u3164\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Joiners and selectors make letters and emoji, but one at a time; in a row they are a message of their own.
_IN_A_ROW = re.compile("(?<=[\u200c\u200d])[\u200c\u200d]+|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]+")


def readable(text: str) -> str:
    """A text as people see it: without control and bidirectional characters, and without unseen ones."""
    text = clean(text)
    return text if text.isascii() else _IN_A_ROW.sub("", _UNSEEN.sub(r"\1", text))
