"""A daemon that dies, and everything around it that does not: the platform, the model, a person, what tools did."""

import asyncio
import os
import signal
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.platforms.daemon_process import PATIENCE, DaemonProcess
from tests.platforms.model_server import ModelServer
from tests.platforms.telegram_server import TelegramServer
from tests.platforms.telegram_world import Message

AT_COMMIT = Path(__file__).parent / "at_commit"
REPEAT = "possibly a repeat"
"""What a message says that may have been sent before."""
INTERRUPTED = "INTERRUPTED"
FREE, ASKED, HELD = "./free", "./asked", "./held"
"""Commands: one that needs no approval, one that does, one that needs none and runs until the test lets it end."""

CONFIG = """
[daemon]
state_dir = "{state}"
log_format = "json"
log_level = "debug"
shutdown_grace = "{grace}"

[agent]
model = "main/m-1"
on_message_during_turn = "{during_turn}"
on_message_during_approval = "{during_approval}"
[providers.main]
kind = "openai"
api_key = "{key}"
base_url = "{url}"
max_retries = 0
[channels.telegram]
bot_token = "{token}"
api_base = "{api_base}"
[operators]
users = ["telegram:1001"]
[security]
sandbox = "off"
allowed_commands = ["./free", "./held"]
"""


class World:
    """What outlives each daemon.

    Args:
        folder: For the configuration, the state directory and the tools' traces.
        model: Answers from a script.
        telegram: The platform.
    """

    def __init__(self, folder: Path, model: ModelServer, telegram: TelegramServer) -> None:
        self.model = model
        self.telegram = telegram
        self.ann = telegram.user("1001")
        self.chat = self.ann.chat
        """Where Ann writes; a test may take her elsewhere."""
        self.config = folder / "zerobot.toml"
        self._state = folder / "state"
        self._workspace = self._state / "workspace"
        self._state.mkdir(mode=0o700, parents=True)
        self._workspace.mkdir(mode=0o700)
        for name in ("free", "asked", "held"):
            waits = "echo > begun\nuntil [ -e go ]; do sleep 0.01; done\n" if name == "held" else ""
            script = self._workspace / name
            script.write_text(f"#!/bin/sh\necho {name} $$ >> runs\n{waits}echo {name} ran\n")
            script.chmod(0o700)
        os.mkfifo(self._workspace / "begun")
        self.configure()

    def configure(
        self, *, grace: str = "20s", during_turn: str = "queue", during_approval: str = "auto", tables: str = ""
    ) -> None:
        """Write the configuration.

        Args:
            grace: `[daemon] shutdown_grace`.
            during_turn: `[agent] on_message_during_turn`.
            during_approval: `[agent] on_message_during_approval`.
            tables: More of it, as TOML.
        """
        text = CONFIG.format(
            state=self._state,
            grace=grace,
            during_turn=during_turn,
            during_approval=during_approval,
            key=self.model.key,
            url=self.model.openai_url,
            token=self.telegram.token,
            api_base=self.telegram.api_base,
        )
        self.config.write_text(text + tables, encoding="utf-8")
        self.config.chmod(0o600)

    @asynccontextmanager
    async def daemon(self, crash_at: str = "") -> AsyncIterator[DaemonProcess]:
        """Run the daemon; whatever it prints must be an event, and none may tell of a fault of its own.

        Args:
            crash_at: See `at_commit/sitecustomize.py`; empty: it dies when it is killed.
        """
        environ = {"CRASH_AT": crash_at, "PYTHONPATH": str(AT_COMMIT)} if crash_at else {}
        async with DaemonProcess(self.config, environ) as daemon:
            yield daemon
        assert daemon.other_lines == []
        assert [event for event in daemon.events if event["level"] == "error"] == []

    async def dies(self, crash_at: str, does: Callable[[], object] | None = None) -> None:
        """Run a daemon until it dies at a commit, while somebody does something once it is ready."""
        async with self.daemon(crash_at) as daemon:
            if does is not None:
                await daemon.ready()
                does()
            await self.until_dead(daemon)

    async def until_dead(self, daemon: DaemonProcess) -> None:
        """Wait until a daemon has died by SIGKILL."""
        assert await daemon.ended() == -signal.SIGKILL, daemon.events[-5:]

    def says(self, text: str = "please") -> Callable[[], Message]:
        """Ann writes something, when she is asked to."""
        return lambda: self.ann.says(text)

    async def settles(self, daemon: DaemonProcess, replies: int = 1) -> None:
        """Wait until a daemon has delivered so many replies, then stop it; nothing may be left to do."""
        if replies:
            await daemon.until("delivery.sent", count=replies)
        assert await daemon.stop() == 0
        assert self.rows("SELECT count(*) FROM turns WHERE state <> 'finished'") == [(0,)]
        assert self.rows("SELECT count(*) FROM replies WHERE state IN ('open', 'queued')") == [(0,)]
        assert self.rows("SELECT count(*) FROM inbox WHERE state NOT IN ('done', 'cancelled')") == [(0,)]

    async def prompt(self, count: int = 1) -> Message:
        """Wait for the `count`th prompt, and return it."""
        await self.telegram.wait_for(lambda: len(self.prompts) >= count, PATIENCE)
        return self.prompts[count - 1]

    @property
    def prompts(self) -> list[Message]:
        """The prompts in the chat, open and decided."""
        return [each for each in self.chat.replies if each.history[0].startswith("Approval needed")]

    @property
    def said(self) -> list[str]:
        """What of the bot's stands in the chat, but for prompts."""
        prompts = self.prompts
        return [each.text for each in self.chat.replies if each not in prompts]

    def runs(self, name: str) -> int:
        """How often a script has begun to run."""
        return len(self._pids(name))

    async def until_held_runs(self) -> None:
        """Wait until `held` has begun to run."""
        handle = os.open(self._workspace / "begun", os.O_RDONLY | os.O_NONBLOCK)
        await _until_readable(handle)

    async def until_gone(self, name: str) -> None:
        """Wait until the processes of a script have ended."""
        for pid in self._pids(name):
            await _until_process_ends(pid)

    def lets_held_end(self) -> None:
        """Let `held` come to its end."""
        (self._workspace / "go").touch()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Look into the database."""
        db = sqlite3.connect(self._state / "zerobot.db")
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def has_table(self, name: str) -> bool:
        """Whether the database is there, and its schema has come so far."""
        return (self._state / "zerobot.db").exists() and bool(
            self.rows(f"SELECT 1 FROM sqlite_master WHERE name = '{name}'")
        )

    def _pids(self, name: str) -> list[int]:
        runs = self._workspace / "runs"
        lines = runs.read_text().splitlines() if runs.exists() else []
        return [int(line.split()[1]) for line in lines if line.split()[0] == name]


async def _until_process_ends(pid: int) -> None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    await _until_readable(handle)


async def _until_readable(handle: int) -> None:
    """Wait until there is something to read at a descriptor, and close it."""
    readable = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(handle, readable.set)
    try:
        async with asyncio.timeout(PATIENCE):
            await readable.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)
