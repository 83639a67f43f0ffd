"""Who started whom, by the system's own record."""

from pathlib import Path

# A process tree is not this deep; a loop (ids are used again) ends here.
_DEPTH = 64


def ancestors(pid: int, proc: Path = Path("/proc")) -> tuple[int, ...]:
    """The processes that a process descends from, its parent first.

    Where the system keeps no such record, or the process is gone, it is empty: nothing is known.
    """
    line: list[int] = []
    while pid > 1 and len(line) < _DEPTH:
        parent = _parent(proc / str(pid) / "stat")
        if parent is None:
            break
        line.append(parent)
        pid = parent
    return tuple(line)


def _parent(stat: Path) -> int | None:
    """The fourth field of a stat file (proc_pid_stat(5)); the second one, a name in brackets, may hold anything."""
    try:
        text = stat.read_text(encoding="utf-8", errors="replace")
        return int(text.rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None
