"""One translator from what model APIs say when they refuse to the errors that the engine knows what to do with."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from zerobot.core.errors import (
    BodyTooLargeError,
    ContextOverflowError,
    CredentialError,
    HistoryRejectedError,
    PictureRejectedError,
    ProviderError,
    RateLimitError,
)

MESSAGE_LIMIT = 300
"""Characters of a server's own words that may stand in one of our errors."""

_SERVER_FAULT = 500
_RETRYABLE = frozenset({408, 409, 425, 429})
_CODES = {404: "not_found", 408: "timeout", 409: "conflict"}
_OVERLOADED = frozenset({503, 529})
_QUOTA = re.compile(
    r"insufficient[_ ](quota|balance|credit|fund)|exceeded[_ ](your )?(current[_ ])?(quota|balance)|credit balance"
    r"|billing|payment required|out of (credits|quota)|arrear|余额",
    re.IGNORECASE,
)
# A limit that is refilled soon, though it is called a quota (Gemini's free tier).
_REFILLS = re.compile(r"per[ _-]?minute|per[ _-]?second|retry in \d", re.IGNORECASE)
_OVERFLOW = re.compile(
    r"context[_ ]?(length|size|window)|maximum context|prompt is too long|too many (input |prompt )?tokens"
    r"|exceed[a-z_ ]*(context|token limit|max(imum)?[a-z_ ]*tokens)|input (length|is too long)|reduce the length"
    r"|input token count",
    re.IGNORECASE,
)
_BODY = re.compile(
    r"request_too_large|request exceeds the maximum size|(body|payload|entity) (is )?too large"
    # Each request can only have so many pictures of so many bytes and pixels.
    r"|image exceeds|image dimensions|too many images|at most \d+ image|max(imum)?[a-z_ ]* \d+ images|images: \d+ >",
    re.IGNORECASE,
)
_PICTURE = re.compile(
    r"image_url|input_image|data:image|image\.source|invalid_image|image_parse_error|mmproj|multi-?modal"
    r"|(not|n't|un|(unable|failed) to )[ -]?((pre)?process|support|read|decode|download|represent)[a-z ,]* images?\b"
    r"|(invalid|unsupported|corrupt(ed)?|unreadable|bad) (base64[a-z -]*)?images?\b"
    r"|\bimages?\b[^.]{0,60}(not (supported|valid)|unsupported|invalid|could not|cannot|failed|corrupt|does not match)"
    r"|support[a-z ]*image input|content must be a string",
    re.IGNORECASE,
)
_HISTORY = re.compile(
    r"tool_call_id|tool_calls?\b|tool_use|tool_result|tool (message|call|result|output)|messages?[\[.\"', ]+\d+"
    r"|without its required|encrypted content [^.]*verif|thought_signature|signature[`'\"]? in"
    r"|alternat|\brole\b|roles|first message|non-?empty content|content[a-z ]* (must|cannot|should)( not)? be"
    r"|empty (content|message|text)|text content blocks|last message|function (call|response) turn",
    re.IGNORECASE,
)
_FILTER = re.compile(
    r"content[_ ]filter|responsible ?ai|content management policy|data_inspection_failed", re.IGNORECASE
)
# The model wrote a call that its server could not read: another attempt may write a better one (Groq).
_GENERATION = re.compile(
    r"tool_use_failed|failed_generation|failed to call a function|json_validate_failed", re.IGNORECASE
)
_RATE = re.compile(r"rate[_ ]?limit|too many requests|throttl|tokens_per|resource[_ ]exhausted", re.IGNORECASE)
_BUSY = re.compile(r"overload|over capacity|unavailable|insufficient_system_resource", re.IGNORECASE)
_AUTH = re.compile(r"authentication|invalid[_ ](x-)?api[_ -]?key|permission_error|unauthorized", re.IGNORECASE)
_REFUSED = re.compile(r"invalid_request|bad[_ ]request|not_found_error", re.IGNORECASE)
_SECRET = re.compile(
    r"(bearer\s+)\S+|\b(sk|pk|key|xai|gsk|AIza)[-_][\w*.…-]{6,}|\bAIza\w{10,}|\b[\w-]{40,}", re.IGNORECASE
)
_WAIT = re.compile(r"(?:try again in|retry in|retryDelay\W+)\s*(\d{1,5}(?:\.\d+)?)\s*(ms|s)", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What a server said, before anybody knows what it means."""

    provider: str
    """Name of the provider's table."""
    status: int | None
    """HTTP status, or what an error inside a stream gives as its code; None when it gives none."""
    words: str
    """All that may tell the kind: message, type, code. Not for the log as it is."""
    message: str
    """The server's sentence."""
    retry_after: float | None = None
    """Seconds that the server asks us to wait."""
    secret: str = ""
    """The key, which must not come back out of our mouth."""

    def told(self) -> str:
        """Return the server's sentence for our log: one line, cut, without tags and keys."""
        text = self.message.replace(self.secret, "***") if self.secret else self.message
        text = " ".join(_SECRET.sub("***", _TAG.sub(" ", text)).split())
        return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"


def from_response(
    provider: str, status: int, headers: Mapping[str, str], body: bytes, *, now: datetime, secret: str = ""
) -> ProviderError:
    """Translate an HTTP answer that is not a success.

    Args:
        provider: Name of the provider's table.
        status: The HTTP status.
        headers: With lower-case names, or a mapping that ignores case.
        body: What was read of the body.
        now: The time in UTC, for a `Retry-After` that is a date and comes without a `Date`.
        secret: The key, so that it can be taken out of the text.
    """
    try:
        payload: object = json.loads(body)
    except (ValueError, RecursionError):
        payload = body.decode("utf-8", "replace")
    message, words, _ = describe(payload)
    wait = retry_after(headers, now)
    if wait is None:
        wait = _wait_in(words)
    return translate(
        Refusal(provider=provider, status=status, words=words, message=message, retry_after=wait, secret=secret)
    )


def from_stream(provider: str, payload: object, *, secret: str = "") -> ProviderError:
    """Translate an error that came inside a stream which began as a success.

    Args:
        provider: Name of the provider's table.
        payload: The JSON value that tells of the error, in whatever shape.
        secret: The key, so that it can be taken out of the text.
    """
    message, words, status = describe(payload)
    return translate(
        Refusal(
            provider=provider,
            status=status,
            words=words,
            message=message,
            retry_after=_wait_in(words),
            secret=secret,
        )
    )


def translate(refusal: Refusal) -> ProviderError:
    """Find the error for a refusal: first by words that mean one thing whatever the status, then by status."""
    status = refusal.status
    for applies, make in _RULES:
        if applies(refusal):
            return make(refusal)
    if status is None:
        return _error(refusal, "server_error", retryable=not _REFUSED.search(refusal.words))
    retryable = status >= _SERVER_FAULT or status in _RETRYABLE
    code = "server_error" if status >= _SERVER_FAULT else _CODES.get(status, "bad_request")
    return _error(refusal, code, retryable=retryable)


def describe(payload: object) -> tuple[str, str, int | None]:
    """Read an error in any of the shapes servers use: returns its sentence, its words, and its status if it has one."""
    if isinstance(payload, list) and payload:
        payload = payload[0]
    if not isinstance(payload, dict):
        return str(payload), str(payload), None
    error = payload.get("error") or payload.get("detail") or payload
    if not isinstance(error, dict):
        text = error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)
        return text, text, _status(payload)
    message = error.get("message") or error.get("msg") or payload.get("message") or ""
    kinds = [str(value) for key in ("type", "code", "status") if (value := error.get(key)) is not None]
    inner = error.get("metadata") or error.get("innererror") or error.get("details")
    hints = json.dumps(inner, ensure_ascii=False) if inner else ""
    return str(message), " ".join([str(message), *kinds, hints]), _status(error)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Read how many seconds to wait (RFC 9110, section 10.2.3: a number, or a date); None for neither.

    A date counts from the server's own `Date`, as its clock need not be ours.
    """
    if milliseconds := _number(headers.get("retry-after-ms", "")):
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    seconds = _number(value)
    if seconds is not None:
        return seconds
    until, since = _date(value), _date(headers.get("date", "")) or now
    return max(0.0, (until - since).total_seconds()) if until else None


def broken(provider: str, what: str) -> ProviderError:
    """Make the error for an answer that ended before its protocol's end."""
    return ProviderError(f"{provider}: the answer broke off ({what})", code="stream_broken", retryable=True)


