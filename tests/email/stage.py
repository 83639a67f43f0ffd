"""The whole daemon as a process of its own, with a mailbox at the real servers and a scripted model."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.crash.world import AT_COMMIT
from tests.e2e.daemon_stage import DaemonStage
from tests.email.people import LOOK, PATIENCE, Person
from tests.email.servers import MailServers
from tests.platforms.daemon_process import DaemonProcess
from tests.platforms.model_server import ModelServer

BOT = "bot@example.test"
MX = "mail.example.test"
"""The id under which Postfix, where it takes mail from outside, says what it has found out."""
OPEN = (
    "turns WHERE state <> 'finished'",
    "replies WHERE state IN ('open', 'queued')",
    "inbox WHERE state NOT IN ('done', 'cancelled')",
)
"""Rows of what has no end yet."""
REPEAT = "possibly a repeat"


class MailStage(DaemonStage):
    """One test's daemon and its mailbox.

    How a sender is proved here: a mail comes in over the port of Postfix that takes mail from outside. There Postfix
    puts `Authentication-Results` above its own `Received`, as with a filter that checks DMARC; what such a filter would
    look up is replaced by the word of the envelope's sender (`scripts/mail_servers.py`). The daemon trusts Postfix's
    id, and all else is as it would be anywhere: Dovecot takes the mail by LMTP and puts a `Received` above all.

    Args:
        folder: The test's own.
        model: Answers from its script.
        servers: The real ones.
    """

    def __init__(self, folder: Path, model: ModelServer, servers: MailServers) -> None:
        super().__init__(folder, model)
        self.servers = servers
        self.ann = Person(servers)
        self.configure("operators", users=["email:ops@example.test"])
        self.configure(
            "channels.email",
            address=BOT,
            password=servers.accounts[BOT],
            imap_host=servers.host,
            imap_port=servers.ports["imap"],
            imap_security="none",
            smtp_host=servers.host,
            smtp_port=servers.ports["smtp"],
            smtp_security="none",
            trusted_authserv=[MX],
            allowed_users=["@example.test"],
        )

    @property
    def _database(self) -> Path:
        return self.folder / "state" / "zerobot.db"

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Look into the database."""
        db = sqlite3.connect(self._database)
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    @asynccontextmanager
    async def dying(self, crash_at: str = "") -> AsyncIterator[DaemonProcess]:
        """Run a daemon that will be killed, at a commit (see `tests/crash/at_commit`) or by the test."""
        environ = {"CRASH_AT": crash_at, "PYTHONPATH": str(AT_COMMIT)} if crash_at else {}
        async with self.process(environ) as daemon:
            yield daemon
        self.check(daemon)

    async def dies(self, daemon: DaemonProcess) -> None:
        """Wait until a daemon has died by SIGKILL."""
        assert await daemon.ended() == -signal.SIGKILL, daemon.events[-5:]

    def count(self, rows: str) -> int:
        """How many rows a table of the database has."""
        ((count,),) = self.rows(f"SELECT count(*) FROM {rows}")
        return int(count)

    async def until_settled(self, patience: float = PATIENCE) -> None:
        """Wait until all that was taken in is answered, and each mail in the mailbox is looked at."""
        await self.until(lambda: all(self.servers.are_seen(BOT)) and self._has_nothing_left(), patience)

    async def until(self, holds: Callable[[], bool], patience: float = PATIENCE) -> None:
        """Wait until something holds of the database or of the mailboxes, which tell nobody of news."""
        async with asyncio.timeout(patience):
            while not holds():  # noqa: ASYNC110 -- see above
                await asyncio.sleep(LOOK)

    def _has_nothing_left(self) -> bool:
        return not any(self.count(rows) for rows in OPEN)

    def check_nothing_is_left(self) -> None:
        """Fail if something that was begun has no end; the daemon has stopped."""
        assert {rows: self.count(rows) for rows in OPEN} == dict.fromkeys(OPEN, 0)
