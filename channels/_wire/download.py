"""Attachments in: read in pieces, and never more than allowed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

import httpx

from zerobot.core.envelope import Attachment
from zerobot.core.errors import DeliveryError, GoneError, RefusedError, TryLaterError

PIECE = 64 * 1024
"""Bytes."""
_SECONDS_BETWEEN_PIECES = 30.0
# Addresses that are signed or hold a token are forbidden once their time is over.
_GONE = frozenset({403, 404, 410})


def check_size(attachment: Attachment, limit: int) -> None:
    """Look at the size that the platform has told, if it has.

    Raises:
        RefusedError: It is more than `limit` (bytes).
    """
    if attachment.size is not None and attachment.size > limit:
        raise too_large(attachment, limit)


def too_large(attachment: Attachment, limit: int | None) -> RefusedError:
    """Say that a file is too large.

    Args:
        attachment: The file.
        limit: Bytes that are allowed here; None when it is the platform that refused.
    """
    size = f" ({attachment.size / 1e6:.1f} MB)" if attachment.size is not None else ""
    most = "bots may fetch" if limit is None else f"the {limit / 1e6:.1f} MB that are allowed"
    error = RefusedError(f"attachment of {attachment.size} bytes: more than {most if limit is None else limit}")
    error.user_text = f"The file {attachment.name!r}{size} is too large: more than {most}."
    return error


def lost(attachment: Attachment, platform: str, error: DeliveryError) -> DeliveryError:
    """Say in an error that a file could not be fetched.

    Args:
        attachment: The file.
        platform: Its name, for people.
        error: What has happened.
    """
    error.user_text = f"The file {attachment.name!r} could not be fetched from {platform}. Please send it again."
    return error


async def download(
    http: httpx.AsyncClient,
    address: str,
    attachment: Attachment,
    platform: str,
    *,
    headers: Mapping[str, str] | None = None,
    objection: Callable[[httpx.Response], DeliveryError | None] | None = None,
) -> AsyncGenerator[bytes, None]:
    """Read what lies at an address. It may hold a token, so no error tells it.

    Args:
        http: The client.
        address: Where.
        attachment: The file that lies there.
        platform: Its name, for people.
        headers: To be sent along.
        objection: Says what is wrong with an answer that looks like a success.

    Raises:
        GoneError: It cannot be had any more.
        TryLaterError: A passing fault.
        DeliveryError: The objection.
    """
    try:
        async with http.stream("GET", address, headers=headers, timeout=_SECONDS_BETWEEN_PIECES) as answer:
            if answer.status_code in _GONE:
                raise lost(attachment, platform, GoneError(f"download: status {answer.status_code}"))
            if not answer.is_success:
                raise lost(attachment, platform, TryLaterError(f"download: status {answer.status_code}"))
            refusal = objection(answer) if objection else None
            if refusal is not None:
                raise lost(attachment, platform, refusal)
            async for piece in answer.aiter_bytes(PIECE):
                yield piece
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise lost(attachment, platform, TryLaterError(f"download: {type(error).__name__}")) from None


async def bounded(pieces: AsyncGenerator[bytes, None], attachment: Attachment, limit: int) -> AsyncIterator[bytes]:
    """Pass the pieces on, but not beyond the limit (bytes), whatever the sizes said before.

    Raises:
        RefusedError: There are more.
    """
    total = 0
    async with contextlib.aclosing(pieces) as source:
        async for piece in source:
            total += len(piece)
            if total > limit:
                raise too_large(attachment, limit)
            yield piece
