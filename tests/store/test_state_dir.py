"""The state directory is private and held by one process."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.store.rows import NOW
from zerobot.core.errors import StateLockedError, StorageError
from zerobot.store.columns import stamp
from zerobot.store.state_dir import StateDir

HOLD = """
import sys, time
from datetime import UTC, datetime
from pathlib import Path
from zerobot.store.state_dir import StateDir

with StateDir(Path(sys.argv[1])).lock(now=datetime(2026, 1, 5, 9, tzinfo=UTC), command="zerobot run"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    return StateDir(tmp_path / "state")


@contextmanager
def held_elsewhere(state: StateDir) -> Iterator[subprocess.Popen[str]]:
    """Another process holds the lock."""
    command = [sys.executable, "-c", HOLD, str(state.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_directory_is_private(state: StateDir) -> None:
    """0700 whatever the umask is, its parents included when they are missing."""
    before = os.umask(0)
    try:
        assert state.prepare() == ()
    finally:
        os.umask(before)
    assert mode(state.path) == 0o700


@pytest.mark.parametrize("bits", [0o720, 0o702, 0o777])
def test_a_directory_that_others_may_write_is_refused(state: StateDir, bits: int) -> None:
    """With the command that mends it, and the lock is refused too."""
    state.prepare()
    state.path.chmod(bits)
    with pytest.raises(StorageError, match=f"chmod go-rwx {state.path}"):
        state.prepare()
    with pytest.raises(StorageError), state.lock(now=NOW, command="zerobot run"):
        pass


def test_a_directory_that_others_may_read_is_a_warning(state: StateDir) -> None:
    """It is used, and the command that mends it is told."""
    state.prepare()
    state.path.chmod(0o755)
    (warning,) = state.prepare()
    assert f"chmod go-rwx {state.path}" in warning


def test_a_file_in_its_place_is_a_storage_error(state: StateDir) -> None:
    """Not a traceback."""
    state.path.write_text("")
    with pytest.raises(StorageError, match="cannot use the state directory"):
        state.prepare()


def test_a_second_process_is_told_who_holds_it(state: StateDir) -> None:
    """By process id, command and time."""
    with (
        held_elsewhere(state) as process,
        pytest.raises(StateLockedError) as caught,
        state.lock(now=NOW, command="zerobot run"),
    ):
        pass
    for part in (str(process.pid), "zerobot run", stamp(NOW), str(state.path)):
        assert part in str(caught.value)


def test_the_lock_dies_with_its_process(state: StateDir) -> None:
    """After kill -9 the next one can start at once."""
    with held_elsewhere(state) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        with state.lock(now=NOW, command="zerobot run"):
            assert str(os.getpid()) in state.lock_path.read_text()


def test_the_lock_is_given_back(state: StateDir) -> None:
    """Also when its holder ends by an error; nobody is named any more."""
    with pytest.raises(LookupError), state.lock(now=NOW, command="zerobot run"):
        raise LookupError
    with held_elsewhere(state):
        pass
    assert mode(state.lock_path) == 0o600


def test_a_lock_without_a_name_is_still_a_lock(state: StateDir) -> None:
    """Between taking the lock and writing its name a process counts too."""
    with held_elsewhere(state):
        state.lock_path.write_text("")
        with pytest.raises(StateLockedError, match="another process"), state.lock(now=NOW, command="zerobot run"):
            pass


def test_a_child_does_not_inherit_the_lock(state: StateDir) -> None:
    """What a tool leaves running in the background does not keep the daemon from starting again."""
    with state.lock(now=NOW, command="zerobot run"):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    try:
        with held_elsewhere(state):
            pass
    finally:
        child.communicate(b"\n")


def test_a_secret_is_made_once(state: StateDir) -> None:
    """Random, private, the same ever after; another name is another secret."""
    state.prepare()
    first = state.secret("receipts")
    assert len(first) == 32
    assert StateDir(state.path).secret("receipts") == first
    assert state.secret("other") != first
    assert sorted(entry.name for entry in state.path.iterdir()) == ["other.key", "receipts.key"]
    assert mode(state.path / "receipts.key") == 0o600


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
def test_a_damaged_secret_is_not_used(state: StateDir, content: bytes) -> None:
    """Receipts made with half a key would look good and mean nothing."""
    state.prepare()
    state.secret("receipts")
    (state.path / "receipts.key").write_bytes(content)
    with pytest.raises(StorageError, match="damaged"):
        state.secret("receipts")


def test_a_secret_that_others_can_read_is_not_used(state: StateDir) -> None:
    """With the command that mends it."""
    state.prepare()
    state.secret("receipts")
    (state.path / "receipts.key").chmod(0o640)
    with pytest.raises(StorageError, match="chmod 600"):
        state.secret("receipts")


def test_the_workspace_is_inside_and_the_rest_beside_it(state: StateDir) -> None:
    """No file of the daemon lies in the tools' reach."""
    for path in (state.database_path, state.socket_path, state.lock_path):
        assert path.parent == state.path
        assert state.workspace not in path.parents
