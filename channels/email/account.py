"""The account on both servers: how one gets in, for reading and for sending."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property

from channels.email.imap.entry import open_mailbox
from channels.email.imap.mailbox import Imap
from channels.email.oauth import AccessTokens
from channels.email.settings import EmailSettings
from channels.email.smtp.line import SmtpAccount
from channels.email.tls import make_context
from zerobot.core.channel import ChannelServices

USUAL_SENT = "Sent"
"""The folder of sent mail where the server names none."""


class Account:
    """Nothing of it connects or reads a file before it is asked to.

    Args:
        settings: The channel's table.
        services: Clock, HTTP client and state, for access tokens.
    """

    def __init__(self, settings: EmailSettings, services: ChannelServices) -> None:
        self._settings = settings
        self._name = services.name
        self._tokens = AccessTokens(settings.oauth2, services) if settings.oauth2 is not None else None

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        return make_context(self._settings.tls_ca_file)

    async def mailbox(self) -> Imap:
        """Open the mailbox on a connection of its own; no folder is selected. Whoever asked closes it.

        Raises:
            ImapLostError, ChannelFaultError, StorageError: see `open_mailbox`.
        """
        return await open_mailbox(self._settings, self._name, self._trust, self._tokens)

    @asynccontextmanager
    async def sent(self) -> AsyncIterator[tuple[Imap, str]]:
        """The mailbox, and the name of its folder of sent mail."""
        imap = await self.mailbox()
        try:
            yield imap, self._settings.sent_folder or await sent_folder(imap)
        finally:
            await imap.close()

    def outgoing(self) -> SmtpAccount:
        """Where mails are handed in, and as whom."""
        settings = self._settings
        return SmtpAccount(
            host=settings.smtp_host,
            port=settings.smtp_port,
            security=settings.smtp_security,
            tls=lambda: self._trust,
            username=settings.account,
            password=settings.password.get_secret_value() if settings.password is not None else "",
            tokens=self._tokens.token if self._tokens is not None else None,
        )


async def sent_folder(imap: Imap) -> str:
    """The folder that the server names for sent mail (RFC 6154)."""
    return (await imap.special_folders()).get("\\sent", USUAL_SENT)
