"""Attachments in: asked for with getFile, then read in pieces, never more than allowed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path

import httpx
from telegram import Bot
from telegram.error import TelegramError

from channels._wire.download import PIECE, bounded, check_size, download, lost, too_large
from channels.telegram.faults import as_delivery_error, is_too_big
from zerobot.core.envelope import Attachment
from zerobot.core.errors import GoneError, RefusedError

_TELEGRAM = "Telegram"


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
        check_size(attachment, limit)
        try:
            found = await self._bot.get_file(attachment.ref)
        except TelegramError as error:
            if is_too_big(error):
                raise too_large(attachment, None) from error
            failure = as_delivery_error(error, "getFile")
            raise lost(
                attachment, _TELEGRAM, GoneError(str(failure)) if isinstance(failure, RefusedError) else failure
            ) from error
        where = found.file_path
        if where is None:
            raise lost(attachment, _TELEGRAM, GoneError("getFile: no path"))
        if self._local_server and not where.startswith(("http://", "https://")):
            return bounded(_read(Path(where), attachment), attachment, limit)
        return bounded(download(self._http(), where, attachment, _TELEGRAM), attachment, limit)


async def _read(path: Path, attachment: Attachment) -> AsyncGenerator[bytes, None]:
    """Read a file that the Bot API server has put on our own disk."""
    try:
        with await asyncio.to_thread(path.open, "rb") as handle:
            while piece := await asyncio.to_thread(handle.read, PIECE):
                yield piece
    except OSError as error:
        raise lost(attachment, _TELEGRAM, GoneError(f"the Bot API server's file: {error.strerror}")) from error
