"""One connection to the server that answers are handed to (RFC 5321, RFC 6409).

The library connects, speaks STARTTLS and logs in. The text of a mail is written here: the library writes it together
with the full stop that ends it, waits for nothing in between, and so cannot say whether a connection broke before the
mail was whole (then it surely was not taken) or after.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from aiosmtplib import SMTP, SMTPException, SMTPResponseException
from aiosmtplib.response import SMTPResponse

from channels.email.settings import Security
from channels.email.writing.letter import Parcel
from zerobot.core.errors import UnclearError

Stage: TypeAlias = Literal["connect", "login", "sender", "recipient", "text"]
Tokens: TypeAlias = Callable[[], Awaitable[str]]
"""Gives an access token that is valid now."""

# A client without a name of its own names its address (RFC 5321, section 4.1.3); the true one is nobody's business.
_OWN_NAME = "[127.0.0.1]"
_PIECE = 65_536
_TEXT_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpAccount:
    """Where mails are handed in, and as whom."""

    host: str
    port: int
    security: Security
    tls: Callable[[], ssl.SSLContext]
    """Whom to trust; asked for when a connection is made."""
    username: str
    password: str = field(default="", repr=False)
    tokens: Tokens | None = None
    """Access tokens are used instead of the password (XOAUTH2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Seconds that a server may take; RFC 5321, section 4.5.3.2 names the ones that servers may count on."""

    connect: float = 60.0
    """Until we are logged in."""
    command: float = 300.0
    """For one answer."""
    piece: float = 180.0
    """For taking 64 KiB of a mail."""
    end: float = 600.0
    """For the answer to the end of a mail. Short of it a mail may be taken and sent again."""
    alive: float = 10.0
    """For showing that a connection that was kept still works."""
    kept: float = 30.0
    """A connection that nothing needs is kept so long for the next mail."""


class LineLostError(Exception):
    """The connection cannot be had, or broke; no mail was taken over it."""


class SmtpRefusalError(Exception):
    """The server said no; no mail was taken.

    Attributes:
        stage: What it said no to.
        code: Of its reply: 4xx means later, 5xx never (RFC 5321, section 4.2.1). 0: it lacks something that we need.
        text: The reply, for people, on one line.
    """

    def __init__(self, stage: Stage, code: int, text: str) -> None:
        self.stage = stage
        self.code = code
        self.text = " ".join(part for part in text.split() if part.isprintable())[:_TEXT_CHARACTERS]
        super().__init__(f"{stage}: {self.reply}")

    @property
    def reply(self) -> str:
        """The reply with its code."""
        return f"{self.code} {self.text}" if self.code else self.text

    @property
    def passing(self) -> bool:
        """Whether the same may be tried later; an answer that makes no sense counts so as well."""
        return self.code != 0 and not 500 <= self.code < 600

    @property
    def ends_line(self) -> bool:
        """Whether the server ends the connection with it (RFC 5321, section 3.8)."""
        return self.code == 421


@dataclass(frozen=True, slots=True)
class Refused:
    """A recipient beside the main one that the server did not take; the mail went to the others."""

    address: str
    error: SmtpRefusalError


class SmtpLine:
    """A connection that is logged in. It carries one mail at a time; `open` is how one is made."""

    def __init__(self, client: SMTP, deadlines: Deadlines) -> None:
        transport, protocol = client.transport, client.protocol
        assert isinstance(transport, asyncio.Transport), "a client that is connected has a transport"
        assert protocol is not None, "a client that is connected has a protocol"
        # A piece counts as written only when nothing of it is left here (with TLS: nearly nothing).
        transport.set_write_buffer_limits(high=1, low=0)
        self._client = client
        self._protocol = protocol
        self._writer = asyncio.StreamWriter(transport, protocol, None, asyncio.get_running_loop())
        self._deadlines = deadlines

    @classmethod
    async def open(cls, account: SmtpAccount, deadlines: Deadlines) -> SmtpLine:
        """Connect and log in.

        Raises:
            LineLostError: The server cannot be reached, or its certificate is not trusted.
            SmtpRefusalError: It does not let us in; stage `connect` or `login`.
        """
        client = SMTP(
            hostname=account.host,
            port=account.port,
            local_hostname=_OWN_NAME,
            timeout=None,  # all its waits are inside ours
            use_tls=account.security == "tls",
            start_tls=account.security == "starttls",
            tls_context=account.tls(),
        )
        line = None
        try:
            async with asyncio.timeout(deadlines.connect):
                await _connect(client)
                await _log_in(client, account)
            line = cls(client, deadlines)
        except (OSError, SMTPException, UnicodeError) as error:
            raise LineLostError(_why(error)) from error
        finally:
            if line is None:
                _abort(client)
        return line

    async def is_alive(self) -> bool:
        """Ask whether the connection still works, and forget a mail that was begun."""
        try:
            async with asyncio.timeout(self._deadlines.alive):
                reply = await self._client.execute_command(b"RSET")
        except (OSError, SMTPException):
            return False
        return reply.code // 100 == 2

    async def hand_over(self, parcel: Parcel) -> Sequence[Refused]:
        """Hand a mail over; when this returns the server has taken it.

        Returns:
            The recipients beside the first that were refused.

        Raises:
            SmtpRefusalError: It was not taken; stage `sender`, `recipient` (the first one) or `text`.
            LineLostError: The connection broke before the mail was whole, so it was not taken.
            UnclearError: It broke after that, and nobody knows.
        """
        await self._envelope_sender(parcel)
        refused = []
        main, *others = parcel.recipients
        await self._command("recipient", b"RCPT", _path(b"TO:", main))
        for address in others:
            try:
                await self._command("recipient", b"RCPT", _path(b"TO:", address))
            except SmtpRefusalError as error:
                refused.append(Refused(address, error))
        await self._command("text", b"DATA", want=3)
        await self._write(parcel.raw)
        reply = await self._end()
        if 400 <= reply.code < 600:
            raise SmtpRefusalError("text", reply.code, reply.message)
        if not 200 <= reply.code < 300:
            raise UnclearError(f"the answer to the end of a mail was {reply.code}")
        return refused

    def leave(self) -> None:
        """Say good-bye, and wait for no answer."""
        if self._client.is_connected:
            self._writer.write(b"QUIT\r\n")
        self.drop()

    def drop(self) -> None:
        """Let go of a connection that something went wrong on."""
        _abort(self._client)

    async def _envelope_sender(self, parcel: Parcel) -> None:
        options = []
        if self._client.supports_extension("size"):
            options.append(b"SIZE=%d" % len(parcel.raw))
        if parcel.needs_utf8:
            if not self._client.supports_extension("smtputf8"):
                raise SmtpRefusalError("recipient", 0, "the server takes no addresses with letters beyond ASCII")
            options += [b"BODY=8BITMIME", b"SMTPUTF8"]
        await self._command("sender", b"MAIL", _path(b"FROM:", parcel.sender), *options)

    async def _command(self, stage: Stage, *words: bytes, want: int = 2) -> None:
        """Give a command; `want` is the first digit of a yes (RFC 5321, section 4.2.1)."""
        try:
            async with asyncio.timeout(self._deadlines.command):
                reply = await self._client.execute_command(*words)
        except (OSError, SMTPException) as error:
            raise LineLostError(_why(error)) from error
        if reply.code // 100 != want:
            raise SmtpRefusalError(stage, reply.code, reply.message)

    async def _write(self, raw: bytes) -> None:
        """Write a mail, but for the full stop that ends it, until the system has taken all of it."""
        assert raw.endswith(b"\r\n"), "a mail ends with a whole line"
        # A full stop that begins a line is doubled (RFC 5321, section 4.5.2); the first line is a field.
        text = memoryview(raw.replace(b"\r\n.", b"\r\n.."))
        try:
            for start in range(0, len(text), _PIECE):
                self._writer.write(text[start : start + _PIECE])
                async with asyncio.timeout(self._deadlines.piece):
                    await self._writer.drain()
        except OSError as error:
            raise LineLostError(_why(error)) from error

    async def _end(self) -> SMTPResponse:
        """End the mail. From the moment that this is written the server may have taken it."""
        if not self._client.is_connected:
            raise LineLostError("the connection broke within the mail")
        self._writer.write(b".\r\n")
        try:
            async with asyncio.timeout(self._deadlines.end):
                return await self._protocol.read_response()
        except (OSError, SMTPException) as error:
            raise UnclearError(f"no answer to the end of a mail: {_why(error)}") from error


async def _connect(client: SMTP) -> None:
    """Connect, with TLS if it is wanted; STARTTLS is spoken once, and what the server said before it is forgotten."""
    try:
        await client.connect()
        await client.ehlo()
    except SMTPResponseException as error:
        raise SmtpRefusalError("connect", error.code, error.message) from error
    except OSError as error:
        if any(isinstance(each, ssl.SSLCertVerificationError) for each in (error, error.__cause__)):
            raise SmtpRefusalError("connect", 0, f"its certificate is not trusted: {error}") from error
        raise
    except SMTPException as error:
        # It offers no STARTTLS. There is no way on in plain text.
        raise SmtpRefusalError("connect", 0, error.message) from error


async def _log_in(client: SMTP, account: SmtpAccount) -> None:
    """Log in by one method and once: each more would be another failure to a server that counts them."""
    if not client.supports_extension("auth"):
        return  # a relay that asks nobody; one that wants a login says so at the first mail
    methods = client.server_auth_methods
    wanted = ("xoauth2",) if account.tokens is not None else ("plain", "login")
    method = next((each for each in wanted if each in methods), None)
    if method is None:
        raise SmtpRefusalError("login", 0, f"it takes {', '.join(methods)}, but not {' or '.join(wanted)}")
    try:
        if account.tokens is not None:
            await client.auth_xoauth2(account.username, await account.tokens())
        elif method == "plain":
            await client.auth_plain(account.username, account.password)
        else:
            await client.auth_login(account.username, account.password)
    except SMTPResponseException as error:
        raise SmtpRefusalError("login", error.code, error.message) from error


def _path(word: bytes, address: str) -> bytes:
    return word + b"<" + address.encode() + b">"


def _why(error: BaseException) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return "it took too long to answer"
    return str(error) or type(error).__name__


def _abort(client: SMTP) -> None:
    """Let a connection go at once: a polite end of TLS would wait for a server that may be gone."""
    if isinstance(client.transport, asyncio.WriteTransport):
        client.transport.abort()
    client.close()
