"""A mailbox as a channel: composition and life cycle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from channels._wire.tasks import with_side_work
from channels.email.account import Account
from channels.email.decode import PLATFORM
from channels.email.files import Files
from channels.email.letterbook import Letterbook
from channels.email.post import Post
from channels.email.proof.authenticity import SignatureCheck, SignatureFinding
from channels.email.receive import Receiver, ReceiverParts
from channels.email.refusals import Refusals
from channels.email.render import mark_repeat, plain, render
from channels.email.sent import SentCopies
from channels.email.settings import EmailSettings
from channels.email.smtp.sender import SmtpSender
from zerobot.core.approvals import ApprovalPrompt
from zerobot.core.channel import (
    AnswersProbe,
    AsksApproval,
    Channel,
    ChannelServices,
    Intake,
    MessageBody,
    OutboundMessage,
    SentMessage,
    SettlesUnclear,
)
from zerobot.core.envelope import Attachment
from zerobot.core.places import Identity, Place


class EmailChannel:
    """One mailbox."""

    def __init__(self, settings: EmailSettings, services: ChannelServices, check: SignatureCheck) -> None:
        """Put the parts together; nothing connects before `run`, `send` or `fetch`.

        Args:
            settings: The channel's table.
            services: What the daemon lends.
            check: Checks signatures, where that is how senders are proved.
        """
        self._name = services.name
        self._intake: Intake | None = None
        account = Account(settings, services)
        letterbook = Letterbook(services.state, services.clock, settings.own_addresses, settings.answers_per_hour)
        self._smtp = SmtpSender(account.outgoing(), self._tell, services.clock)
        self._copies = SentCopies(account.sent, services.clock, services.log)
        self._post = Post(settings, letterbook, self._smtp, self._copies, account.sent, services.clock)
        self._files = Files(settings, account.mailbox)
        self._receiver = Receiver(
            ReceiverParts(
                settings=settings,
                services=services,
                connect=account.mailbox,
                letterbook=letterbook,
                refusals=Refusals(services),
                check=check,
            )
        )

    async def run(self, intake: Intake) -> None:
        """Receive until cancelled; see `Channel`."""
        self._intake = intake
        await with_side_work(lambda group: self._run(group, intake))

    async def _run(self, group: asyncio.TaskGroup, intake: Intake) -> None:
        copying = group.create_task(self._copies.run(), name=f"sent copies of {self._name}")
        try:
            await self._receiver.run(intake)
        finally:
            copying.cancel()

    def render(self, markdown: str) -> Sequence[MessageBody]:
        """Bring our Markdown into one mail; see `Channel`."""
        return render(markdown)

    def plain(self, body: MessageBody) -> MessageBody:
        """The same text without HTML."""
        return plain(body)

    def mark_repeat(self, body: MessageBody) -> MessageBody:
        """The same mail behind a mark; see `Channel`."""
        return mark_repeat(body)

    async def send(self, message: OutboundMessage) -> SentMessage:
        """Send one mail; see `Channel`."""
        return await self._post.send(message)

    async def find(self, message: OutboundMessage) -> SentMessage | None:
        """Look for a mail whose sending ended unclear; see `SettlesUnclear`."""
        return await self._post.find(message)

    async def ask(self, place: Place, prompt: ApprovalPrompt, key: str) -> SentMessage:
        """Send an approval request; see `AsksApproval`."""
        return await self._post.ask(place, prompt, key)

    async def settle(self, sent: SentMessage, prompt: ApprovalPrompt) -> None:
        """Tell by a further mail what was decided: one that was sent cannot be changed."""
        await self._post.settle(sent, prompt)

    def direct_place(self, operator: Identity) -> Place | None:
        """A person is reached at his address."""
        return Place(self._name, operator.id) if operator.platform == PLATFORM and "@" in operator.id else None

    async def fetch(self, attachment: Attachment, limit: int) -> AsyncIterator[bytes]:
        """Fetch an attachment; see `Channel`."""
        return await self._files.fetch(attachment, limit)

    async def probe(self) -> None:
        """Log in to the server that mails are handed to; see `AnswersProbe`."""
        await self._smtp.probe()

    async def close(self) -> None:
        """Make the copies that are left, and close the connections."""
        await self._copies.close()
        await self._smtp.close()

    async def _tell(self, subject: str, text: str) -> None:
        """Tell the operators of what a server has refused, once a day."""
        if self._intake is not None:
            await self._intake.alarm(subject, text)


def signature_check_of(settings: EmailSettings, services: ChannelServices) -> SignatureCheck:
    """The check of signatures; its libraries are loaded where it is used."""
    if settings.verify_sender == "dkim":
        from channels.email.proof.dkim_check import signature_check, txt_lookup  # noqa: PLC0415 -- 90 ms

        return signature_check(services.clock, txt_lookup())
    return _no_check


async def _no_check(raw: bytes, domain: str) -> SignatureFinding:  # noqa: ARG001 - the shape of a check
    return SignatureFinding(None, "unchecked")


def open_channel(settings: EmailSettings, services: ChannelServices) -> Channel:
    """Make the channel of a table; what the kind's `open` calls."""
    return EmailChannel(settings, services, signature_check_of(settings, services))


if TYPE_CHECKING:

    def _fits(channel: EmailChannel) -> tuple[Channel, AsksApproval, SettlesUnclear, AnswersProbe]:
        return channel, channel, channel, channel
