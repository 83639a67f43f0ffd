"""One line to an IMAP server: one command at a time, each within limits of time and size, each answer looked at."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import aioimaplib  # type: ignore[import-untyped]

from channels.email.imap.answers import Lines, capabilities_of, code_of, told
from channels.email.imap.errors import ImapLostError, ImapNoError, ImapUntrustedError
from channels.email.imap.protocol import MAX_ANSWER, Fetch, Idle, Protocol, nothing
from channels.email.imap.starttls import start_tls
from channels.email.settings import Security
from zerobot.core.clock import Clock

SLOWEST_RATE = 16 * 1024
"""Bytes a second: what comes or goes slower than this takes too long."""
_GOODBYE_SECONDS = 2.0
# A dead peer is noticed within two minutes also where nothing is sent for longer (IDLE).
_KEEPALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4), ("TCP_USER_TIMEOUT", 60_000))


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds that a server gets."""

    connect: float = 30.0
    """To be reached, to greet, and to agree on TLS."""
    answer: float = 30.0
    """To say something on."""
    login: float = 60.0
    """To judge credentials: Dovecot lets an address wait for up to 15 s after failures."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server is and how it is spoken to."""

    host: str
    port: int
    security: Security
    context: ssl.SSLContext = field(repr=False)
    """Whom to trust."""


