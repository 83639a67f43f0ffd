r"""A strict loopback double of an IMAP server, for what a real one won't do when a test wants it.

    async with ImapServer() as server:       # server.port; account bot@example.test, password "secret"
        uid = server.deliver(b"From: ...")    # who idles is told
        await server.until(lambda: server.flags(uid) == {"\Seen"})

It refuses what breaks the grammar or is out of place, and `faults` has it. What goes wrong is set by its attributes, or
written out by `script`; `before` lets something happen just before a command is worked on.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from tests.platforms.imap_session import RefusalError, Session
from tests.platforms.imap_world import Mailbox, StoredMail
from tests.platforms.signals import PATIENCE, Signal

USER = "bot@example.test"
PASSWORD = "secret"
TOKEN = "ya29.TEST-ONLY"


class ImapServer:
    """A mail server with one kind of connection: plain, plain that can turn to TLS, or TLS from the start.

    Args:
        context: Its certificate; None: there is no TLS.
        implicit: Whether TLS is there from the start; else it is offered.
    """

    def __init__(self, context: ssl.SSLContext | None = None, *, implicit: bool = False) -> None:
        self.context = context
        self.capabilities = ["IMAP4rev1", "SASL-IR", "IDLE", "UIDPLUS", "MOVE", "SPECIAL-USE", "ID"]
        self.mechanisms: list[str] = []
        """Of AUTHENTICATE: `PLAIN`, `XOAUTH2`."""
        self.passwords_count = True
        """Whether LOGIN is allowed."""
        self.accounts = {USER: PASSWORD}
        self.tokens = {TOKEN}
        """Access tokens that are good."""
        self.refusal = ""
        """What every login is refused with."""
        self.greeting = "* OK ready"
        self.wants_id = False
        """Whether a folder is refused to who has not said who he is."""
        self.announces = True
        """Whether the client is told of changes."""
        self.injected = b""
        """What somebody in between puts behind the answer to STARTTLS."""
        self.cut_fetches_after: int | None = None
        """Bytes of a FETCH after which the connection breaks."""
        self.scripted: dict[str, list[bytes | None]] = defaultdict(list)
        self.before: dict[str, list[Callable[[], object]]] = {}
        self.folders: dict[str, Mailbox] = {}
        self.commands: list[str] = []
        """The names of all commands, in order, over all connections."""
        self.faults: list[str] = []
        """What clients wrote that no client may write."""
        self.sessions: list[Session] = []
        self.connects = 0
        self.signal = Signal()
        self.port = 0
        self._implicit = implicit
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.inbox = self.add_folder("INBOX")
        self.sent = self.add_folder("Sent", "\\Sent")

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def needed_context(self) -> ssl.SSLContext:
        """The certificate, where there must be one."""
        assert self.context is not None
        return self.context

    async def start(self) -> None:
        """Listen; the same port again after `stop`."""
        context = self.context if self._implicit else None
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=context, limit=2**26)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Break all connections and listen no more."""
        if self._server is not None:
            self._server.close()
        self.drop()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def add_folder(self, name: str, *attributes: str) -> Mailbox:
        """Make a folder; the name as it is on the wire."""
        self.folders[name] = Mailbox(name, attributes=attributes)
        return self.folders[name]

    def folder(self, name: str) -> Mailbox:
        """The folder that a client asks for."""
        if name not in self.folders:
            raise RefusalError("[TRYCREATE] no such folder")
        return self.folders[name]

    def deliver(self, raw: bytes, *flags: str, folder: str = "INBOX") -> int:
        """A mail comes in; returns its UID."""
        mail = self.folders[folder].add(raw, *flags)
        self.changed(self.folders[folder])
        return mail.uid

    def mail(self, uid: int, folder: str = "INBOX") -> StoredMail:
        """A mail."""
        return next(mail for mail in self.folders[folder].mails if mail.uid == uid)

    def flags(self, uid: int, folder: str = "INBOX") -> set[str]:
        """A mail's flags."""
        return self.mail(uid, folder).flags

    def changed(self, folder: Mailbox) -> None:
        """Tell who idles in a folder."""
        for session in self.sessions:
            if session.folder is folder:
                self._spawn(session.announce())
        self.signal.fire()

    async def until(self, condition: Callable[[], Any], patience: float = PATIENCE) -> None:
        """Wait until something holds."""
        await self.signal.until(condition, lambda: (self.commands[-20:], self.faults), patience)

    async def until_idle(self) -> None:
        """Wait until a client idles."""
        await self.until(lambda: any(session.idling for session in self.sessions))

    # What goes wrong, on demand.

    def script(self, command: str, *answers: bytes | None) -> None:
        """Write these answers out for the next commands of a name: TAG is the command's tag; None: hang up."""
        self.scripted[command].extend(answers)

    def happens_before(self, command: str, happen: Callable[[], object]) -> None:
        """Do something just before the next command of a name is worked on (`DONE` is one, for this)."""
        self.before.setdefault(command, []).append(happen)

    def drop(self) -> None:
        """Break all connections."""
        for session in list(self.sessions):
            session.writer.transport.abort()

    def fall_silent(self) -> None:
        """From now on nothing arrives at any client that is connected, and no connection ends."""
        for session in self.sessions:
            session.mute = True

    async def say(self, line: str) -> None:
        """Say something to every client by itself."""
        for session in list(self.sessions):
            await session.say(line)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = Session(self, reader, writer)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.sessions.append(session)
        self.connects += 1
        self.signal.fire()
        try:
            with suppress(OSError, EOFError, asyncio.CancelledError):
                await session.serve()
        finally:
            self.sessions.remove(session)
            self._tasks.discard(task)
            writer.close()
            self.signal.fire()

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