def malformed(provider: str, what: str) -> ProviderError:
    """Make the error for an answer that is not what the protocol says."""
    return ProviderError(f"{provider}: not an answer of a model API: {what}", code="malformed", retryable=True)


def _error(refusal: Refusal, code: str, *, retryable: bool) -> ProviderError:
    return ProviderError(
        _told(refusal), code=code, status=refusal.status, retryable=retryable, retry_after=refusal.retry_after
    )


def _told(refusal: Refusal) -> str:
    status = f" (HTTP {refusal.status})" if refusal.status else ""
    return f"{refusal.provider}: {refusal.told() or 'the server gave no reason'}{status}"


def _quota(refusal: Refusal) -> ProviderError:
    return RateLimitError(_told(refusal), code="quota", status=refusal.status, retryable=False)


def _rate_limited(refusal: Refusal) -> ProviderError:
    return RateLimitError(
        _told(refusal),
        code="rate_limited",
        status=refusal.status,
        retryable=True,
        retry_after=refusal.retry_after,
    )


def _credentials(refusal: Refusal) -> ProviderError:
    # With 401 the server's sentence is left out: it says nothing but likes to repeat the key. With 403 it is needed:
    # the key may be good and only the model, the region or the network be forbidden.
    reason = f" ({refusal.told()})" if refusal.status == 403 and refusal.told() else ""
    return CredentialError(
        f"{refusal.provider}: the server refuses the key{reason}; check [providers.{refusal.provider}] api_key",
        code="auth",
        status=refusal.status,
    )


