"""What the tests of one IMAP connection share: a double, and a connection to it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from channels.email.imap.line import Endpoint, Patience
from channels.email.imap.mailbox import Imap
from channels.email.settings import Security
from tests.platforms.imap_server import PASSWORD, USER, ImapServer

SHORT = Patience(connect=0.2, answer=0.2, login=0.2)
"""For servers that say nothing: a test waits for that."""
LONG = Patience(connect=15.0, answer=15.0, login=15.0)


def endpoint(
    server: ImapServer, security: Security = "none", context: ssl.SSLContext | None = None, host: str = "localhost"
) -> Endpoint:
    """Where a double is."""
    return Endpoint(host, server.port, security, context or ssl.create_default_context())


@asynccontextmanager
async def logged_in(server: ImapServer, patience: Patience = LONG, folder: str = "INBOX") -> AsyncIterator[Imap]:
    """A connection with a selected folder."""
    imap = await Imap.connect(endpoint(server), patience)
    try:
        await imap.log_in(USER, PASSWORD)
        await imap.introduce("zerobot", "1")
        if folder:
            await imap.select(folder)
        yield imap
    finally:
        await imap.close()


def mail(number: int, body: str = "Hello", **fields: str) -> bytes:
    """A small mail."""
    header = {"From": "Ann <ann@example.test>", "Subject": f"Number {number}", "Message-ID": f"<{number}@example.test>"}
    lines = [f"{name}: {value}" for name, value in {**header, **fields}.items()]
    return "\r\n".join([*lines, "", body, ""]).encode()