class ImapLine:
    """A connected line. Whatever leaves it in doubt drops it: a silence, a cancellation, an answer without sense."""

    def __init__(self, protocol: Protocol, patience: Patience) -> None:
        """Use a protocol that is connected; `open` is how a line is made."""
        self.capabilities: frozenset[str] = frozenset()
        """What the server says it can do, in upper case."""
        self.patience = patience
        self._protocol = protocol
        self._turn = asyncio.Lock()

    @classmethod
    async def open(cls, endpoint: Endpoint, patience: Patience) -> ImapLine:
        """Connect, up to the point where credentials may be said.

        Raises:
            ImapUntrustedError: The certificate is not good for the host, or TLS is not to be had.
            ImapLostError: It did not come about otherwise.
        """
        line = cls(Protocol(), patience)
        try:
            await line._opened(endpoint)
        except ssl.SSLCertVerificationError as error:
            raise ImapUntrustedError(f"the certificate is not trusted: {error.verify_message}") from error
        except ssl.SSLError as error:
            raise ImapLostError(f"no TLS on port {endpoint.port}: {error.reason or 'the line broke'}") from error
        except OSError as error:
            raise ImapLostError(f"cannot be reached: {error.strerror or type(error).__name__}") from error
        return line

    @property
    def logged_in(self) -> bool:
        """Whether the server takes us for somebody."""
        return str(self._protocol.state) in (aioimaplib.AUTH, aioimaplib.SELECTED)

    def became(self, *, selected: bool) -> None:
        """Say that a login, or the selection of a folder, was answered well: it decides which commands may follow."""
        self._protocol.state = aioimaplib.SELECTED if selected else aioimaplib.AUTH

    async def command(
        self,
        name: str,
        *words: str,
        uid: bool = False,
        replies: Sequence[bytes] = (),
        room: int = MAX_ANSWER,
        seconds: float | None = None,
    ) -> Lines:
        """Say a command and return its answer.

        Args:
            name: The command, without `UID`.
            words: Its arguments, as they go on the line.
            uid: Whether `UID` goes before it.
            replies: What the server is sent each time that it asks for more.
            room: Bytes that the answer may have.
            seconds: How long the server may be silent; None: as for every command.

        Raises:
            ImapNoError: The server refuses this.
            ImapLostError: There is no answer, or none that can be read.
        """
        protocol, prefix = self._protocol, "UID" if uid else ""
        async with self._turn:
            sent = sum(len(reply) for reply in replies)
            async with self._within(seconds or self.patience.answer, room + sent):
                protocol.room, protocol.replies = room, list(replies)
                if name == "FETCH":
                    made = Fetch(protocol, *words, prefix=prefix)
                else:
                    answers_as = "FETCH" if name == "STORE" else None
                    made = aioimaplib.Command(
                        name,
                        protocol.new_tag(),
                        *words,
                        prefix=prefix,
                        untagged_resp_name=answers_as,
                        loop=protocol.loop,
                    )
                answer = await protocol.execute(made)
        lines: Lines = answer.lines
        if answer.result != "OK":
            raise ImapNoError(f"{name}: {answer.result} {told(lines[-1])}", code=code_of(lines[-1])[0])
        return lines

    async def ask_capabilities(self) -> None:
        """Learn what the server can do now.

        Raises:
            ImapNoError, ImapLostError: As for every command.
        """
        self.capabilities = capabilities_of(await self.command("CAPABILITY"))

    def forget_news(self) -> None:
        """What is searched for next is all that there is: only what comes later is news."""
        if not self._protocol.lost:
            self._protocol.news.clear()

    async def news(self, clock: Clock, seconds: float) -> None:
        """Wait for news, but no longer than this.

        Raises:
            ImapLostError: The connection is lost; that ends the wait at once.
        """
        async with asyncio.TaskGroup() as group:
            ends = [group.create_task(clock.sleep(seconds)), group.create_task(self._waits_for_news())]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in ends:
                end.cancel()
        self._check()

    async def idle(self, clock: Clock, seconds: float) -> None:
        """IDLE until there are news, but no longer than this (RFC 2177).

        Raises:
            ImapNoError: The server refuses to idle.
            ImapLostError: As for every command; a server that does not answer the end of IDLE hangs.
        """
        async with self._turn:
            self._check()
            protocol = self._protocol
            if protocol.news.is_set():
                return
            command = Idle(protocol)
            # Not by `execute`, which would need a task of its own: IDLE has an end and is told when.
            async with self._within(self.patience.answer):
                protocol.room, protocol.pending_sync_command = MAX_ANSWER, command
                protocol.send(str(command))
                await command.begun.wait()
            if protocol.has_pending_idle_command():
                try:
                    await self.news(clock, seconds)
                except BaseException:
                    protocol.drop("it was left while it idled")
                    raise
                async with self._within(self.patience.answer):
                    if protocol.has_pending_idle_command():
                        protocol.send("DONE")
                    await command.wait()
        result, lines = command.response
        if result != "OK":
            raise ImapNoError(f"IDLE: {result} {told(lines[-1])}", code=code_of(lines[-1])[0])

    async def close(self) -> None:
        """Say goodbye, if that is quickly done, and let go of the line."""
        with contextlib.suppress(ImapNoError, ImapLostError):
            if not self._protocol.lost:
                await self.command("LOGOUT", seconds=_GOODBYE_SECONDS)
        self._protocol.drop("it was closed")

    async def _opened(self, endpoint: Endpoint) -> None:
        protocol = self._protocol
        try:
            await self._connect(endpoint)
            async with self._within(self.patience.connect):
                await protocol.greeting
                if endpoint.security == "starttls":
                    await start_tls(protocol, endpoint.context, endpoint.host)
            await self.ask_capabilities()
        except BaseException:
            protocol.drop("it did not come about")
            raise

    async def _connect(self, endpoint: Endpoint) -> None:
        """Connect to the first address of the host that answers; each gets its share of the time.

        One after the other: where asyncio tries them side by side, a connection that is made in the very moment of a
        cancellation is lost and stays open.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + self.patience.connect
        fault: OSError = TimeoutError("no address of the host answers in time")
        try:
            async with asyncio.timeout_at(end):
                found = await loop.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
        except TimeoutError as error:
            raise ImapLostError("cannot be looked up in time") from error
        for tried, (_, _, _, _, address) in enumerate(found):
            share = (end - loop.time()) / (len(found) - tried)
            try:
                async with asyncio.timeout(share):
                    await self._connect_to(endpoint, str(address[0]))
            except TimeoutError:
                continue
            except ssl.SSLError:
                raise
            except OSError as error:
                fault = error
            else:
                return
        if isinstance(fault, TimeoutError):
            raise ImapLostError("cannot be reached in time") from fault
        raise fault

    async def _connect_to(self, endpoint: Endpoint, address: str) -> None:
        tls = endpoint.security == "tls"
        transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: self._protocol,
            address,
            endpoint.port,
            ssl=endpoint.context if tls else None,
            server_hostname=endpoint.host if tls else None,
        )
        sock: socket.socket = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            if hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    @contextlib.asynccontextmanager
    async def _within(self, seconds: float, most: int = 0) -> AsyncIterator[None]:
        """Bound an exchange: how long the server may be silent, and how many bytes may take their time."""
        self._check()
        protocol, clock = self._protocol, asyncio.get_running_loop()
        end = clock.time() + seconds + most / SLOWEST_RATE

        def sign() -> None:
            if not limit.expired():
                limit.reschedule(clock.time() if protocol.lost else min(clock.time() + seconds, end))

        try:
            async with asyncio.timeout(seconds) as limit:
                protocol.sign = sign
                try:
                    yield
                finally:
                    protocol.sign = nothing
        except TimeoutError as error:
            protocol.drop("no answer in time")
            raise self._loss() from error
        except aioimaplib.AioImapException as error:
            protocol.drop("the answers make no sense")
            # Its text may have the command in it, and so a password.
            raise ImapLostError(f"the answers make no sense ({type(error).__name__})") from None
        except BaseException:
            protocol.drop("it was left in the middle of something")
            raise

    def _check(self) -> None:
        if self._protocol.lost:
            raise self._loss()

    def _loss(self) -> ImapLostError:
        return ImapLostError(self._protocol.lost)

    async def _waits_for_news(self) -> None:
        await self._protocol.news.wait()
