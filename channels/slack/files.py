"""Files in, read in pieces and never more than allowed; files out, by the upload of three calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit

import httpx

from channels.slack.content import FILE_ID
from channels.slack.web import LinkError, Web, WebError
from zerobot.core.envelope import Attachment
from zerobot.core.errors import DeliveryError, GoneError, RefusedError, TryLaterError

_PIECE = 64 * 1024
_SECONDS_BETWEEN_PIECES = 30.0
_GONE = frozenset({403, 404, 410})


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
        if attachment.size is not None and attachment.size > limit:
            raise _too_large(attachment, limit)
        address = attachment.ref
        if address.startswith(FILE_ID):
            address = await self._address(attachment)
        if not self._is_ours(address):
            # The token goes along, so it goes nowhere else.
            raise _lost(attachment, RefusedError("download: the file lies outside of Slack"))
        return self._download(address, attachment, limit)

    async def _address(self, attachment: Attachment) -> str:
        """Where a file lies that another workspace has shared."""
        try:
            found = await self._web.call("files.info", file=attachment.ref.removeprefix(FILE_ID))
        except WebError as error:
            raise _lost(attachment, GoneError(f"files.info: {error}")) from error
        except LinkError as error:
            raise _lost(attachment, TryLaterError(f"files.info: {error}")) from error
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

    async def _download(self, address: str, attachment: Attachment, limit: int) -> AsyncIterator[bytes]:
        total = 0
        try:
            async with self._http().stream(
                "GET", address, headers=dict(self._web.authorization), timeout=_SECONDS_BETWEEN_PIECES
            ) as answer:
                if answer.status_code in _GONE:
                    raise _lost(attachment, GoneError(f"download: status {answer.status_code}"))
                if not answer.is_success:
                    raise _lost(attachment, TryLaterError(f"download: status {answer.status_code}"))
                if "text/html" in answer.headers.get("content-type", "") and "html" not in attachment.mime:
                    # Without the right to read files Slack shows its page for logging in.
                    raise _lost(attachment, RefusedError("download: the app lacks the scope files:read"))
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
    error.user_text = f"The file {attachment.name!r} could not be fetched from Slack. Please send it again."
    return error
