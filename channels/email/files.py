"""The files of a mail: got from the mailbox again when they are wanted, over a connection of their own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from channels.email.decode import EARLIER
from channels.email.imap.errors import ImapError, ImapNoError
from channels.email.imap.mailbox import Imap
from channels.email.reading.mime import part_bytes, read_mail
from channels.email.said.words import spoken
from channels.email.settings import EmailSettings
from zerobot.core.envelope import Attachment
from zerobot.core.errors import GoneError, RefusedError, TryLaterError

ROOM = 2_000_000
ENCODED = 1.4
PIECE = 65_536
"""Bytes that are handed on at once."""


@dataclass(frozen=True, slots=True)
class _Ref:
    """Where a file lies."""

    folder: str
    validity: int
    uid: int
    id: str
    path: str


class Files:
    """Fetches files.

    Args:
        settings: The channel's table.
        connect: Opens the mailbox.
    """

    def __init__(self, settings: EmailSettings, connect: Callable[[], Awaitable[Imap]]) -> None:
        self._settings = settings
        self._connect = connect

    async def fetch(self, attachment: Attachment, limit: int) -> AsyncIterator[bytes]:
        """Fetch an attachment; see `Channel`."""
        ref = _read_ref(attachment.ref)
        try:
            raw = await self._mail(ref, int(self._settings.max_attachment * ENCODED) + ROOM)
        except ImapError as error:
            raise TryLaterError(f"the mailbox could not be asked: {error}") from error
        if raw is None:
            raise GoneError("the mail is not in the mailbox any more")
        data = await asyncio.to_thread(_part, raw, ref.path, limit)
        if data is None:
            raise RefusedError("the mail has no such file that is small enough")
        return _pieces(data)

    async def _mail(self, ref: _Ref, limit: int) -> bytes | None:
        """The mail, from where it lay, or where it was moved to; None: it is in neither folder."""
        imap = await self._connect()
        try:
            folder = await imap.select(ref.folder)
            if folder.validity == ref.validity and (found := await imap.fetch(ref.uid, limit)) is not None:
                return found.raw
            for name in (ref.folder, self._settings.processed_folder):
                uid = await _find(imap, ref.id, name) if name and ref.id else None
                if uid is not None and (found := await imap.fetch(uid, limit)) is not None:
                    return found.raw
            return None
        finally:
            await imap.close()


async def _find(imap: Imap, message_id: str, folder: str) -> int | None:
    try:
        return await imap.find(message_id, folder)
    except ImapNoError:
        return None


def _read_ref(text: str) -> _Ref:
    value = json.loads(text)
    return _Ref(value["folder"], value["validity"], value["uid"], value["id"], value["path"])


def _part(raw: bytes, path: str, limit: int) -> bytes | None:
    if path == EARLIER:
        mail = read_mail(raw)
        return spoken(mail.bodies, subject=mail.subject).removed.encode("utf-8", "replace")[:limit]
    return part_bytes(raw, path, limit)


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]
