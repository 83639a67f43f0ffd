"""E-mail, by IMAP and SMTP: what the daemon must know before it loads the libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from channels.email.settings import EmailSettings
from zerobot.core.channel import Capabilities, Channel, ChannelKind, ChannelServices, Finding, Pace, Question

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["KIND", "EmailSettings"]


def _open(settings: BaseModel, services: ChannelServices) -> Channel:
    from channels.email.adapter import open_channel  # noqa: PLC0415 -- loads the libraries

    return open_channel(EmailSettings.model_validate(settings), services)


async def _check(settings: BaseModel, services: ChannelServices) -> AsyncIterator[Finding]:
    from channels.email.check import check_channel  # noqa: PLC0415 -- loads the libraries

    async for finding in check_channel(EmailSettings.model_validate(settings), services):
        yield finding


KIND = ChannelKind(
    name="email",
    title="E-mail",
    settings=EmailSettings,
    capabilities=Capabilities(edits=False, buttons=False, groups=True, addresses=True, notice_after=300.0),
    # Nobody limits mails by the second; what keeps two machines from writing to each other is `answers_per_hour`. The
    # usual limit of a day (Gmail: 500, https://support.google.com/a/answer/166852) is the server's to tell.
    pace=Pace(draft_interval=1.0, chat_calls=(10, 10.0), bot_calls=(60, 60.0)),
    extra="email",
    library="aioimaplib",
    questions=(
        Question(key="address", prompt="Address of the bot's mailbox", help="One of its own: it answers what comes."),
        Question(
            key="password",
            prompt="Password",
            secret=True,
            help="Large providers want an app password. With OAuth see docs/channels/email.md.",
        ),
        Question(key="imap_host", prompt="IMAP server", help="With TLS on port 993, such as imap.example.com."),
        Question(key="smtp_host", prompt="SMTP server", help="With TLS on port 465, such as smtp.example.com."),
        Question(
            key="trusted_authserv",
            prompt="Id of your mail server",
            help="The first word of the topmost Authentication-Results field of a mail that came from outside, such as "
            "mx.example.com. With any word here, zerobot doctor lists those of the newest mails in the mailbox.",
        ),
    ),
    open=_open,
    check=_check,
)
