"""The files of a mail: got from the mailbox again when they are wanted, over a connection of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from channels.email.decode import EARLIER
from channels.email.imap.errors import ImapError, ImapNoError
from channels.email.imap.mailbox import Imap
from channels.email.reading.mime import part_bytes, read_mail
from channels.email.said.words import spoken
from channels.email.settings import EmailSettings
from channels.email.whereabouts import FileRef, read_ref
from zerobot.core.envelope import Attachment
from zerobot.core.errors import GoneError, RefusedError, TryLaterError

PIECE = 65_536
"""Bytes that are handed on at once."""


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
        ref = read_ref(attachment.ref)
        try:
            raw = await self._mail(ref)
        except ImapError as error:
            raise TryLaterError(f"the mailbox could not be asked: {error}") from error
        if raw is None:
            raise GoneError("the mail is not in the mailbox any more")
        data = await asyncio.to_thread(_part, raw, ref.path, limit)
        if data is None:
            raise RefusedError("the mail has no such file that is small enough")
        return _pieces(data)

    async def _mail(self, ref: FileRef) -> bytes | None:
        """The mail, from where it lay, or where it was moved to; None: it is in neither folder."""
        where, limit = ref.mail, self._settings.most_of_a_mail
        imap = await self._connect()
        try:
            folder = await imap.select(where.folder)
            if folder.validity == where.validity and (found := await imap.fetch(where.uid, limit)) is not None:
                return found.raw
            for name in (where.folder, self._settings.processed_folder):
                uid = await _find(imap, ref.message_id, name) if name and ref.message_id else None
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


def _part(raw: bytes, path: str, limit: int) -> bytes | None:
    if path == EARLIER:
        mail = read_mail(raw)
        return spoken(mail.bodies, subject=mail.subject).removed.encode("utf-8", "replace")[:limit]
    return part_bytes(raw, path, limit)


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]
