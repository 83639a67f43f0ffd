"""Whether a box holds, found by trying: a shell inside it does what must fail, and what it reached is looked at."""

import secrets
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from zerobot.sandbox.box import Box, Needs

PATIENCE = 10.0
"""Seconds; a box that hangs is none."""

# It goes on after each failure: what counts is what is found outside afterwards, and what it prints.
_ATTEMPTS = """
cat "$1/secret"
echo reached > "$1/written"
exec 3<>"/dev/tcp/127.0.0.1/$2"
echo reached > "/dev/udp/127.0.0.1/$3"
cat "/proc/$4/environ"
kill -9 "$4"
: >> /proc/sys/kernel/core_pattern && echo "kernel-$5"
test -r . && test -w . && echo "$5"
"""


def what_leaks(box: Box, workspace: Path, beside: Path | None) -> str:
    """Run the attempts in a box; what came through, for people. Empty: it holds.

    Args:
        box: To be tried.
        workspace: Where commands run.
        beside: An existing folder in which something secret is put; None: the system's folder for such things.
    """
    nonce = secrets.token_hex(8)
    try:
        with ExitStack() as stack:
            outside = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=".sandbox-", dir=beside)))
            (outside / "secret").write_text(f"outside-{nonce}", encoding="utf-8")
            tcp = stack.enter_context(_listening(socket.SOCK_STREAM))
            udp = stack.enter_context(_listening(socket.SOCK_DGRAM))
            victim = stack.enter_context(_victim(f"victim-{nonce}"))
            targets = (str(outside), str(_port(tcp)), str(_port(udp)), str(victim.pid), f"started-{nonce}")
            argv = ("/bin/bash", "--norc", "--noprofile", "-c", _ATTEMPTS, "probe", *targets)
            boxed = stack.enter_context(box.boxed(argv, Needs(folder=workspace)))
            said = _run(boxed.argv, workspace)
            if f"started-{nonce}" not in said:
                return f"it cannot be started ({_first_line(said)})"
            found = {
                "files outside can be read": f"outside-{nonce}" in said,
                "files outside can be written": (outside / "written").exists(),
                "TCP goes out": _was_reached(tcp),
                "UDP goes out": _was_reached(udp),
                "other processes' variables can be read": f"victim-{nonce}" in said,
                "other processes can be ended": not _answers(victim),
                "the kernel's settings can be changed": f"kernel-started-{nonce}" in said,
            }
    except (OSError, subprocess.SubprocessError) as error:
        return f"it cannot be started ({error})"
    return "; ".join(what for what, leaks in found.items() if leaks)


def _run(argv: tuple[str, ...], folder: Path) -> str:
    done = subprocess.run(  # noqa: S603 - the box's own words and a script of ours
        argv,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE,
        check=False,
        start_new_session=True,
    )
    return done.stdout.decode("utf-8", "replace")


@contextmanager
def _victim(mark: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process like any other of this user: it echoes, and has a variable that is nobody's business."""
    with subprocess.Popen(
        ["/bin/cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env={"MARK": mark},
        close_fds=True,
        start_new_session=True,
    ) as victim:
        try:
            yield victim
        finally:
            victim.kill()


def _answers(victim: subprocess.Popen[bytes]) -> bool:
    """Whether it lives; one that was sent a signal may take a moment to be seen as ended, but says nothing more."""
    assert victim.stdin is not None, "made with pipes"
    assert victim.stdout is not None, "made with pipes"
    try:
        victim.stdin.write(b"?")
        return victim.stdout.read(1) == b"?"
    except BrokenPipeError:
        return False


@contextmanager
def _listening(kind: socket.SocketKind) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, kind) as listener:
        listener.bind(("127.0.0.1", 0))
        if kind is socket.SOCK_STREAM:
            listener.listen()
        listener.setblocking(False)  # noqa: FBT003 - the function takes it so
        yield listener


def _port(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


def _was_reached(listener: socket.socket) -> bool:
    """Whether a connection waits, or a datagram."""
    try:
        if listener.type == socket.SOCK_STREAM:
            listener.accept()[0].close()
        else:
            listener.recv(64)
    except BlockingIOError:
        return False
    return True


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "it says nothing")
