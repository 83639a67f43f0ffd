"""Starts one shell command and outlives it by a moment: a script that runs in a process of its own.

It sets the limits, becomes the reaper of everything that the command leaves behind (`PR_SET_CHILD_SUBREAPER`), starts
the command, waits for it, ends whatever of it still runs, and reports on a descriptor that the command does not get.
So a child that has left the process group (`setsid`) ends too, and the daemon needs no code between fork and exec.
It imports nothing of zerobot. On systems without these calls only the process group is ended.

Arguments: the report's descriptor, the daemon's process id, the limits as JSON (name of a limit -> number), then the
program and its arguments.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Run the command; leave with its exit status, 128 + signal when one ended it."""
    report, daemon, limits, command = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4:]
    os.set_inheritable(report, False)  # noqa: FBT003 - the function takes it so
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # The daemon is gone: nobody wants the command any more.
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(name, _stop)
    if os.getppid() != daemon:
        # It ended before its end could be told: no signal will come.
        os._exit(128 + signal.SIGTERM)
    keeper = os.getpid()
    child = os.fork()
    if child == 0:
        _become(command, limits, keeper)
    status = _wait_for(child)
    os.write(report, json.dumps({"status": status, "left": _end_descendants(child)}).encode())
    os._exit(status if status >= 0 else 128 - status)


def _become(command: list[str], limits: dict[str, int], keeper: int) -> None:
    try:
        # A session of its own: `kill 0` in the command does not reach this process.
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(128 + signal.SIGKILL)
        for name, most in _counted(limits).items():
            kind = getattr(resource, name)
            hard = resource.getrlimit(kind)[1]
            bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (bound, bound))
        os.execv(command[0], command)  # noqa: S606 - the command names its own shell
    except (OSError, ValueError) as error:
        os.write(2, f"the command could not be started: {error}\n".encode())
    os._exit(127)


def _counted(limits: dict[str, int]) -> dict[str, int]:
    """The limits as the system takes them: it counts all processes and threads of a user, not those of one command.

    Where they cannot be counted there is no such limit. Root has none anyway.
    """
    if "RLIMIT_NPROC" not in limits:
        return limits
    found = 0
    for pid in _pids():
        with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/task") as tasks:
            found += sum(1 for task in tasks if task.stat().st_uid == os.getuid())
    others = {name: most for name, most in limits.items() if name != "RLIMIT_NPROC"}
    return {**others, "RLIMIT_NPROC": limits["RLIMIT_NPROC"] + found} if found else others


def _wait_for(child: int) -> int:
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            return os.waitstatus_to_exitcode(status)


def _stop(_number: int, _frame: object) -> None:
    _end_descendants(0)
    os._exit(128 + signal.SIGTERM)


def _end_descendants(group: int) -> int:
    """Kill all descendants until none is left; return how many there were."""
    ended: set[int] = set()
    for _ in range(200):
        found = _descendants()
        for pid in found:
            _kill(pid)
        ended.update(found)
        if group and not found:
            _kill(-group)
        while _reap():
            pass
        if not found:
            break
        time.sleep(0.005)
    return len(ended)


def _descendants() -> list[int]:
    """The ids of all living processes below this one; empty where /proc has no such thing."""
    parents: dict[int, list[int]] = {}
    for pid in _pids():
        state, parent = _state_and_parent(pid)
        if state not in (b"Z", b"X", b""):
            parents.setdefault(parent, []).append(pid)
    found = list(parents.get(os.getpid(), []))
    for pid in found:
        found.extend(parents.get(pid, []))
    return found


def _pids() -> list[int]:
    try:
        with os.scandir("/proc") as entries:
            return [int(entry.name) for entry in entries if entry.name.isdigit()]
    except OSError:
        return []


def _state_and_parent(pid: int) -> tuple[bytes, int]:
    """From /proc/PID/stat (proc(5)); the name in brackets may hold anything, also brackets."""
    try:
        handle = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return b"", 0
    try:
        state, parent = os.read(handle, 4_096).rpartition(b")")[2].split()[:2]
    except (OSError, ValueError):
        return b"", 0
    finally:
        os.close(handle)
    return state, int(parent)


def _kill(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def _reap() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _prctl(option: int, value: int) -> None:
    # Linux only; elsewhere there is no such function, and the process group is all that can be ended.
    call = getattr(ctypes.CDLL(None), "prctl", None)
    if call is not None:
        call(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
