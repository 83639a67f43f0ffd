"""What Telegram's refusals mean to the one who sends; pure."""

from __future__ import annotations

import httpx
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, NetworkError, TelegramError

from channels.telegram.request import FloodError, GatewayError
from zerobot.core.errors import (
    DeliveryError,
    GoneError,
    MovedError,
    RefusedError,
    TryLaterError,
    UnclearError,
    UnreachableError,
)

# Nothing of the request went out: no connection, or none free in the pool.
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)

# Parts of descriptions, in lower case, as https://github.com/tdlib/telegram-bot-api (Client.cpp) and TDLib word them.
_GONE = (
    "message to edit not found",
    "message_id_invalid",
    "message can't be edited",
    "message to be replied not found",
    "message identifier is not specified",
)
_CLOSED = (
    "chat not found",
    "user not found",
    "peer_id_invalid",
    "have no rights to send",
    "not enough rights",
    "chat_write_forbidden",
    "chat_restricted",
    "chat_send_",
    "need administrator rights",
    "message thread not found",
    "topic_closed",
    "topic_deleted",
    "group chat was deactivated",
    "the group has been migrated",
)
_NOT_MODIFIED = "message is not modified"
_NOTHING_TO_DELETE = ("message to delete not found", "message_id_invalid")
_FILE_TOO_BIG = "file is too big"


def is_same_already(error: BaseException | None) -> bool:
    """Whether an edit was refused because the message is what it should become."""
    return isinstance(error, BadRequest) and _NOT_MODIFIED in error.message.lower()


def is_gone_already(error: BaseException | None) -> bool:
    """Whether a deletion was refused because there is nothing to delete."""
    return isinstance(error, BadRequest) and any(part in error.message.lower() for part in _NOTHING_TO_DELETE)


def is_too_big(error: BaseException | None) -> bool:
    """Whether a file was refused for its size."""
    return isinstance(error, BadRequest) and _FILE_TOO_BIG in error.message.lower()


def as_delivery_error(error: TelegramError, call: str) -> DeliveryError:
    """Say what a failed call means for its sender.

    A broken connection is unclear once a connection stood. Of the answers 5xx, 502 and 504 come from a gateway which
    does not know what became of the request; the others are the Bot API's own, which then has not done it. A 429 does
    not say whether the chat's limit or the bot's was met; it counts for the chat, as the one that is far lower.

    Args:
        error: What the library raised.
        call: The Bot API's method, for the log.
    """
    if isinstance(error, FloodError):
        return TryLaterError(f"{call}: {error.message}", retry_after=error.retry_after)
    if isinstance(error, ChatMigrated):
        return MovedError(f"{call}: the chat has moved", chat=str(error.new_chat_id))
    return _kind(error)(f"{call}: {_words(error)}")


def _words(error: TelegramError) -> str:
    """Telegram's own words; of a broken connection only its kind, since the library's words may hold the address."""
    if isinstance(error, NetworkError) and not isinstance(error, BadRequest) and error.__cause__ is not None:
        return type(error.__cause__).__name__
    return "the token was refused" if isinstance(error, InvalidToken) else error.message


def _kind(error: TelegramError) -> type[RefusedError | GoneError | UnreachableError | TryLaterError | UnclearError]:
    kind: type[RefusedError | GoneError | UnreachableError | TryLaterError | UnclearError]
    match error:
        case Forbidden():
            kind = UnreachableError
        case InvalidToken() | Conflict():
            # The receiving side meets the same answer and parks the channel; what is queued waits for a good token.
            kind = TryLaterError
        case BadRequest():
            kind = _refusal(error.message.lower())
        case GatewayError():
            kind = UnclearError
        case NetworkError():
            kind = TryLaterError if _surely_not_done(error.__cause__) else UnclearError
        case _:
            # An answer of success that cannot be read: it was carried out, but its id is lost.
            kind = UnclearError
    return kind


def _refusal(description: str) -> type[GoneError | UnreachableError | RefusedError]:
    if any(part in description for part in _GONE):
        return GoneError
    return UnreachableError if any(part in description for part in _CLOSED) else RefusedError


def _surely_not_done(cause: BaseException | None) -> bool:
    """Without a cause there was an answer, a 5xx of the Bot API; a cause of the library's is such an answer unread."""
    return cause is None or isinstance(cause, (*_NEVER_SENT, TelegramError))
