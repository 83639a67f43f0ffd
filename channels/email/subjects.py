"""What mail programs put before the subject of an answer, and of a mail that is passed on, in their languages. Pure."""

from __future__ import annotations

import re

_ANSWERED = (
    "re|aw|antw|antwort|sv|vs|vá|res|rép|rif|odp|ynt|ats|atb|bls|отв|ответ|απ|σχετ|תשובה|השב|رد|"
    "回复|回覆|答复|答覆|返信|회신|답장"
)
# `VS` is a Finnish answer, and a Danish or Norwegian mail passed on.
_PASSED_ON = (
    "fw|fwd|wg|tr|transf|rv|enc|doorst|pd|vb|vs|vl|fs|videresendt|ilt|přep|továbbítás|trs|пересл|προθ|הועבר|"
    "转发|轉寄|轉發|転送|전달"
)
_COUNT_AND_COLON = r"\s{0,9}(?:[\[(]\d{1,4}[\])])?\s{0,9}[:：]\s*+"
_ANSWER_PREFIX = re.compile(rf"(?:{_ANSWERED}){_COUNT_AND_COLON}", re.IGNORECASE)
# Italian has single letters, `R` and `I`. A subject may well begin like that, so they are not taken away.
_PREFIX = re.compile(rf"(?:{_ANSWERED}|{_PASSED_ON}){_COUNT_AND_COLON}", re.IGNORECASE)
_PASSED_ON_PREFIX = re.compile(rf"\s*+\[?(?:{_PASSED_ON}|i)\s{{0,9}}[:：]", re.IGNORECASE)
# The tag of a list: `[dev]`.
_TAG = re.compile(r"\[[^\[\]]{0,100}\]\s*+")
_TRAILER = re.compile(r"\(fwd\)\Z", re.IGNORECASE)
_FORWARDED = re.compile(r"\[fwd:(.*)\]\Z", re.IGNORECASE | re.DOTALL)


def base_subject(subject: str) -> str:
    """A subject without what answers and forwards put around it (RFC 5256, section 2.1, and other languages)."""
    rest = " ".join(subject.split())
    while (shorter := _peeled(rest)) != rest:
        rest = shorter
    return rest


def without_answer_marks(subject: str) -> str:
    """A subject without all the `Re:` before it. One that says "forwarded" goes on saying so."""
    while (mark := _ANSWER_PREFIX.match(subject)) is not None:
        subject = subject[mark.end() :]
    return subject


def is_passed_on(subject: str) -> bool:
    """Whether a subject says that its mail passes another one on (`Fwd:`, `WG:`, `TR:`, ...)."""
    return _PASSED_ON_PREFIX.match(subject) is not None


def _peeled(subject: str) -> str:
    """A subject without the outermost thing around it."""
    rest = _TRAILER.sub("", subject).rstrip()
    forwarded = _FORWARDED.match(rest)
    if forwarded is not None:
        return forwarded[1].strip()
    tag = _TAG.match(rest)
    prefix = _PREFIX.match(rest, tag.end() if tag else 0)
    if prefix is not None:
        return rest[prefix.end() :]
    # A subject that is nothing but a tag keeps it.
    return rest[tag.end() :] if tag is not None and tag.end() < len(rest) else rest
