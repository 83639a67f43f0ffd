"""Masks secrets in texts that leave the process: chat, logs, tool results."""

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote, quote_plus

from zerobot.security.secret_forms import (
    BLOCK_BEGIN,
    BLOCK_BODY,
    BLOCK_END,
    CONTEXT,
    KEY,
    NO_BLOCK_BODY,
    is_secret,
)

MASK = "[redacted]"

MIN_SECRET = 8
"""Characters; a shorter configured secret would mask half of every text. The daemon warns of it at the start."""

LONGEST_PIECE = 512
"""Characters; a longer form of a configured secret is searched for in pieces, so that no stream is held back longer."""

_KEY = re.compile(KEY, re.ASCII)
_CONTEXT = re.compile(CONTEXT, re.ASCII)

# A whole private key, or what there is of one whose end is cut off.
_BLOCK = re.compile(rf"{BLOCK_BEGIN}(?:{BLOCK_BODY})*?(?:{BLOCK_END}(?:\\n)?|\\?\Z|(?={NO_BLOCK_BODY}))")

Span = tuple[int, int]
"""From where to where in a text."""


class Redactor:
    """Masks exact secrets in every form in which they may show, known key forms, and what the context betrays."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.forms = known_forms(secrets)
        """The texts that are searched for as they are, longest first."""
        self._exact = one_of(self.forms)

    def clean(self, text: str) -> str:
        """Return a text without secrets. A mask covers only the secret: words, quotes and shell text around it stay."""
        if "PRIVATE KEY" not in text:
            return self._clean(text)
        return MASK.join(map(self._clean, _BLOCK.split(text)))

    def _clean(self, text: str) -> str:
        return masked(text, list(self._spans(text)))

    def _spans(self, text: str) -> Iterator[Span]:
        if self._exact is not None:
            yield from (found.span() for found in self._exact.finditer(text))
        yield from (found.span() for found in _KEY.finditer(text))
        yield from (found.span(found.lastindex or 0) for found in _CONTEXT.finditer(text) if is_secret(found))


def masked(text: str, spans: Sequence[Span]) -> str:
    """Put a mask in place of each span; spans that overlap get one."""
    if not spans:
        return text
    pieces = []
    at = 0
    for start, end in joined(spans):
        pieces += [text[at:start], MASK]
        at = end
    return "".join([*pieces, text[at:]])


def joined(spans: Iterable[Span]) -> list[Span]:
    """Spans in order, those that overlap made one."""
    result: list[Span] = []
    for start, end in sorted(spans):
        if result and start < result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def too_short(secrets: Iterable[str]) -> bool:
    """Whether a configured secret is so short that it is not searched for."""
    return any(0 < len(secret) < MIN_SECRET for secret in secrets)


def known_forms(secrets: Iterable[str]) -> tuple[str, ...]:
    """All texts in which some secrets may show, in pieces of at most `LONGEST_PIECE`; longest first."""
    forms = {piece for secret in secrets for form in forms_of(secret) for piece in _pieces(form)}
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def one_of(forms: Sequence[str]) -> re.Pattern[str] | None:
    """What finds any of some texts, the longest where several begin; None when there are none."""
    return re.compile("|".join(map(re.escape, forms))) if forms else None


def _pieces(form: str) -> Iterator[str]:
    count = -(-len(form) // LONGEST_PIECE)
    size = -(-len(form) // count)
    return (form[at : at + size] for at in range(0, len(form), size))


def forms_of(secret: str) -> Iterator[str]:
    """The forms of a secret in a text: plain, URL, JSON, HTML, Base64 at any offset; none if it is too short."""
    if len(secret) < MIN_SECRET:
        return
    yield secret
    yield quote(secret, safe="")
    yield quote(secret)
    yield quote_plus(secret)
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield html.escape(secret)
    yield from _base64_forms(secret.encode("utf-8", "surrogatepass"))


def _base64_forms(data: bytes) -> Iterator[str]:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(data).decode("ascii").rstrip("=")
        # Within a longer text the same bytes look different at each of three offsets; only whole groups are sure.
        for offset in (1, 2):
            inner = data[3 - offset :]
            sure = inner[: len(inner) // 3 * 3]
            if len(sure) >= MIN_SECRET - 2:
                yield encode(sure).decode("ascii")
