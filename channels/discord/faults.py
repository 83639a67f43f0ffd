"""What Discord's refusals mean to the one who sends; pure.

Codes: https://discord.com/developers/docs/topics/opcodes-and-status-codes#json
"""

from __future__ import annotations

from channels.discord.rest import LinkError, RestError
from zerobot.core.errors import (
    DeliveryError,
    GoneError,
    RefusedError,
    TryLaterError,
    UnclearError,
    UnreachableError,
)

UNKNOWN_MESSAGE = 10008
TOO_LARGE = 40005
_GONE = frozenset({UNKNOWN_MESSAGE, 10015, 10062})
"""Unknown message, webhook, interaction."""
_CLOSED = frozenset({10003, 10004, 10013, 50001, 50007, 50008, 50013, 50278, 160005})
"""Unknown channel, guild or user; no access, no direct messages, no text channel, no permission, a locked thread."""
_LATER = frozenset({20016, 20022, 20028, 40003})
"""Limits that do not always come as 429: slow mode, writes of a channel, direct messages opened too fast."""


def is_too_large(error: BaseException | None) -> bool:
    """Whether a message was refused for the size of its file."""
    return isinstance(error, RestError) and (error.code == TOO_LARGE or error.status == 413)


def as_delivery_error(error: RestError | LinkError, call: str) -> DeliveryError:
    """Say what a failed call means for its sender.

    After 5xx nobody knows what became of a request: it is repeated with the same nonce, which Discord takes once.

    Args:
        error: What our REST client raised.
        call: What was tried, for the log.
    """
    text = f"{call}: {error}"
    if isinstance(error, LinkError):
        return TryLaterError(text) if error.never_sent else UnclearError(text)
    if error.status == 429 or error.code in _LATER:
        return TryLaterError(text, retry_after=error.retry_after, whole_bot=error.whole_bot)
    return _kind(error)(text)


def _kind(
    error: RestError,
) -> type[GoneError | UnreachableError | RefusedError | TryLaterError | UnclearError]:
    if error.status >= 500:
        return UnclearError
    if error.status == 401:
        # The gateway meets the same answer and parks the channel; what is queued waits for a good token.
        return TryLaterError
    if error.code in _GONE:
        return GoneError
    return UnreachableError if error.code in _CLOSED or (error.status == 403 and not error.code) else RefusedError
