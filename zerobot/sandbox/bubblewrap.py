"""Bubblewrap: each command in namespaces of its own, with a file system that is put together for it."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from zerobot.sandbox.box import Boxed, Needs
from zerobot.sandbox.places import SYSTEM, TMP, View, is_folder, is_there, places, private_places, view_of
from zerobot.security.bounds import Bounds
from zerobot.security.sandbox import SandboxKind, SandboxState

TMP_BYTES = 1024**3
PROGRAM_FOLDERS = "/usr/local/bin:/usr/bin:/bin"


class Bubblewrap:
    """A box made by bubblewrap(1).

    Args:
        program: Its path.
        bounds: What commands may reach.
        options: Names of options that this version has, beyond those that all have.
    """

    state = SandboxState(SandboxKind.BUBBLEWRAP)

    def __init__(self, program: str, bounds: Bounds, options: Sequence[str] = ()) -> None:
        self._program = program
        self._bounds = bounds
        self._options = options

    @contextmanager
    def boxed(self, argv: tuple[str, ...], needs: Needs) -> Iterator[Boxed]:
        """The command behind bubblewrap, which makes its surroundings and ends with it."""
        around = (self._program, *self._namespaces(needs), *self._files(needs))
        yield Boxed(argv=(*around, "--", *argv), ends_the_rest=True)

    def _namespaces(self, needs: Needs) -> list[str]:
        arguments = ["--unshare-all", "--unshare-user", "--die-with-parent", "--cap-drop", "ALL"]
        if needs.network:
            arguments.append("--share-net")
        if "--disable-userns" in self._options:
            arguments.append("--disable-userns")
        return arguments

    def _files(self, needs: Needs) -> list[str]:
        seen = places(self._bounds, needs, private_places())
        arguments: list[str] = []
        closed: list[str] = []
        if Path("/") in seen:
            arguments += _bind(Path("/"), seen[Path("/")])
        arguments += self._fresh(seen.keys())
        for link in (place for place in SYSTEM if place.is_symlink() and Path("/") not in seen):
            arguments += ["--symlink", str(link.readlink()), str(link)]
        for place, view in seen.items():
            if view is not View.HIDDEN:
                arguments += _bind(place, view) if place != Path("/") else []
            elif is_folder(place) or (view_of(place.parent, seen) is View.CHANGE and _could_come(place)):
                # Also where nothing is yet: a name that is taken cannot be made.
                arguments += ["--tmpfs", str(place)]
                closed.append(str(place))
            elif is_there(place):
                arguments += ["--ro-bind", "/dev/null", str(place)]
        # What was made to hang the others in is nobody's to write; nor are, for root, the kernel's settings in /proc.
        for folder in (*reversed(closed), "/proc", *([] if Path("/") in seen else ["/"])):
            arguments += ["--remount-ro", folder]
        return [*arguments, "--chdir", str(needs.folder)]

    def _fresh(self, seen: Iterable[Path]) -> list[str]:
        arguments = ["--proc", "/proc", "--dev", "/dev"]
        if TMP in seen:
            return arguments
        size = ["--size", str(TMP_BYTES)] if "--size" in self._options else []
        return [*arguments, *size, "--tmpfs", str(TMP)]


def find_program() -> str | None:
    """The path of bubblewrap; None: it is not installed."""
    return shutil.which("bwrap", path=PROGRAM_FOLDERS)


def options_of(program: str) -> tuple[str, ...]:
    """Which of the options that came later a version has: no namespaces inside (0.8), a limit for /tmp (0.7)."""
    told = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=10, check=False)  # noqa: S603 - a fixed path
    return tuple(option for option in ("--disable-userns", "--size") if f"    {option} " in told.stdout)


def _could_come(place: Path) -> bool:
    return not is_there(place) and os.access(place.parent, os.W_OK | os.X_OK)


def _bind(place: Path, view: View) -> list[str]:
    return ["--bind" if view is View.CHANGE else "--ro-bind", str(place), str(place)]
