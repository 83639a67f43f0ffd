"""Runs one command as a process that gets nothing of the daemon's, and ends with everything that it started."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from zerobot.tools.output import CappedOutput
from zerobot.tools.strays import adopt_orphans, end_strays, started_at

_KEEPER = Path(__file__).with_name("keeper.py")

STOP_GRACE = 1.5
"""Seconds that the keeper has to end a command's processes, before it is killed itself."""
DRAIN = 0.5
"""Seconds to wait for the end of the output once all processes have ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one command may use."""

    memory_bytes: int = 4 * 1024**3
    """Address space of each process; runtimes reserve far more of it than they use."""
    file_bytes: int = 1024**3
    open_files: int = 1_024
    processes: int = 512
    """Processes and threads of one command; the system counts none of root's."""
    head_bytes: int = 20_000
    """Of the output."""
    tail_bytes: int = 10_000

    def as_rlimits(self, seconds: float) -> dict[str, int]:
        """Names of `resource.RLIMIT_*` and their values; processor time follows from the time limit."""
        return {
            "RLIMIT_AS": self.memory_bytes,
            "RLIMIT_FSIZE": self.file_bytes,
            "RLIMIT_NOFILE": self.open_files,
            "RLIMIT_NPROC": self.processes,
            "RLIMIT_CORE": 0,
            "RLIMIT_CPU": int(seconds) + 5,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended."""

    output: str
    status: int | None
    """Exit status; negative: the number of the signal that ended it; None: not known (its keeper was killed)."""
    timed_out: bool = False
    left: int = 0
    """How many processes it left behind, which were ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run, and in which surroundings."""

    argv: tuple[str, ...]
    """The first is an absolute path."""
    folder: Path
    environment: Mapping[str, str]
    """All of it: nothing is inherited."""
    seconds: float
    limits: Limits = field(default_factory=Limits)


async def run_command(command: Command, progress: Callable[[str], None]) -> Ended:
    """Run a command to its end, its time limit, or cancellation; in each case none of its processes is left.

    Standard output and standard error arrive merged, in the order in which they were written. Standard input is empty.

    Args:
        command: What to run.
        progress: Called with the last line of each piece of output.

    Raises:
        OSError: No process can be started.
    """
    output = CappedOutput(command.limits.head_bytes, command.limits.tail_bytes)
    adopt_orphans()
    report_end, report = os.pipe()
    try:
        keeper = await _start(command, report)
    except BaseException:
        os.close(report_end)
        raise
    finally:
        os.close(report)
    since = started_at(keeper.pid)
    timed_out = False
    left = 0
    try:
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(_collect(keeper, output, progress), name="command output")
            try:
                async with asyncio.timeout(command.seconds):
                    await keeper.wait()
            except TimeoutError:
                timed_out = True
            finally:
                await _stop(keeper)
                # A process that cannot be ended may hold the pipe for ever.
                await asyncio.wait([reading], timeout=DRAIN)
                reading.cancel()
    finally:
        report_text = _read_all(report_end)
        if not report_text and since is not None:
            # Its keeper had no time to end what it started, or was killed by it.
            left = end_strays(since, _KEEPER)
    told = json.loads(report_text) if report_text else {}
    return Ended(output=output.text(), status=told.get("status"), timed_out=timed_out, left=told.get("left", left))


async def _start(command: Command, report: int) -> asyncio.subprocess.Process:
    limits = json.dumps(command.limits.as_rlimits(command.seconds))
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        str(_KEEPER),
        str(report),
        str(os.getpid()),
        limits,
        *command.argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        pass_fds=(report,),
        cwd=command.folder,
        env=dict(command.environment),
        start_new_session=True,
    )


async def _collect(keeper: asyncio.subprocess.Process, output: CappedOutput, progress: Callable[[str], None]) -> None:
    assert keeper.stdout is not None, "made with a pipe"
    while data := await keeper.stdout.read(1 << 16):
        output.add(data)
        lines = data.decode("utf-8", "replace").strip().splitlines()
        if lines:
            progress(lines[-1])


async def _stop(keeper: asyncio.subprocess.Process) -> None:
    """End the keeper, which ends everything below it. Cancellation in here is honoured after the kill."""
    if keeper.returncode is not None:
        return
    with suppress(ProcessLookupError):
        keeper.terminate()
    try:
        async with asyncio.timeout(STOP_GRACE):
            await keeper.wait()
    except TimeoutError:
        pass
    finally:
        if keeper.returncode is None:
            with suppress(ProcessLookupError):
                keeper.kill()
    # The system's word that it ended also waits for the output's end, which a stray may hold open.
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN):
            await keeper.wait()


def _read_all(handle: int) -> str:
    """Read a short report that was written by a process that has ended."""
    os.set_blocking(handle, False)
    with os.fdopen(handle, "rb") as file:
        return (file.read() or b"").decode("utf-8", "replace")
