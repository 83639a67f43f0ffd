"""What people attach: fetched into the workspace, off the path on which messages are received, and read for models."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import cast

from zerobot.core.channel import Channel
from zerobot.core.envelope import Attachment
from zerobot.core.errors import DeliveryError
from zerobot.core.log import EventLog
from zerobot.core.messages import StoredFile
from zerobot.core.model import Picture
from zerobot.core.picture_type import picture_type
from zerobot.security.bounds import ATTACHMENTS
from zerobot.security.filenames import safe_name, with_counter
from zerobot.security.paths import BadPathError, GuardedFiles, PathRefusedError
from zerobot.store.turn_rows import Turn


class AttachmentFetcher:
    """Fetches attachments.

    Args:
        channels: The open channels by name.
        files: Writes into the workspace, and nowhere else.
        limits: By channel, the bytes that one attachment may have.
        log: Gets a line for what could not be had.
    """

    def __init__(
        self, channels: Mapping[str, Channel], files: GuardedFiles, limits: Mapping[str, int], log: EventLog
    ) -> None:
        self._channels = channels
        self._files = files
        self._limits = limits
        self._log = log

    async def __call__(self, turn: Turn, attachment: Attachment) -> StoredFile | str:
        """Fetch one; a text says, for the model, why it could not be had."""
        name = safe_name(attachment.name)
        limit = self._limits.get(turn.place.channel, 0)
        if attachment.size is not None and attachment.size > limit:
            return _note(name, f"it has {attachment.size} bytes, and at most {limit} are taken")
        try:
            data = await self._read(turn.place.channel, attachment, limit)
            return await asyncio.to_thread(self._keep, f"{ATTACHMENTS}/{turn.id}", name, data, attachment)
        except (DeliveryError, PathRefusedError, BadPathError, OSError, _TooLargeError) as error:
            self._log("attachment.failed", level="warning", error=error, turn=turn.id)
            return _note(name, error.why if isinstance(error, _TooLargeError) else "it could not be fetched")

    async def _read(self, channel: str, attachment: Attachment, limit: int) -> bytes:
        data = bytearray()
        fetched = await self._channels[channel].fetch(attachment, limit)
        async with aclosing(cast("AsyncGenerator[bytes, None]", fetched)) as pieces:
            async for piece in pieces:
                data += piece
                if len(data) > limit:
                    raise _TooLargeError(f"it has more than the {limit} bytes that are taken")
        return bytes(data)

    def _keep(self, folder: str, name: str, data: bytes, attachment: Attachment) -> StoredFile:
        """Write a file beside the others of the same input."""
        target = self._free(folder, name)
        self._files.write_bytes(self._files.canonical(target), data)
        mime = picture_type(data)
        return StoredFile(
            kind=attachment.kind,
            name=name,
            mime=mime or attachment.mime,
            size=len(data),
            path=target,
            digest=hashlib.sha256(data).hexdigest() if mime else "",
        )

    def _free(self, folder: str, name: str) -> str:
        """A path that no other file of the same input has."""
        candidate, number = f"{folder}/{name}", 1
        while self._exists(candidate):
            number += 1
            candidate = f"{folder}/{with_counter(name, number)}"
        return candidate

    def _exists(self, path: str) -> bool:
        try:
            self._files.read_bytes(self._files.canonical(path), 1)
        except FileNotFoundError:
            return False
        return True


class PictureReader:
    """Reads attached pictures back from the workspace, for a model to be shown.

    Tools may write where attachments lie, so only a file with the very bytes that were sent is shown as what somebody
    sent.

    Args:
        files: Reads inside the bounds, and nowhere else.
        log: Gets a line for what cannot be shown.
    """

    def __init__(self, files: GuardedFiles, log: EventLog) -> None:
        self._files = files
        self._log = log

    async def __call__(self, file: StoredFile) -> Picture | None:
        """Read one; None: it is gone, out of bounds, or another file now."""
        try:
            return await asyncio.to_thread(self._read, file)
        except (PathRefusedError, BadPathError, OSError, _ChangedError) as error:
            self._log("attachment.not_shown", error=error, path=file.path)
            return None

    def _read(self, file: StoredFile) -> Picture:
        content = self._files.read_bytes(self._files.canonical(file.path), file.size)
        if not content.complete or hashlib.sha256(content.data).hexdigest() != file.digest:
            raise _ChangedError("it has other bytes than those that were sent")
        return Picture(mime=file.mime, base64=base64.b64encode(content.data).decode("ascii"))


class _ChangedError(Exception):
    """A file is not the one that was sent."""


class _TooLargeError(Exception):
    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def _note(name: str, why: str) -> str:
    return f"[The attached file “{name}” is not available: {why}.]"
