"""STARTTLS on a connection that began in plain text (RFC 3501, section 6.2.1)."""

from __future__ import annotations

import asyncio
import ssl

import aioimaplib  # type: ignore[import-untyped]

from channels.email.imap.errors import ImapLostError, ImapUntrustedError
from channels.email.imap.protocol import Protocol


async def start_tls(protocol: Protocol, context: ssl.SSLContext, host: str) -> None:
    """Go on by TLS, or not at all: there is no way back to plain text.

    What the server said in plain text counts for nothing afterwards; the caller asks for its capabilities again. What
    came in plain text behind the answer was put there by somebody in between, to be taken for an answer by TLS
    (CVE-2011-0411 and its kin): the connection is refused. So is one that counts as logged in from its greeting on, on
    which STARTTLS is not allowed.

    Args:
        protocol: Greeted, nothing else said.
        context: Whom to trust.
        host: The name that the certificate must have.

    Raises:
        ImapUntrustedError: The server offers no STARTTLS, or refuses it, or what came is not safe.
        ImapLostError: No TLS came about.
        ssl.SSLError: The same, by its cause.
    """
    if protocol.state != aioimaplib.NONAUTH:
        raise ImapUntrustedError("the server greets as if we were logged in, before any TLS")
    answer = await protocol.execute(_command("CAPABILITY", protocol))
    words = {word.upper() for line in answer.lines[:-1] for word in line.split()}
    if answer.result != "OK" or b"STARTTLS" not in words:
        raise ImapUntrustedError("the server offers no STARTTLS")
    protocol.ends_plain = True
    answer = await protocol.execute(_command("STARTTLS", protocol))
    if answer.result != "OK":
        raise ImapUntrustedError("the server refuses STARTTLS")
    if protocol.lost or protocol.incomplete_line:
        raise ImapUntrustedError(protocol.lost or "half a line came in plain text behind the answer to STARTTLS")
    transport = await asyncio.get_running_loop().start_tls(protocol.transport, protocol, context, server_hostname=host)
    if transport is None:
        raise ImapLostError("the connection ended before TLS began")
    protocol.transport = transport
    protocol.ends_plain = False


def _command(name: str, protocol: Protocol) -> aioimaplib.Command:
    return aioimaplib.Command(name, protocol.new_tag(), loop=protocol.loop)
