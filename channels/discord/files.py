"""Attachments in: read in pieces from Discord's own file server, never more than allowed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import httpx

from channels._wire.download import bounded, check_size, download
from zerobot.core.envelope import Attachment


class Files:
    """Fetches attachments. An address is good for a day.

    https://discord.com/developers/docs/reference#signed-attachment-cdn-urls

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
        check_size(attachment, limit)
        return bounded(download(self._http(), attachment.ref, attachment, "Discord"), attachment, limit)
