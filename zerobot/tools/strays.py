"""Processes of a command that outlived its keeper: kept below the daemon, and ended.

A command runs as the user that the daemon runs as, so it can kill its keeper. What it started is then handed to the
next ancestor that takes orphans. The daemon is one (`PR_SET_CHILD_SUBREAPER`, prctl(2)), so they stay its descendants,
and whoever asks whether a process is one is told the truth. On systems without these calls nothing is done.
"""

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS = 40
_PAUSE = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    """What proc(5) says of a process."""

    pid: int
    state: str
    parent: int
    session: int
    started: int
    """Clock ticks since the system started."""


def adopt_orphans() -> None:
    """Make this process the parent of whatever is orphaned below it; once is enough, again does no harm."""
    call = getattr(ctypes.CDLL(None), "prctl", None)
    if call is not None:
        call(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def started_at(pid: int) -> int | None:
    """When a process started, in clock ticks since the system did; None when that cannot be known."""
    found = _read(pid)
    return found.started if found else None


def end_strays(since: int, keeper: Path) -> int:
    """Kill and reap adopted processes and all below them; return how many there were. Takes 0.2 seconds at most.

    A command lives in sessions of its own. So a child of this process in this process's session is left alone, and so
    is one that started earlier, or that runs a keeper: somebody here waits for it.

    Args:
        since: As from `started_at`: the keeper whose processes may be left.
        keeper: The script that keepers run.
    """
    ended: set[int] = set()
    for _ in range(_ROUNDS):
        found = _strays(since, os.fsencode(keeper))
        if not found:
            break
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        ended.update(found)
        time.sleep(_PAUSE)
        for pid in ended:
            # Only by its id: nobody else waits for it. One that is no child yet comes in a later round.
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
    return len(ended)


def _strays(since: int, keeper: bytes) -> list[int]:
    here, session = os.getpid(), os.getsid(0)
    living = [process for process in _all() if process.state not in "ZX"]
    found = [
        process.pid
        for process in living
        if process.parent == here
        and process.session != session
        and process.started >= since
        and keeper not in _command_line(process.pid)
    ]
    for pid in found:
        found.extend(process.pid for process in living if process.parent == pid)
    return found


def _all() -> Iterator[_Process]:
    with suppress(OSError), os.scandir("/proc") as entries:
        for entry in entries:
            process = _read(int(entry.name)) if entry.name.isdigit() else None
            if process:
                yield process


def _read(pid: int) -> _Process | None:
    try:
        # The name in brackets may hold anything, also brackets.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return _Process(
            pid=pid,
            state=fields[0].decode("ascii"),
            parent=int(fields[1]),
            session=int(fields[3]),
            started=int(fields[19]),
        )
    except (OSError, IndexError, ValueError):
        return None


def _command_line(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []
