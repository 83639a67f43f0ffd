"""Text outside ASCII in header fields (RFC 2047), as it is written and as it ought to be."""

from __future__ import annotations

import binascii
import re
from itertools import groupby

from channels.email.reading.charsets import decode_exactly, decode_text
from channels.email.reading.transfer import decode_base64
from channels.email.reading.unseen import readable

# Blanks within a word, and a word without a blank around it, are against the RFC and common.
_WORD = re.compile(r"=\?([^?\s=]{1,60})\?([BbQq])\?([^?]*)\?=")


def header_text(value: bytes) -> str:
    """A field's value as text, encoded words left as they are; raw bytes are UTF-8 (RFC 6532) or windows-1252.

    Nothing is left out: an address with a NUL in it must not become another one.
    """
    return decode_exactly(value)


def decode_words(text: str) -> str:
    """Decode the encoded words of a text; blanks between two of them vanish, and what can't be decoded stays."""
    pieces: list[str] = []
    run: list[re.Match[str]] = []
    at = 0
    for word in _WORD.finditer(text):
        between = text[at : word.start()]
        if between and not (run and between.isspace()):
            pieces += (_decode_run(run), between)
            run = []
        run.append(word)
        at = word.end()
    return "".join((*pieces, _decode_run(run), text[at:]))


def one_line(text: str) -> str:
    """Bring a text onto one line, without control, bidirectional and unseen characters."""
    return readable(text).replace("\n", " ").replace("\t", " ").strip()


def _decode_run(run: list[re.Match[str]]) -> str:
    """Decode words that follow each other; a character may be cut between two words of one charset."""
    text = ""
    for charset, words in groupby(run, key=lambda word: word[1].lower()):
        data = b""
        for encoding, same in groupby(words, key=lambda word: word[2].lower()):
            data += _decode_same([word[3] for word in same], encoding)
        text += decode_text(data, charset)
    return text if text or not run else "".join(word[0] for word in run)


def _decode_same(words: list[str], encoding: str) -> bytes:
    # Bytes that stand in a word as they are, which no RFC allows, are taken for what they stand for.
    if encoding == "q":
        return binascii.a2b_qp("".join(words).replace("\n", " ").encode(), header=True)
    # Each word may be padded; where it is not, its last bits may stand in the next one.
    return b"".join(decode_base64(piece.encode()) for piece in re.findall(r"[^=]+", "".join(words)))
