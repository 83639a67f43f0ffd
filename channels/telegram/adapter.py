"""A Telegram bot as a channel: composition and life cycle."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from httpx import create_ssl_context
from telegram import Bot

from channels._wire.pauses import Pauses
from channels.telegram.buttons import view
from channels.telegram.decode import PLATFORM
from channels.telegram.files import Files
from channels.telegram.receive import POLL_ANSWER_SECONDS, Receiver
from channels.telegram.render import render
from channels.telegram.request import BotRequest, quiet_loggers
from channels.telegram.send import Sender
from channels.telegram.settings import TelegramSettings
from channels.telegram.units import mark_repeat
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
    ShowsTyping,
)
from zerobot.core.envelope import Attachment
from zerobot.core.places import Identity, Place

OFFICIAL = "https://api.telegram.org"
# A bot may make some 30 calls a second (see the kind's pace); a call seldom takes more than half a second.
_CONNECTIONS = 16


def make_bot(settings: TelegramSettings) -> tuple[Bot, BotRequest, BotRequest]:
    """Make a bot that has not connected yet.

    Returns:
        The bot, its client for polling, its client for everything else; whoever asked shuts both clients down.
    """
    quiet_loggers()
    base = str(settings.api_base).rstrip("/")
    tls = create_ssl_context(trust_env=False)
    polling, calls = BotRequest(tls, 1, POLL_ANSWER_SECONDS), BotRequest(tls, _CONNECTIONS)
    bot = Bot(
        settings.bot_token.get_secret_value(),
        base_url=f"{base}/bot",
        base_file_url=f"{base}/file/bot",
        request=calls,
        get_updates_request=polling,
    )
    return bot, polling, calls


class TelegramChannel:
    """One bot."""

    def __init__(self, settings: TelegramSettings, services: ChannelServices) -> None:
        """Put the parts together; nothing connects before `run`, `send` or `fetch`.

        Args:
            settings: The channel's table.
            services: What the daemon lends.
        """
        self._name = services.name
        bot, self._polling, self._calls = make_bot(settings)
        local = not str(settings.api_base).startswith(OFFICIAL)
        self._receiver = Receiver(bot, self._polling, services)
        self._sender = Sender(bot, Pauses(services.state, services.clock))
        self._files = Files(bot, services.http, local_server=local)

    async def run(self, intake: Intake) -> None:
        """Receive until cancelled; see `Channel`."""
        await self._receiver.run(intake)

    def render(self, markdown: str) -> Sequence[MessageBody]:
        """Bring our Markdown into messages; see `Channel`."""
        return render(markdown)

    def plain(self, body: MessageBody) -> MessageBody:
        """The same text without entities, which Telegram takes whatever it is."""
        return MessageBody(body.text)

    def mark_repeat(self, body: MessageBody) -> MessageBody:
        """The same message behind a mark; see `Channel`."""
        return mark_repeat(body)

    async def send(self, message: OutboundMessage) -> SentMessage:
        """Send one message; see `Channel`."""
        return await self._sender.send(message)

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
        """Show an approval prompt; see `AsksApproval`. Telegram has no use for the key."""
        del key
        return await self._sender.show(place, view(prompt), _document_name(prompt))

    async def settle(self, sent: SentMessage, prompt: ApprovalPrompt) -> None:
        """Change a prompt that was shown; see `AsksApproval`."""
        shown = view(prompt)
        await self._sender.edit(sent, shown.body, shown)

    def direct_place(self, operator: Identity) -> Place | None:
        """A person's direct chat has the person's own id."""
        return Place(self._name, operator.id) if operator.platform == PLATFORM else None

    async def fetch(self, attachment: Attachment, limit: int) -> AsyncIterator[bytes]:
        """Fetch an attachment; see `Channel`."""
        return await self._files.fetch(attachment, limit)

    async def probe(self) -> None:
        """Ask Telegram who we are; see `AnswersProbe`."""
        await self._sender.probe()

    async def close(self) -> None:
        """Close the connections."""
        await self._polling.shutdown()
        await self._calls.shutdown()


def _document_name(prompt: ApprovalPrompt) -> str:
    return f"request-{prompt.code}.txt"


def open_channel(settings: TelegramSettings, services: ChannelServices) -> Channel:
    """Make the channel of a table; what the kind's `open` calls."""
    return TelegramChannel(settings, services)


if TYPE_CHECKING:

    def _fits(channel: TelegramChannel) -> tuple[Channel, EditsMessages, ShowsTyping, AsksApproval, AnswersProbe]:
        return channel, channel, channel, channel, channel
