"""PGP within a text (RFC 9580, sections 6.2 and 7): what is readable stays, what is armour goes."""

from __future__ import annotations

from dataclasses import dataclass

_MESSAGE = ("-----BEGIN PGP MESSAGE-----", "-----END PGP MESSAGE-----")
_SIGNATURE = ("-----BEGIN PGP SIGNATURE-----", "-----END PGP SIGNATURE-----")
_SIGNED = "-----BEGIN PGP SIGNED MESSAGE-----\n"


@dataclass(frozen=True, slots=True)
class Unarmoured:
    """A text without armour, and what the armour was."""

    text: str
    encrypted: bool
    signed: bool


def unarmour(text: str) -> Unarmoured:
    """Take the armour out of a text whose lines end with a line feed; nothing is decrypted, nothing is verified."""
    bare = _without_blocks(text, *_MESSAGE)
    encrypted = bare != text
    before, begin, rest = bare.partition(_SIGNED)
    if not begin:
        return Unarmoured(bare, encrypted, signed=False)
    # The fields of the armour end at an empty line; lines that began with a dash were given another one.
    content = _without_blocks(rest.partition("\n\n")[2], *_SIGNATURE)
    lines = [line.removeprefix("- ") for line in content.split("\n")]
    return Unarmoured(before + "\n".join(lines), encrypted, signed=True)


def _without_blocks(text: str, begin: str, end: str) -> str:
    pieces: list[str] = []
    at = 0
    while (start := text.find(begin, at)) >= 0:
        pieces.append(text[at:start])
        stop = text.find(end, start)
        at = stop + len(end) if stop >= 0 else len(text)
    return "".join((*pieces, text[at:]))
