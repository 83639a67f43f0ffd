"""A strict SMTP server on loopback: it does what a script says, and notes whatever its client does wrong."""

from __future__ import annotations

import asyncio
import base64
import re
import socket
import ssl
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from channels.email.settings import Security
from tests.platforms.smtp_checks import complaints, read

DROP = "drop"
"""As a reply: the connection ends without one."""
HANG = "hang"
"""As a reply: there is none."""
_MAIL = re.compile(r"FROM:<([^<>\s]*|\"[^\"]*\"@[^<>\s]+)>((?: [A-Za-z0-9-]+(?:=[!-<>-~]+)?)*)")
_RCPT = re.compile(r"TO:<([^<>\s]+|\"[^\"]*\"@[^<>\s]+)>")


class _GoneError(Exception):
    """This connection is over."""


@dataclass(slots=True)
class _Session:
    """What a client has said on its connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    secure: bool
    greeted: bool = False
    account: str = ""
    sender: str | None = None
    options: tuple[str, ...] = ()
    recipients: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Taken:
    """A mail that was taken."""

    raw: bytes
    sender: str
    recipients: tuple[str, ...]
    connection: int
    account: str


class SmtpServer:
    """Serves on loopback while it is entered.

    Args:
        security: As a client's settings name it.
        tls: The server's context, for `tls` and `starttls`.
        accounts: Passwords by account.
        tokens: Access tokens that are taken (XOAUTH2).
        methods: Ways to log in; none: the server has no AUTH.
        extensions: More lines of the answer to EHLO.
    """

    def __init__(
        self,
        *,
        security: Security = "none",
        tls: ssl.SSLContext | None = None,
        accounts: dict[str, str] | None = None,
        tokens: Iterable[str] = (),
        methods: Iterable[str] = ("PLAIN", "LOGIN", "XOAUTH2"),
        extensions: Iterable[str] = ("8BITMIME", "SIZE 40000000"),
    ) -> None:
        self._security = security
        self._tls = tls
        self._accounts = accounts or {"bot@example.com": "secret"}
        self.tokens = set(tokens)
        self._methods = tuple(methods)
        self._extensions = tuple(extensions)
        self._script: defaultdict[str, deque[str]] = defaultdict(deque)
        self._sessions: dict[int, _Session] = {}
        self.notes = Notes()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.notes.listener.sockets[0].getsockname()[1])

    @property
    def mails(self) -> list[bytes]:
        """The mails that were taken, in order."""
        return [taken.raw for taken in self.notes.taken]

    def script(self, stage: str, *replies: str) -> None:
        """Give the next replies at a stage: GREETING, EHLO, STARTTLS, AUTH, MAIL, RCPT, DATA, TEXT, END, RSET, QUIT.

        TEXT: DROP, once the first of a mail has come. END: the reply to a whole mail, which is taken if it is a yes.
        An empty reply is what the server says by itself.
        """
        self._script[stage].extend(replies)

    def drop_all(self) -> None:
        """End all connections at once."""
        for session in self._sessions.values():
            session.writer.transport.abort()

    async def __aenter__(self) -> Self:
        """Begin to listen."""
        tls = self._tls if self._security == "tls" else None
        listening = socket.create_server(("127.0.0.1", 0))
        # What the system keeps for a reader counts as written for its writer.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
        self.notes.listener = await asyncio.start_server(self._serve, sock=listening, ssl=tls)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, and let nobody go on."""
        self.notes.listener.close()
        self.notes.closing.set()
        self.drop_all()
        while self._sessions:
            await self.notes.changed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.notes.connections += 1
        number = self.notes.connections
        session = _Session(reader, writer, secure=self._security == "tls")
        self._sessions[number] = session
        self.notes.say("connected")
        try:
            await self._reply(session, "GREETING", "220 double ESMTP")
            while True:
                await self._command(session, number, await self._line(session))
        except (_GoneError, OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()
            await asyncio.sleep(0)  # that is when it is gone
            del self._sessions[number]
            self.notes.say("disconnected")

    async def _line(self, session: _Session) -> str:
        data = await session.reader.readuntil(b"\n")
        if not data.endswith(b"\r\n") or b"\r" in data[:-2]:
            self.notes.fault(f"a line end that is not CR LF: {data!r}")
        return data.rstrip(b"\r\n").decode()

    async def _reply(self, session: _Session, stage: str, usual: str) -> bool:
        """Say what the script wants, else the usual; whether that was a yes."""
        replies = self._script[stage]
        reply = (replies.popleft() if replies else "") or usual
        if reply == DROP:
            raise _GoneError
        if reply == HANG:
            self.notes.say(f"hangs at {stage}")
            await self.notes.closing.wait()
            raise _GoneError
        session.writer.write(reply.encode() + b"\r\n")
        await session.writer.drain()
        if reply.startswith("421"):
            raise _GoneError
        return reply[0] in "23"

    async def _command(self, session: _Session, number: int, line: str) -> None:
        verb, _, rest = line.partition(" ")
        self.notes.commands.append((number, verb.upper()))
        self.notes.say(verb.upper())
        match verb.upper():
            case "EHLO":
                await self._ehlo(session, rest)
            case "STARTTLS":
                await self._starttls(session)
            case "AUTH":
                await self._auth(session, rest)
            case "MAIL":
                await self._mail(session, rest)
            case "RCPT":
                await self._rcpt(session, rest)
            case "DATA":
                await self._data(session, number)
            case "RSET":
                session.sender, session.recipients = None, []
                await self._reply(session, "RSET", "250 forgotten")
            case "QUIT":
                await self._reply(session, "QUIT", "221 bye")
                raise _GoneError
            case _:
                self.notes.fault(f"an unknown command: {line!r}")
                await self._reply(session, verb, "500 what?")

    async def _ehlo(self, session: _Session, name: str) -> None:
        if not re.fullmatch(r"\[[0-9.]+\]|[A-Za-z0-9.-]+", name):
            self.notes.fault(f"EHLO {name!r}")
        session.greeted = True
        lines = ["double", *self._extensions]
        if self._security == "starttls" and not session.secure:
            lines.append("STARTTLS")
        elif self._methods:
            lines.append("AUTH " + " ".join(self._methods))
        ends = ["-"] * (len(lines) - 1) + [" "]
        await self._reply(
            session, "EHLO", "\r\n".join(f"250{end}{line}" for end, line in zip(ends, lines, strict=True))
        )

    async def _starttls(self, session: _Session) -> None:
        if session.secure:
            self.notes.fault("STARTTLS twice")
        if not await self._reply(session, "STARTTLS", "220 go on"):
            return
        assert self._tls is not None
        plain = session.writer.transport
        try:
            await session.writer.start_tls(self._tls)
        except AttributeError:  # asyncio loses the transport when the client does not trust us
            setattr(session.writer, "_transport", plain)  # noqa: B010
            raise _GoneError from None
        session.secure, session.greeted = True, False

    async def _auth(self, session: _Session, rest: str) -> None:
        if not session.greeted or session.account or (self._security != "none" and not session.secure):
            self.notes.fault("AUTH out of order")
        method, _, initial = rest.partition(" ")
        self.notes.logins.append(method)
        said = base64.b64decode(initial).decode()
        account, right = "", False
        match method:
            case "PLAIN":
                _, account, password = said.split("\0")
                right = self._accounts.get(account) == password
            case "LOGIN":
                session.writer.write(b"334 UGFzc3dvcmQ6\r\n")
                account, password = said, base64.b64decode(await self._line(session)).decode()
                right = self._accounts.get(account) == password
            case "XOAUTH2":
                account, token, *_ = said.removeprefix("user=").split("\1")
                right = token.removeprefix("auth=Bearer ") in self.tokens
                if not right:
                    session.writer.write(b"334 eyJzdGF0dXMiOiI0MDEifQ==\r\n")
                    await self._line(session)
        usual = "235 2.7.0 welcome" if right else "535 5.7.8 Username and Password not accepted"
        if await self._reply(session, "AUTH", usual) and right:
            session.account = account

    async def _mail(self, session: _Session, rest: str) -> None:
        said = _MAIL.fullmatch(rest)
        if said is None or session.sender is not None or not session.greeted:
            self.notes.fault(f"MAIL {rest!r} out of order or malformed")
            return
        options = tuple(said[2].upper().split())
        known = [word.partition(" ")[0] for word in self._extensions]
        for option in options:
            if {"BODY=8BITMIME": "8BITMIME"}.get(option, option.partition("=")[0]) not in known:
                self.notes.fault(f"{option} was not offered")
        usual = "250 well" if session.account or not self._methods else "530 5.7.0 Authentication required"
        if await self._reply(session, "MAIL", usual):
            session.sender, session.options, session.recipients = said[1], options, []

    async def _rcpt(self, session: _Session, rest: str) -> None:
        said = _RCPT.fullmatch(rest)
        if said is None or session.sender is None:
            self.notes.fault(f"RCPT {rest!r} out of order or malformed")
            return
        if not said[1].isascii() and "SMTPUTF8" not in session.options:
            self.notes.fault("an address beyond ASCII without SMTPUTF8")
        if await self._reply(session, "RCPT", "250 well"):
            session.recipients.append(said[1])

    async def _data(self, session: _Session, number: int) -> None:
        if not session.recipients or session.sender is None:
            self.notes.fault("DATA out of order")
        if not await self._reply(session, "DATA", "354 go on"):
            session.sender = None
            return
        if self._script["TEXT"]:
            self._script["TEXT"].popleft()
            await session.reader.readuntil(b"\n")
            raise _GoneError
        lines = []
        while (line := await session.reader.readuntil(b"\n")) != b".\r\n":
            lines.append(line.removeprefix(b"."))
        raw = b"".join(lines)
        utf8 = "SMTPUTF8" in session.options
        self.notes.faults += complaints(raw, eight_bit="BODY=8BITMIME" in session.options, utf8=utf8)
        taken = Taken(raw, str(session.sender), tuple(session.recipients), number, session.account)
        session.sender = None
        end = self._script["END"]
        if not end or end[0] in {"", DROP, HANG} or end[0][0] == "2":
            self.notes.take(taken)
        await self._reply(session, "END", "250 2.0.0 taken")


class Notes:
    """What a server saw."""

    def __init__(self) -> None:
        self.taken: list[Taken] = []
        self.faults: list[str] = []
        """What clients did wrong."""
        self.commands: list[tuple[int, str]] = []
        """(connection, verb) in order."""
        self.logins: list[str] = []
        """The method of each try to log in."""
        self.connections = 0
        self.listener: asyncio.Server
        self.closing = asyncio.Event()
        self.events: list[str] = []
        self._waiting: list[asyncio.Future[None]] = []

    def fault(self, text: str) -> None:
        """A client did something wrong."""
        self.faults.append(text)

    def take(self, taken: Taken) -> None:
        """Take a mail; another one with the same id must be the same mail."""
        ident = read(taken.raw)["Message-ID"]
        for other in self.taken:
            if read(other.raw)["Message-ID"] == ident and read(other.raw)["Subject"] != read(taken.raw)["Subject"]:
                self.fault(f"two mails are {ident}")
        self.taken.append(taken)
        self.say("taken")

    def say(self, event: str) -> None:
        """Wake who waits for something to happen."""
        self.events.append(event)
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def changed(self) -> None:
        """Wait until something happens."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    async def until(self, event: str, times: int = 1) -> None:
        """Wait until something has happened so often: a verb, `connected`, `disconnected`, `taken`, `hangs at END`."""
        async with asyncio.timeout(20):
            while self.events.count(event) < times:
                await self.changed()
