"""A daemon that dies, and everything around it that does not: the platform, the model, a person, what tools did."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.platforms.daemon_process import PATIENCE, DaemonProcess, write_config
from tests.platforms.model_script import Step, calls
from tests.platforms.model_server import ModelServer
from tests.platforms.telegram_server import TelegramServer
from tests.platforms.telegram_world import Chat, Message

AT_COMMIT = Path(__file__).parent / "at_commit"
REPEAT = "possibly a repeat"
"""What a message says that may have been sent before."""

CONFIG = """
[daemon]
state_dir = "{state}"
log_format = "json"
log_level = "debug"
shutdown_grace = "{grace}"

[agent]
model = "main/m-1"
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
allowed_commands = ["sh free.sh", "sh held.sh"]
"""


class World:
    """What outlives each daemon.

    Args:
        folder: For the configuration, the state directory and the tools' traces.
        model: Answers from a script.
        telegram: The platform.
        grace: `shutdown_grace`.
    """

    def __init__(self, folder: Path, model: ModelServer, telegram: TelegramServer, grace: str = "20s") -> None:
        self.model = model
        self.telegram = telegram
        self.ann = telegram.user("1001")
        self.chat = self.ann.chat
        self.state = folder / "state"
        self.workspace = self.state / "workspace"
        self.workspace.mkdir(parents=True, mode=0o700)
        self.state.chmod(0o700)
        self._runs = self.workspace / "runs"
        for name in ("free", "asked", "held"):
            script = f"echo {name} >> runs\n"
            script += "read line < gate\n" if name == "held" else f"echo {name} ran\n"
            (self.workspace / f"{name}.sh").write_text(script)
        os.mkfifo(self.workspace / "gate")
        self.config = folder / "zerobot.toml"
        self.config.write_text(
            CONFIG.format(
                state=self.state,
                grace=grace,
                key=model.key,
                url=model.openai_url,
                token=telegram.token,
                api_base=telegram.api_base,
            )
        )
        self.config.chmod(0o600)

    @asynccontextmanager
    async def daemon(self, crash_at: str = "") -> AsyncIterator[DaemonProcess]:
        """Run the daemon; whatever it prints must be an event, and none may tell of a fault inside it.

        Args:
            crash_at: See `at_commit/sitecustomize.py`; empty: it dies when it is killed.
        """
        environ = {"CRASH_AT": crash_at, "PYTHONPATH": str(AT_COMMIT)} if crash_at else {}
        async with DaemonProcess(self.config, environ) as daemon:
            yield daemon
        assert daemon.other_lines == []
        faults = [event for event in daemon.events if event["level"] == "error"]
        assert faults == []

    async def dies(self, crash_at: str, does: Any = None) -> None:
        """Run a daemon until it dies at a commit."""
        async with self.daemon(crash_at) as daemon:
            if does is not None:
                await does(daemon)
            assert await daemon.ended() == -9

    def runs(self, name: str) -> int:
        """How often a script has run."""
        return self._runs.read_text().split().count(name) if self._runs.exists() else 0

    async def until_held(self) -> None:
        """Wait until `held.sh` runs; `release` ends it."""
        gate = await asyncio.to_thread(_open_when_read, self.workspace / "gate")
        self._gate = gate

    @property
    def bot_texts(self) -> list[str]:
        """What of the bot's stands in the chat, prompts left out."""
        return [each.text for each in self.chat.replies if "Approval needed" not in each.text and not _is_prompt(each)]

    @property
    def prompts(self) -> list[Message]:
        """The prompts in the chat, open and decided."""
        return [each for each in self.chat.replies if _is_prompt(each)]

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Look into the database of a daemon that does not run."""
        with sqlite3.connect(self.state / "zerobot.db") as db:
            return db.execute(sql).fetchall()
