"""Attachments in: found out where they lie, and read from Slack alone, because the token goes along."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit

import httpx

from channels._wire.download import bounded, check_size, download, lost
from channels.slack.content import FILE_ID
from channels.slack.web import LinkError, Web, WebError
from zerobot.core.envelope import Attachment
from zerobot.core.errors import DeliveryError, GoneError, RefusedError, TryLaterError

_SLACK = "Slack"


class Files:
    """Fetches attachments.

    Args:
        web: Says where a file lies, and has the token by which it is read.
        http: The client for the download.
        api_base: The address of the Web API: a server of one's own keeps its files itself.
    """

    def __init__(self, web: Web, http: Callable[[], httpx.AsyncClient], api_base: str) -> None:
        self._web = web
        self._http = http
        self._home = urlsplit(api_base).hostname or ""

    async def fetch(self, attachment: Attachment, limit: int) -> AsyncIterator[bytes]:
        """Begin to read a file.

        Args:
            attachment: From an envelope of ours.
            limit: Bytes.

        Raises:
            RefusedError: It is larger than the limit, or lies outside of Slack.
            GoneError: It cannot be had any more.
            TryLaterError: A passing fault.
        """
        check_size(attachment, limit)
        address = attachment.ref
        if address.startswith(FILE_ID):
            address = await self._address(attachment)
        if not self._is_ours(address):
            raise lost(attachment, _SLACK, RefusedError("download: the file lies outside of Slack"))

        def objection(answer: httpx.Response) -> DeliveryError | None:
            if "text/html" in answer.headers.get("content-type", "") and "html" not in attachment.mime:
                # Without the right to read files Slack shows its page for logging in.
                return RefusedError("download: the app lacks the scope files:read")
            return None

        headers = dict(self._web.authorization)
        pieces = download(self._http(), address, attachment, _SLACK, headers=headers, objection=objection)
        return bounded(pieces, attachment, limit)

    async def _address(self, attachment: Attachment) -> str:
        """Where a file lies that another workspace has shared."""
        try:
            found = await self._web.call("files.info", file=attachment.ref.removeprefix(FILE_ID))
        except WebError as error:
            raise lost(attachment, _SLACK, GoneError(f"files.info: {error}")) from error
        except LinkError as error:
            raise lost(attachment, _SLACK, TryLaterError(f"files.info: {error}")) from error
        file = found.get("file") or {}
        return str(file.get("url_private_download") or file.get("url_private") or "")

    def _is_ours(self, address: str) -> bool:
        try:
            parts = urlsplit(address)
        except ValueError:
            return False
        host = parts.hostname or ""
        is_slack = host == "slack.com" or host.endswith((".slack.com", ".slack-files.com"))
        return host == self._home or (is_slack and parts.scheme == "https")