def _overflow(refusal: Refusal) -> ProviderError:
    return ContextOverflowError(_told(refusal), code="context_overflow", status=refusal.status)


def _body_too_large(refusal: Refusal) -> ProviderError:
    return BodyTooLargeError(_told(refusal), code="body_too_large", status=refusal.status)


def _picture_rejected(refusal: Refusal) -> ProviderError:
    return PictureRejectedError(_told(refusal), code="picture_rejected", status=refusal.status)


def _history(refusal: Refusal) -> ProviderError:
    return HistoryRejectedError(_told(refusal), code="history_rejected", status=refusal.status)


def _filtered(refusal: Refusal) -> ProviderError:
    return _error(refusal, "filtered", retryable=False)


def _badly_written(refusal: Refusal) -> ProviderError:
    return _error(refusal, "server_error", retryable=True)


def _overloaded(refusal: Refusal) -> ProviderError:
    return _error(refusal, "overloaded", retryable=True)


def _is_quota(refusal: Refusal) -> bool:
    if refusal.status == 402:
        return True
    if refusal.status is not None and not 400 <= refusal.status < _SERVER_FAULT:
        return False
    return bool(_QUOTA.search(refusal.words)) and not _REFILLS.search(refusal.words)


def _is_body_too_large(refusal: Refusal) -> bool:
    return refusal.status == 413 or (refusal.status in {None, 400, 422} and bool(_BODY.search(refusal.words)))


def _is_overflow(refusal: Refusal) -> bool:
    if refusal.status == 413:
        # Groq answers so when a single request has more tokens than its account may use in a minute.
        return "token" in refusal.words.lower()
    # Some servers answer 500 to a prompt that is too long; a 429 with the same words is about tokens a minute.
    return refusal.status not in {401, 403, 429} and bool(_OVERFLOW.search(refusal.words))


def _by(statuses: frozenset[int], words: re.Pattern[str] | None) -> Callable[[Refusal], bool]:
    """Make a rule: one of these statuses, or no status at all and these words."""

    def applies(refusal: Refusal) -> bool:
        if refusal.status is None:
            return words is not None and bool(words.search(refusal.words))
        return refusal.status in statuses

    return applies


def _both(statuses: frozenset[int], words: re.Pattern[str]) -> Callable[[Refusal], bool]:
    """Make a rule: one of these statuses (or none at all), and these words."""

    def applies(refusal: Refusal) -> bool:
        return (refusal.status is None or refusal.status in statuses) and bool(words.search(refusal.words))

    return applies


_RULES: tuple[tuple[Callable[[Refusal], bool], Callable[[Refusal], ProviderError]], ...] = (
    (_by(frozenset({401, 403}), _AUTH), _credentials),
    (_is_quota, _quota),
    (_is_overflow, _overflow),
    (_is_body_too_large, _body_too_large),
    (_both(frozenset({400, 422}), _FILTER), _filtered),
    # A router that finds no model for a picture answers 404, a local server whose model has no eyes 500.
    (_both(frozenset({400, 404, 415, 422, 500}), _PICTURE), _picture_rejected),
    (_by(frozenset({429}), _RATE), _rate_limited),
    (_by(_OVERLOADED, _BUSY), _overloaded),
    (_both(frozenset({400}), _GENERATION), _badly_written),
    (_both(frozenset({400, 422}), _HISTORY), _history),
)


def _status(error: Mapping[str, object]) -> int | None:
    for key in ("code", "status", "status_code"):
        value = error.get(key)
        if isinstance(value, str) and value.isdecimal():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
            return value
    return None


def _wait_in(words: str) -> float | None:
    """Return the seconds that a server asks for in its own words."""
    said = _WAIT.search(words)
    return float(said[1]) / (1000 if said[2] == "ms" else 1) if said else None


def _number(text: str) -> float | None:
    # `isdecimal` keeps out what float() also takes: "nan", "inf", "1e9".
    return float(text) if text.replace(".", "", 1).isascii() and text.replace(".", "", 1).isdecimal() else None


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
