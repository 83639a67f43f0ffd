"""Landlock with a filter of system calls: for machines on which nobody may make namespaces."""

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from zerobot.sandbox.box import Boxed, Needs
from zerobot.sandbox.places import View, places, private_places
from zerobot.security.bounds import Bounds, within
from zerobot.security.sandbox import SandboxKind, SandboxState

_CONFINE = Path(__file__).with_name("confine.py")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts")
_READ_TOO = (Path("/proc"), Path("/sys/devices/system/cpu"), Path("/dev/fd"))


class Landlock:
    """A box made by the helper `confine.py`, which confines itself and then becomes the command.

    Args:
        bounds: What commands may reach.
    """

    state = SandboxState(SandboxKind.LANDLOCK)

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds

    @contextmanager
    def boxed(self, argv: tuple[str, ...], needs: Needs) -> Iterator[Boxed]:
        """The command behind the helper, with a folder of its own for temporary files."""
        with tempfile.TemporaryDirectory(prefix="zerobot-", ignore_cleanup_errors=True) as temporary:
            seen = places(self._bounds, needs, private_places())
            allowed = {
                "read": [str(path) for path in (*_without_hidden(seen, View.READ), *_READ_TOO)],
                "change": [*map(str, _without_hidden(seen, View.CHANGE)), *_DEVICES, temporary],
                "network": needs.network,
            }
            confined = (sys.executable, "-I", "-S", str(_CONFINE), json.dumps(allowed), *argv)
            yield Boxed(argv=confined, environment={"TMPDIR": temporary})


def walls_inside(bounds: Bounds) -> list[Path]:
    """Forbidden and own places inside the roots: landlock allows whole trees, and can take nothing out of one.

    The workspace may lie inside the daemon's own files; what counts is what lies in the workspace.
    """
    roots = (bounds.workspace, *bounds.allowed)
    return [wall for wall in (*bounds.own, *bounds.forbidden) if any(within(wall, root) for root in roots)]


def _without_hidden(seen: Mapping[Path, View], view: View) -> Iterable[Path]:
    """The trees to allow for a view; one that holds something hidden is allowed by the parts beside that."""
    hidden = [place for place, how in seen.items() if how is View.HIDDEN]
    for place, how in seen.items():
        if how is view:
            yield from _parts(place, hidden)


def _parts(place: Path, hidden: Iterable[Path]) -> Iterable[Path]:
    inside = [wall for wall in hidden if within(wall, place)]
    if not inside:
        yield place
    elif place not in inside:
        names: list[Path] = []
        # What may not be listed has no part that could be allowed.
        with suppress(PermissionError), os.scandir(place) as entries:
            names = [Path(entry.path) for entry in entries if not entry.is_symlink()]
        for name in names:
            yield from _parts(name, inside)
