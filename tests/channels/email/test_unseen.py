"""What nobody sees reaches no model: in words, subjects, names, file names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.email.reading.mime import read_mail
from channels.email.reading.unseen import readable
from channels.email.said.words import spoken

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "approve")
SELECTED = "".join(chr(0xE0100 + ord(letter)) for letter in "approve")
FLAG = "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in "gbeng") + "\U000e007f"
SEEN = ["Grüße, שלום", "می\u200cخواهم", "\U0001f469\u200d\U0001f467 ❤\ufe0f", FLAG, "日本語", "tab\tand\nline"]
UNSEEN = [TAGS, SELECTED, "\u200b\u2060\u00ad", "\x1b[31m\x07", "\u202e\u2066", "\u3164\u115f", "\U0001d173"]


@pytest.mark.parametrize("text", SEEN)
def test_what_people_write_stays(text: str) -> None:
    """Joiners of Persian and of emoji, selectors, the flags that are made of tags."""
    assert readable(text) == text


@pytest.mark.parametrize("unseen", UNSEEN)
def test_what_nobody_sees_is_taken_out_of_all_that_a_mail_says(unseen: str) -> None:
    """As it is, in encoded words, and in HTML as references."""
    name = quoted(unseen).replace("=", "%")
    lines = (
        f"From: =?utf-8?q?Ann{quoted(unseen)}?= <ann@good.test>",
        f"Subject: Hello{unseen}",
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b",
        f"Content-Type: text/plain; charset=utf-8\r\n\r\nwo{unseen}rds\r\n--b",
        f"Content-Type: text/html\r\n\r\n<p>wo{references(unseen)}rds</p>\r\n--b",
        f"Content-Disposition: attachment; filename*=utf-8''a{name}.txt\r\n\r\nx\r\n--b--\r\n",
    )
    mail = read_mail("\r\n".join(lines).encode())
    assert mail.sender is not None
    words = spoken(mail.bodies).new.replace("[31m", "").split("\n\n")
    assert (mail.sender.name, mail.subject, mail.files[0].name, *words) == ("Ann", "Hello", "a.txt", "words", "words")


def test_joiners_in_a_row_say_nothing() -> None:
    """Two kinds of them, or the sixteen selectors, are enough to write anything."""
    assert readable("a\u200c\u200d\u200d\u200cb \ufe01\ufe0e\ufe0fc") == "a\u200cb \ufe01c"


@given(st.text())
def test_what_is_readable_stays_as_it_is(text: str) -> None:
    """Once is enough."""
    once = readable(text)
    assert readable(once) == once


def quoted(text: str) -> str:
    """A text as an encoded word has it."""
    return "".join(f"={byte:02X}" for byte in text.encode())


def references(text: str) -> str:
    """A text as HTML may have it."""
    return "".join(f"&#x{ord(letter):x};" for letter in text)
