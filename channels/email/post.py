"""Sending: what delivery hands over becomes a letter and goes to the server, a copy into the folder of sent mail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

from channels.email.buttons import body, subject
from channels.email.correspondence import Thread
from channels.email.decode import PLATFORM
from channels.email.imap.errors import ImapError
from channels.email.imap.mailbox import Imap
from channels.email.letterbook import Letterbook
from channels.email.outgoing import letter_of
from channels.email.own_ids import own_id
from channels.email.sent import SentCopies
from channels.email.settings import EmailSettings
from channels.email.smtp.sender import SmtpSender
from channels.email.writing.compose import AddressError, pack
from channels.email.writing.letter import Enclosure, Letter
from zerobot.core.approvals import ApprovalPrompt
from zerobot.core.channel import OutboundMessage, SentMessage
from zerobot.core.clock import Clock
from zerobot.core.errors import CannotTellError, ChannelFaultError, RefusedError, TryLaterError
from zerobot.core.places import Identity, Place

LOOKS = 3
"""Looks into the folder of sent mail for one whose sending broke off; a server may take its time to put it there."""
BETWEEN_LOOKS = 20.0

OpenSent = Callable[[], AbstractAsyncContextManager[tuple[Imap, str]]]
"""Opens the mailbox, and names its folder of sent mail."""


class Post:
    """Sends letters.

    Args:
        settings: The channel's table.
        letterbook: Knows the threads.
        smtp: Takes mails to the server.
        copies: Keeps copies, where that is wanted.
        sent: Opens the folder of sent mail.
        clock: Dates mails.
    """

    def __init__(
        self,
        settings: EmailSettings,
        letterbook: Letterbook,
        smtp: SmtpSender,
        copies: SentCopies,
        sent: OpenSent,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._letterbook = letterbook
        self._smtp = smtp
        self._copies = copies
        self._sent = sent
        self._clock = clock

    async def send(self, message: OutboundMessage) -> SentMessage:
        """Send one message as one mail; see `Channel`."""
        files: tuple[Enclosure, ...] = ()
        if message.file is not None:
            path = Path(message.file.path)
            try:
                data = await asyncio.to_thread(path.read_bytes)
            except OSError as error:
                raise RefusedError(f"the file cannot be read: {error}") from error
            files = (Enclosure(name=message.file.name, mime=message.file.mime, data=data),)
        thread = await self._thread(message.place)
        return await self._go(message, letter_of(message, thread, self._settings, self._clock.now(), files=files))

    async def ask(self, place: Place, prompt: ApprovalPrompt, key: str) -> SentMessage:
        """Send a request; see `AsksApproval`. Who is no operator does not get it, whoever else is in the thread."""
        message = OutboundMessage(place=place, body=body(prompt), key=key)
        files: tuple[Enclosure, ...] = ()
        if prompt.attachment is not None:
            data = prompt.attachment.encode("utf-8", "replace")
            files = (Enclosure(name=f"request-{prompt.code}.txt", mime="text/plain", data=data),)
        letter = letter_of(
            message,
            await self._thread(place),
            self._settings,
            self._clock.now(),
            subject=subject(prompt),
            readers=_readers(prompt),
            files=files,
        )
        return await self._go(message, letter)

    async def settle(self, sent: SentMessage, prompt: ApprovalPrompt) -> None:
        """Tell what was decided, in a mail behind the request; whoever decided it by mail has been told."""
        message = OutboundMessage(place=sent.place, body=body(prompt), key=f"{sent.id} settled", reply_to=sent.id)
        letter = letter_of(
            message,
            await self._thread(sent.place),
            self._settings,
            self._clock.now(),
            subject=subject(prompt),
            readers=_readers(prompt),
        )
        readers = [box for box in (letter.to, *letter.cc) if Identity(PLATFORM, box.address) != prompt.decided_by]
        if readers:
            await self._go(message, replace(letter, to=readers[0], cc=tuple(readers[1:])))

    async def find(self, message: OutboundMessage) -> SentMessage | None:
        """Look for a mail whose sending ended unclear; see `SettlesUnclear`.

        Raises:
            CannotTellError: Nobody but the server knows, and it keeps no copies.
            TryLaterError: The mailbox could not be asked.
        """
        if self._settings.sent_copy != "server":
            raise CannotTellError("the server keeps no copies of what it has taken")
        ident = own_id(message.key, self._settings.address, message.place.thread or "")
        for left in reversed(range(LOOKS)):
            try:
                async with self._sent() as (mailbox, folder):
                    if await mailbox.find(ident, folder) is not None:
                        return SentMessage(message.place, ident)
            except (ImapError, ChannelFaultError) as error:
                raise TryLaterError(f"the folder of sent mail could not be asked: {error}") from error
            if left:
                await self._clock.sleep(BETWEEN_LOOKS)
        return None

    async def _thread(self, place: Place) -> Thread | None:
        return await self._letterbook.known(place.thread) if place.thread else None

    async def _go(self, message: OutboundMessage, letter: Letter) -> SentMessage:
        try:
            parcel = await asyncio.to_thread(pack, letter)
        except AddressError as error:
            raise RefusedError(f"no mail can be addressed like this: {error}") from error
        await self._smtp.send(parcel)
        if self._settings.sent_copy == "append":
            self._copies.add(parcel.message_id, parcel.raw)
        return SentMessage(message.place, parcel.message_id)


def _readers(prompt: ApprovalPrompt) -> tuple[str, ...]:
    return tuple(operator.id for operator in prompt.operators if operator.platform == PLATFORM)
