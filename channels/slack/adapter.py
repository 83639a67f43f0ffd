"""A Slack app as a channel: composition and life cycle."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from channels._wire.pauses import Pauses
from channels.slack.buttons import view
from channels.slack.content import Me
from channels.slack.decode import user_of
from channels.slack.files import Files
from channels.slack.interactions import Interactions, Replies
from channels.slack.receive import Account, Receiver, ReceiverParts
from channels.slack.render import mark_repeat, render
from channels.slack.rooms import Rooms
from channels.slack.send import Sender
from channels.slack.settings import SlackSettings
from channels.slack.web import Web, quiet_loggers
from zerobot.core.approvals import ApprovalPrompt
from zerobot.core.channel import (
    AnswersProbe,
    AsksApproval,
    Channel,
    ChannelServices,
    EditsMessages,
    GrowsMessages,
    HasHome,
    Intake,
    MessageBody,
    OutboundMessage,
    SentMessage,
    SettlesUnclear,
    ShowsTyping,
)
from zerobot.core.envelope import Attachment
from zerobot.core.places import Identity, Place


def make_web(settings: SlackSettings) -> Web:
    """Make a client of the Web API that has not connected yet; whoever asked closes it."""
    quiet_loggers()
    return Web(str(settings.api_base), settings.bot_token.get_secret_value(), settings.app_token.get_secret_value())


class SlackChannel:
    """One app in one workspace."""

    def __init__(self, settings: SlackSettings, services: ChannelServices) -> None:
        """Put the parts together; nothing connects before `run`, `send` or `fetch`.

        Args:
            settings: The channel's table.
            services: What the daemon lends.
        """
        self._name = services.name
        self._web = make_web(settings)
        rooms, replies = Rooms(self._web), Replies(services.clock)
        commands = frozenset(command.name for command in services.commands)
        self._account = Account(Me("", "", commands=commands))
        self._receiver = Receiver(
            ReceiverParts(
                web=self._web,
                settings=settings,
                services=services,
                rooms=rooms,
                interactions=Interactions(self._web, services, rooms, replies),
                account=self._account,
            )
        )
        pauses = Pauses(services.state, services.clock)
        self._sender = Sender(self._web, rooms, replies, pauses, services.clock, lambda: self._account.me.user)
        self._files = Files(self._web, services.http, str(settings.api_base))

    @property
    def home(self) -> str:
        """The workspace that the app is installed in; see `HasHome`."""
        return self._account.me.team

    async def run(self, intake: Intake) -> None:
        """Receive until cancelled; see `Channel`."""
        await self._receiver.run(intake)

    def render(self, markdown: str) -> Sequence[MessageBody]:
        """Bring our Markdown into messages; see `Channel`."""
        return render(markdown)

    def plain(self, body: MessageBody) -> MessageBody:
        """The same text without blocks."""
        return MessageBody(body.text)

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

    async def grow(self, sent: SentMessage, body: MessageBody) -> bool:
        """Bring a draft nearer to a body; see `GrowsMessages`."""
        return await self._sender.grow(sent, body)

    def is_growing(self, sent: SentMessage) -> bool:
        """Whether a message has grown as a stream; see `GrowsMessages`."""
        return self._sender.is_growing(sent)

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
        """A person's direct chat is named by the person's id; whoever is of another workspace is reached by its app."""
        user = user_of(operator, self.home)
        return Place(self._name, user) if user else None

    async def fetch(self, attachment: Attachment, limit: int) -> AsyncIterator[bytes]:
        """Fetch an attachment; see `Channel`."""
        return await self._files.fetch(attachment, limit)

    async def probe(self) -> None:
        """Ask Slack for nothing; see `AnswersProbe`."""
        await self._sender.probe()

    async def close(self) -> None:
        """Close the connections."""
        await self._web.close()


def open_channel(settings: SlackSettings, services: ChannelServices) -> Channel:
    """Make the channel of a table; what the kind's `open` calls."""
    return SlackChannel(settings, services)


if TYPE_CHECKING:

    def _fits(
        channel: SlackChannel,
    ) -> tuple[Channel, EditsMessages, GrowsMessages, ShowsTyping, AsksApproval, SettlesUnclear, AnswersProbe, HasHome]:
        return channel, channel, channel, channel, channel, channel, channel, channel
