"""A Discord bot as a channel: composition and life cycle."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from channels.discord.buttons import view
from channels.discord.decode import PLATFORM, direct_chat
from channels.discord.files import Files
from channels.discord.interactions import Interactions, Replies
from channels.discord.receive import Account, Receiver, ReceiverParts
from channels.discord.render import mark_repeat, render
from channels.discord.rest import Rest, quiet_loggers
from channels.discord.rooms import Rooms
from channels.discord.send import Echoes, Sender
from channels.discord.settings import DiscordSettings
from zerobot.core.approvals import ApprovalPrompt
from zerobot.core.channel import (
    AnswersProbe,
    AsksApproval,
    Channel,
    ChannelServices,
    EditsMessages,
    Intake,
    MessageBody,
    OutboundMessage,
    SentMessage,
    SettlesUnclear,
    ShowsTyping,
)
from zerobot.core.envelope import Attachment
from zerobot.core.places import Identity, Place


class DiscordChannel:
    """One bot."""

    def __init__(self, settings: DiscordSettings, services: ChannelServices) -> None:
        """Put the parts together; nothing connects before `run`, `send` or `fetch`.

        Args:
            settings: The channel's table.
            services: What the daemon lends.
        """
        quiet_loggers()
        self._name = services.name
        self._rest = Rest(str(settings.api_base), settings.bot_token.get_secret_value())
        rooms, echoes, account = Rooms(self._rest), Echoes(), Account()
        replies = Replies(services.clock)
        self._receiver = Receiver(
            ReceiverParts(
                rest=self._rest,
                settings=settings,
                services=services,
                rooms=rooms,
                echoes=echoes,
                interactions=Interactions(self._rest, services, replies, lambda: account.application),
                account=account,
            )
        )
        self._sender = Sender(self._rest, rooms, replies, echoes, lambda: account.application)
        self._files = Files(services.http)

    async def run(self, intake: Intake) -> None:
        """Receive until cancelled; see `Channel`."""
        await self._receiver.run(intake)

    def render(self, markdown: str) -> Sequence[MessageBody]:
        """Bring our Markdown into messages; see `Channel`."""
        return render(markdown)

    def plain(self, body: MessageBody) -> MessageBody:
        """The same message: Discord refuses none for its marks."""
        return body

    def mark_repeat(self, body: MessageBody) -> MessageBody:
        """The same message behind a mark; see `Channel`."""
        return mark_repeat(body)

    async def send(self, message: OutboundMessage) -> SentMessage:
        """Send one message; see `Channel`."""
        return await self._sender.send(message)

    async def find(self, message: OutboundMessage) -> SentMessage | None:
        """Look for a message whose sending ended unclear; see `SettlesUnclear`."""
        return await self._sender.find(message)

    async def edit(self, sent: SentMessage, body: MessageBody) -> None:
        """Change a message; see `EditsMessages`."""
        await self._sender.edit(sent, body)

    async def delete(self, sent: SentMessage) -> None:
        """Take a message back; see `EditsMessages`."""
        await self._sender.delete(sent)

    async def typing(self, place: Place) -> None:
        """Show that work goes on; see `ShowsTyping`."""
        await self._sender.typing(place)

    async def ask(self, place: Place, prompt: ApprovalPrompt, key: str) -> SentMessage:
        """Show an approval prompt; see `AsksApproval`."""
        return await self._sender.show(place, view(prompt), f"request-{prompt.code}.txt", key)

    async def settle(self, sent: SentMessage, prompt: ApprovalPrompt) -> None:
        """Change a prompt that was shown; see `AsksApproval`."""
        shown = view(prompt)
        await self._sender.edit(sent, shown.body, shown)

    def direct_place(self, operator: Identity) -> Place | None:
        """A person's direct chat is named by the person's id."""
        return Place(self._name, direct_chat(operator.id)) if operator.platform == PLATFORM else None

    async def fetch(self, attachment: Attachment, limit: int) -> AsyncIterator[bytes]:
        """Fetch an attachment; see `Channel`."""
        return await self._files.fetch(attachment, limit)

    async def probe(self) -> None:
        """Ask where the gateway is; see `AnswersProbe`."""
        await self._sender.probe()

    async def close(self) -> None:
        """Close the connections."""
        await self._rest.close()


def open_channel(settings: DiscordSettings, services: ChannelServices) -> Channel:
    """Make the channel of a table; what the kind's `open` calls."""
    return DiscordChannel(settings, services)


if TYPE_CHECKING:

    def _fits(
        channel: DiscordChannel,
    ) -> tuple[Channel, EditsMessages, ShowsTyping, AsksApproval, SettlesUnclear, AnswersProbe]:
        return channel, channel, channel, channel, channel, channel
