"""Attachments in: read in pieces from Discord's own file server, never more than allowed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import httpx

from zerobot.core.envelope import Attachment
from zerobot.core.errors import DeliveryError, GoneError, RefusedError, TryLaterError

_PIECE = 64 * 1024
_SECONDS_BETWEEN_PIECES = 30.0
# An address is signed and good for a day: https://discord.com/developers/docs/reference#signed-attachment-cdn-urls
_GONE = frozenset({403, 404, 410})


class Files:
    """Fetches attachments.

    Args:
        http: The client for the download.
    """

    def __init__(self, http: Callable[[], httpx.AsyncClient]) -> None:
        self._http = http

    async def fetch(self, attachment: Attachment, limit: int) -> AsyncIterator[bytes]:
        """Begin to read a file.

        Args:
            attachment: From an envelope of ours.
            limit: Bytes.

        Raises:
            RefusedError: It is larger than the limit.
            GoneError: It cannot be had any more.
            TryLaterError: A passing fault.
        """
        if attachment.size is not None and attachment.size > limit:
            raise _too_large(attachment, limit)
        return self._download(attachment, limit)

    async def _download(self, attachment: Attachment, limit: int) -> AsyncIterator[bytes]:
        total = 0
        try:
            async with self._http().stream("GET", attachment.ref, timeout=_SECONDS_BETWEEN_PIECES) as answer:
                if answer.status_code in _GONE:
                    raise _lost(attachment, GoneError(f"download: status {answer.status_code}"))
                if not answer.is_success:
                    raise _lost(attachment, TryLaterError(f"download: status {answer.status_code}"))
                async for piece in answer.aiter_bytes(_PIECE):
                    total += len(piece)
                    if total > limit:
                        raise _too_large(attachment, limit)
                    yield piece
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _lost(attachment, TryLaterError(f"download: {type(error).__name__}")) from None


def _too_large(attachment: Attachment, limit: int) -> RefusedError:
    error = RefusedError(f"attachment of {attachment.size} bytes: more than {limit}")
    error.user_text = f"The file {attachment.name!r} is larger than the {limit / 1e6:.1f} MB that are allowed."
    return error


def _lost(attachment: Attachment, error: DeliveryError) -> DeliveryError:
    error.user_text = f"The file {attachment.name!r} could not be fetched from Discord. Please send it again."
    return error
