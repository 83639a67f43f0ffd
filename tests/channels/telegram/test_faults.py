"""What each way to fail means to the one who sends."""

from __future__ import annotations

import httpx
import pytest
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    TelegramError,
    TimedOut,
)

from channels.telegram.faults import as_delivery_error
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


def because(error: TelegramError, cause: Exception) -> TelegramError:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FloodError(7), TryLaterError),
        (Forbidden("Forbidden: bot was blocked by the user"), UnreachableError),
        (Forbidden("Forbidden: bot was kicked from the supergroup chat"), UnreachableError),
        (BadRequest("Bad Request: chat not found"), UnreachableError),
        (BadRequest("Bad Request: not enough rights to send text messages to the chat"), UnreachableError),
        (BadRequest("Bad Request: message thread not found"), UnreachableError),
        (BadRequest("Bad Request: TOPIC_CLOSED"), UnreachableError),
        (BadRequest("Bad Request: can't parse entities: Unsupported start tag"), RefusedError),
        (BadRequest("Bad Request: message is too long"), RefusedError),
        (BadRequest("Bad Request: MESSAGE_TOO_LONG"), RefusedError),
        (BadRequest("Bad Request: message to edit not found"), GoneError),
        (BadRequest("Bad Request: MESSAGE_ID_INVALID"), GoneError),
        (ChatMigrated(-100123), MovedError),
        (InvalidToken("Unauthorized"), TryLaterError),
        (Conflict("Conflict"), TryLaterError),
        (NetworkError("Internal Server Error"), TryLaterError),
        (GatewayError("gateway answered 502"), UnclearError),
        (TelegramError("Invalid server response"), UnclearError),
        (because(NetworkError("x"), httpx.ConnectError("refused")), TryLaterError),
        (because(TimedOut(), httpx.ConnectTimeout("x")), TryLaterError),
        (because(TimedOut(), httpx.PoolTimeout("x")), TryLaterError),
        (because(TimedOut(), httpx.ReadTimeout("x")), UnclearError),
        (because(TimedOut(), httpx.WriteTimeout("x")), UnclearError),
        (because(NetworkError("x"), httpx.ReadError("x")), UnclearError),
        (because(NetworkError("x"), httpx.WriteError("x")), UnclearError),
        (because(NetworkError("x"), httpx.RemoteProtocolError("x")), UnclearError),
        (because(NetworkError("x"), RuntimeError("x")), UnclearError),
    ],
    ids=str,
)
def test_what_a_failure_means(error: TelegramError, kind: type[DeliveryError]) -> None:
    """What was surely not carried out is tried later; what may have been is unclear; the rest says what to do."""
    assert type(as_delivery_error(error, "sendMessage")) is kind


def test_what_they_carry() -> None:
    """The seconds to wait, and the new chat."""
    later = as_delivery_error(FloodError(7), "sendMessage")
    assert isinstance(later, TryLaterError)
    assert (later.retry_after, later.whole_bot) == (7, False)
    moved = as_delivery_error(ChatMigrated(-100123), "sendMessage")
    assert isinstance(moved, MovedError)
    assert moved.chat == "-100123"


def test_no_address_gets_into_the_text() -> None:
    """The library's words about a broken connection may hold the address, and with it the token."""
    error = because(NetworkError("httpx.InvalidURL: http://x/bot42:SECRET/getMe"), httpx.ReadError("42:SECRET"))
    assert "SECRET" not in str(as_delivery_error(error, "getMe"))
