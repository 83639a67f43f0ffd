"""The real daemon as a process of its own: started on a configuration, read by its events, killed at will."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

PATIENCE = 30.0
"""Seconds after which waiting for an event is a failure; generous, since test machines are busy."""

Event = Mapping[str, Any]


class DaemonProcess:
    """One run of `zerobot run`. Use it in an `async with`; leaving it kills what still runs.

    Args:
        config: The TOML file.
        environ: Set beside a clean environment.
    """

    def __init__(self, config: Path, environ: Mapping[str, str] | None = None) -> None:
        self._config = config
        self._environ = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(config.parent),
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            **(environ or {}),
        }
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._news = asyncio.Condition()
        self.events: list[Event] = []
        self.other_lines: list[str] = []
        """What it printed on stderr that is no event; must stay empty."""

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "zerobot",
            "--config",
            str(self._config),
            "run",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=self._environ,
            limit=16 * 1024 * 1024,
        )
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._running.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._running.kill()
        await self._running.wait()
        assert self._reading is not None, "it was started"
        await self._reading

    @property
    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "it was started"
        return self._process

    @property
    def pid(self) -> int:
        """The process id."""
        return self._running.pid

    @property
    def has_ended(self) -> bool:
        """Whether it runs no more."""
        return self._running.returncode is not None

    async def ready(self) -> Event:
        """Wait until every channel is connected or parked."""
        return await self.until("daemon.ready")

    async def until(
        self, event: str, *, count: int = 1, where: Callable[[Event], bool] = lambda _: True, patience: float = PATIENCE
    ) -> Event:
        """Wait for the `count`th event of a name that fits, and return it."""

        def found() -> list[Event]:
            return [each for each in self.events if each["event"] == event and where(each)]

        async with asyncio.timeout(patience), self._news:
            await self._news.wait_for(lambda: len(found()) >= count or self._running.returncode is not None)
        if len(found()) < count:
            raise AssertionError(f"it ended before {event}: {self.events[-5:]} {self.other_lines[-20:]}")
        return found()[count - 1]

    def named(self, event: str) -> list[Event]:
        """The events of a name so far."""
        return [each for each in self.events if each["event"] == event]

    async def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self._running.kill()
        await self._running.wait()

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._running.send_signal(number)

    async def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        self.send(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            return await self._running.wait()

    async def ended(self) -> int:
        """Wait for it to end by itself; returns the exit code."""
        async with asyncio.timeout(PATIENCE):
            return await self._running.wait()

    async def _read(self) -> None:
        stream = self._running.stderr
        assert stream is not None, "stderr is a pipe"
        async for raw in stream:
            line = raw.decode("utf-8", "replace").rstrip("\n")
            try:
                self.events.append(json.loads(line))
            except ValueError:
                self.other_lines.append(line)
            async with self._news:
                self._news.notify_all()
        await self._running.wait()
        async with self._news:
            self._news.notify_all()


def write_config(folder: Path, text: str) -> Path:
    """Write a private configuration with its state directory beside it, and return its path."""
    path = folder / "zerobot.toml"
    path.write_text(
        f'[daemon]\nstate_dir = "{folder / "state"}"\nlog_format = "json"\nlog_level = "debug"\n\n{text}',
        encoding="utf-8",
    )
    path.chmod(0o600)
    return path
