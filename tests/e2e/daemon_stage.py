"""The daemon as a process of its own, on a configuration that a test may change, beside a scripted model."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.platforms.daemon_process import DaemonProcess
from tests.platforms.model_server import ModelServer

Tables = dict[str, dict[str, Any]]


class DaemonStage:
    """One test's daemon.

    Args:
        folder: The test's own; the configuration and the state directory lie in it.
        model: Answers from its script.
    """

    def __init__(self, folder: Path, model: ModelServer) -> None:
        self.folder = folder
        self.model = model
        self.runs: list[DaemonProcess] = []
        """Each process of the daemon, the oldest first."""
        self.expected_errors: set[str] = set()
        """Events of level error that this test provokes."""
        self.tables: Tables = {
            "daemon": {"state_dir": str(folder / "state"), "log_format": "json", "log_level": "debug"},
            "agent": {"model": "main/m-1"},
            "providers.main": {
                "kind": "openai",
                "api_key": model.key,
                "base_url": model.openai_url,
                "max_retries": 0,
            },
        }

    def configure(self, table: str, **keys: Any) -> None:
        """Set keys of a table; None takes one away."""
        known = self.tables.setdefault(table, {})
        known.update(keys)
        for key in [key for key, value in known.items() if value is None]:
            del known[key]

    @property
    def config(self) -> Path:
        """The configuration, written anew."""
        path = self.folder / "zerobot.toml"
        lines = []
        for name, keys in self.tables.items():
            lines.append(f"[{name}]")
            # What JSON writes of texts, numbers, flags and lists is TOML too.
            lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in keys.items()]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        path.chmod(0o600)
        return path

    @property
    def workspace(self) -> Path:
        """Where the tools work."""
        return self.folder / "state" / "workspace"

    @asynccontextmanager
    async def daemon(self, environ: Mapping[str, str] | None = None) -> AsyncIterator[DaemonProcess]:
        """Run the daemon inside of this scope, once it is ready; it is stopped gracefully at the end."""
        async with self.process(environ) as daemon:
            await daemon.ready()
            yield daemon
            if not daemon.has_ended:
                assert await daemon.stop() == 0
        self.check(daemon)

    @asynccontextmanager
    async def process(self, environ: Mapping[str, str] | None = None) -> AsyncIterator[DaemonProcess]:
        """Run the daemon's process, ready or not; killed at the end if it still runs."""
        async with DaemonProcess(self.config, environ) as daemon:
            self.runs.append(daemon)
            yield daemon

    def check(self, daemon: DaemonProcess) -> None:
        """Fail on anything that nobody expected: errors in the log, lines that are no events."""
        assert daemon.other_lines == []
        errors = [each for each in daemon.events if each["level"] == "error"]
        assert [each for each in errors if each["event"] not in self.expected_errors] == []

    @property
    def log(self) -> str:
        """All that all processes have written, as one text."""
        return "\n".join(json.dumps(each, ensure_ascii=False) for run in self.runs for each in run.events) + "\n".join(
            line for run in self.runs for line in run.other_lines
        )

    def made(self, name: str = "made") -> bool:
        """Whether a command has made its file in the workspace."""
        return (self.workspace / name).exists()
