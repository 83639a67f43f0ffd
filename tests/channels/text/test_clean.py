"""Taking out what no reader sees."""

from __future__ import annotations

import pytest
from hypothesis import given

from channels._text.clean import clean
from tests.channels.text.strategies import anything


@pytest.mark.parametrize(
    ("dirty", "text"),
    [
        ("a\x00b\x07c\x9bd", "abcd"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("one\r\ntwo\rthree\u2028four", "one\ntwo\nthree\nfour"),
        ("invoice\u202efdp.exe\u2066", "invoicefdp.exe"),
        ("\ud83e\uddea and \ud83e", "🧪 and \ufffd"),
        ("\ufefftab\tstays", "tab\tstays"),
        ("👩‍💻 شكرا\u200f!", "👩‍💻 شكرا\u200f!"),
    ],
)
def test_only_what_is_harmful_or_invisible_goes(dirty: str, text: str) -> None:
    """Controls, overrides and halves of characters go; joiners and the marks of right-to-left text stay."""
    assert clean(dirty) == text


@given(anything)
def test_a_cleaned_text_can_be_sent_and_is_clean(text: str) -> None:
    """The result is valid Unicode, and cleaning again changes nothing."""
    assert clean(clean(text)) == clean(text)
    clean(text).encode()
    assert "\x00" not in clean(text)
