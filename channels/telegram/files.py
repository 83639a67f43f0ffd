"""Attachments in: asked for with getFile, then read in pieces, never more than allowed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path

import httpx
from telegram import Bot
from telegram.error import TelegramError

from channels.telegram.faults import as_delivery_error, is_too_big
from zerobot.core.envelope import Attachment
from zerobot.core.errors import DeliveryError, GoneError, RefusedError, TryLaterError

_PIECE = 64 * 1024
_SECONDS_BETWEEN_PIECES = 30.0
_NOT_FOUND = frozenset({404, 410})


def too_large(attachment: Attachment, limit: int | None) -> RefusedError:
    """Say that a file is too large.

    Args:
        attachment: The file.
        limit: Bytes that are allowed here; None when it is Telegram that refused.
    """
    size = f" ({attachment.size / 1e6:.1f} MB)" if attachment.size is not None else ""
    allowed = (
        f"more than the {limit / 1e6:.1f} MB that are allowed" if limit is not None else "more than bots may fetch"
    )
    error = RefusedError(f"attachment of {attachment.size} bytes: {allowed}")
    error.user_text = f"The file {attachment.name!r}{size} is too large: {allowed}."
    return error


def _lost(attachment: Attachment, error: DeliveryError) -> DeliveryError:
    error.user_text = f"The file {attachment.name!r} could not be fetched from Telegram. Please send it again."
    return error


class Files:
    """Fetches attachments by way of the bot's `getFile`."""

    def __init__(self, bot: Bot, http: Callable[[], httpx.AsyncClient], *, local_server: bool) -> None:
        """Take what fetching needs.

        Args:
            bot: Asked where a file is.
            http: The client for the download.
            local_server: Whether the Bot API server is one's own: started with `--local`, such a server names files
                by their path on the disk that it shares with us.
        """
        self._bot = bot
        self._http = http
        self._local_server = local_server

    async def fetch(self, attachment: Attachment, limit: int) -> AsyncIterator[bytes]:
        """Find a file and begin to read it.

        Args:
            attachment: From an envelope of ours.
            limit: Bytes.

        Raises:
            RefusedError: It is larger than the limit, or than Telegram lets bots fetch.
            GoneError: It cannot be had any more.
            TryLaterError: A passing fault.
        """
        if attachment.size is not None and attachment.size > limit:
            raise too_large(attachment, limit)
        try:
            found = await self._bot.get_file(attachment.ref)
        except TelegramError as error:
            if is_too_big(error):
                raise too_large(attachment, None) from error
            failure = as_delivery_error(error, "getFile")
            raise _lost(
                attachment, GoneError(str(failure)) if isinstance(failure, RefusedError) else failure
            ) from error
        where = found.file_path
        if where is None:
            raise _lost(attachment, GoneError("getFile: no path"))
        if self._local_server and not where.startswith(("http://", "https://")):
            return _bounded(_read(Path(where), attachment), attachment, limit)
        return _bounded(self._download(where, attachment), attachment, limit)

    async def _download(self, address: str, attachment: Attachment) -> AsyncGenerator[bytes, None]:
        # The address holds the token: no error text may carry it.
        try:
            async with self._http().stream("GET", address, timeout=_SECONDS_BETWEEN_PIECES) as answer:
                if answer.status_code in _NOT_FOUND:
                    raise _lost(attachment, GoneError(f"download: status {answer.status_code}"))
                if not answer.is_success:
                    raise _lost(attachment, TryLaterError(f"download: status {answer.status_code}"))
                async for piece in answer.aiter_bytes(_PIECE):
                    yield piece
        except httpx.HTTPError as error:
            raise _lost(attachment, TryLaterError(f"download: {type(error).__name__}")) from None


async def _read(path: Path, attachment: Attachment) -> AsyncGenerator[bytes, None]:
    """Read a file that the Bot API server has put on our own disk."""
    try:
        with await asyncio.to_thread(path.open, "rb") as handle:
            while piece := await asyncio.to_thread(handle.read, _PIECE):
                yield piece
    except OSError as error:
        raise _lost(attachment, GoneError(f"the Bot API server's file: {error.strerror}")) from error


async def _bounded(pieces: AsyncGenerator[bytes, None], attachment: Attachment, limit: int) -> AsyncIterator[bytes]:
    """Pass the pieces on, but no byte over the limit, whatever the sizes said before."""
    total = 0
    async with contextlib.aclosing(pieces) as source:
        async for piece in source:
            total += len(piece)
            if total > limit:
                raise too_large(attachment, limit)
            yield piece
