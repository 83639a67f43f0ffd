"""Processes that are measured: started, asked by way of /proc, and ended."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 60.0
"""Seconds for a process to get ready, and for the next of many turns to end."""
_TICKS = os.sysconf("SC_CLK_TCK")
MIB = 1024 * 1024

Kind = Literal["zerobot", "bare"]

CONFIG = """
[daemon]
state_dir = "{state}"
log_format = "json"
max_turns = {at_once}
[agent]
model = "main/m-1"
history_messages = {history}
[providers.main]
kind = "openai"
api_key = "sk-benchmark"
base_url = "{url}/v1"
[channels.{channel}]
{table}
[operators]
users = ["{operator}"]
"""


class Doubles:
    """The process of the servers; see `benchmarks/doubles.py` and `benchmarks/strict.py`.

    Args:
        url: The model's, and ours for orders.
        channel: What the daemon's configuration says of the platform.
    """

    def __init__(self, url: str, channel: Mapping[str, Any]) -> None:
        self.url = url
        self.channel = channel

    def do(self, what: str, **details: object) -> Any:
        """Tell it what to do, and return what it answers."""
        order = json.dumps({"do": what, **details}).encode()
        with urllib.request.urlopen(f"{self.url}/control", order, timeout=PATIENCE) as answer:
            return json.load(answer)

    def until_ended(self, turns: int) -> None:
        """Wait until so many turns in all have their final text; see `ends`."""
        for _ in self.ends(turns):
            pass

    def ends(self, turns: int) -> Iterator[int]:
        """Look again and again how many turns have their final text, until it is so many in all.

        Raises:
            RuntimeError: None has ended for a minute.
        """
        ended, since = -1, time.monotonic()
        while ended < turns:
            now = int(self.do("ended"))
            if now != ended:
                ended, since = now, time.monotonic()
            elif time.monotonic() - since > PATIENCE:
                raise RuntimeError(f"{ended} of {turns} turns have ended, and no more do")
            yield ended
            time.sleep(0.05)

    def turns(self, begin: int = 0) -> list[dict[str, float]]:
        """What is known of the turns from a number on; see `stage.Turn`."""
        found: list[dict[str, float]] = self.do("records", begin=begin)
        return found


class Target:
    """A process that is measured.

    Args:
        process: It.
        log: Its stderr.
        started: When it was started; seconds since the epoch.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path, started: float) -> None:
        self._process = process
        self._log = log
        self._started = started

    def events(self) -> Iterator[Mapping[str, Any]]:
        """What it has logged so far."""
        with self._log.open(encoding="utf-8") as lines:
            for line in lines:
                if line.endswith("\n") and line.startswith("{"):
                    yield json.loads(line)

    def ready(self) -> float:
        """Wait until it is ready; seconds that it took by its own account, to the millisecond.

        Raises:
            RuntimeError: It ended, or takes too long.
        """
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self._process.poll() is None:
            for event in self.events():
                if event["event"] == "daemon.ready":
                    return _moment(event) - self._started
            time.sleep(0.02)
        raise RuntimeError(f"it does not get ready:\n{self._log.read_text()}")

    def cpu(self) -> float:
        """Seconds of processor time so far, of all its threads, user and system."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory(self) -> dict[str, float]:
        """See `memory_of`."""
        return memory_of(self._process.pid)


def memory_of(pid: int) -> dict[str, float]:
    """MiB of a process: `rss`, `pss` (shared pages by share) and `peak` (of rss)."""
    rollup, status = _fields(f"/proc/{pid}/smaps_rollup"), _fields(f"/proc/{pid}/status")
    return {
        "rss": rollup["Rss"] / 1024,
        "pss": rollup["Pss"] / 1024,
        "peak": status["VmHWM"] / 1024,
    }


def _moment(event: Mapping[str, Any]) -> float:
    return float(event["at"]) if "at" in event else datetime.fromisoformat(event["ts"]).timestamp()


def _fields(path: str) -> dict[str, int]:
    """The numbers, in KiB, of a file of `Name: number kB` lines."""
    pairs = (line.split() for line in Path(path).read_text().splitlines() if line.endswith(" kB"))
    return {words[0].rstrip(":"): int(words[1]) for words in pairs}


@contextmanager
def doubles(*module: str) -> Iterator[Doubles]:
    """Run the servers: the lean ones, or another module with its arguments."""
    command = [sys.executable, "-m", *(module or ("benchmarks.doubles",))]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None, "it is a pipe"
        try:
            yield Doubles(**json.loads(process.stdout.readline()))
        finally:
            process.kill()


@contextmanager
def target(kind: Kind, servers: Doubles, history: int = 200, at_once: int = 64) -> Iterator[Target]:
    """Run what is measured, with a state directory of its own.

    Args:
        kind: The daemon or the bare libraries.
        servers: Whom it talks to.
        history: The daemon's `history_messages`.
        at_once: The daemon's `max_turns`.
    """
    with tempfile.TemporaryDirectory(prefix="zerobot-benchmark-") as name:
        folder = Path(name)
        config, log = folder / "zerobot.toml", folder / "log"
        config.write_text(_config(servers, state=folder / "state", history=history, at_once=at_once))
        config.chmod(0o600)
        commands = {
            "zerobot": ["-m", "zerobot", "run", "--config", str(config)],
            "bare": ["-m", "benchmarks.bare", servers.url],
        }
        with log.open("wb") as stderr:
            started = time.time()
            process = subprocess.Popen([sys.executable, *commands[kind]], cwd=ROOT, stderr=stderr, env=_environ(folder))
        try:
            yield Target(process, log, started)
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
            process.kill()
            process.wait()


def _config(servers: Doubles, **numbers: object) -> str:
    channel = servers.channel
    # What JSON writes of strings, numbers and lists is TOML too.
    table = "\n".join(f"{key} = {json.dumps(value)}" for key, value in channel["table"].items())
    return CONFIG.format(url=servers.url, channel=channel["name"], table=table, operator=channel["operator"], **numbers)


def _environ(home: Path) -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", ""), "HOME": str(home)}
