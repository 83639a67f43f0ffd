"""Which places a boxed command sees, and how: the system's, the bounds, what its line names, less the walls."""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from zerobot.sandbox.box import Needs
from zerobot.security.bounds import Bound, Bounds, within

SYSTEM = tuple(
    map(
        Path,
        (
            "/usr",
            "/bin",
            "/sbin",
            "/lib",
            "/lib32",
            "/lib64",
            "/libx32",
            "/etc",
            "/opt",
            "/nix/store",
            "/gnu/store",
            "/run/current-system",
        ),
    )
)
"""Where programs, their libraries and the settings of the machine are, on the usual systems."""

TMP = Path("/tmp")  # noqa: S108 - a private one

_OWN = (Path("/dev"), Path("/proc"))
_RESOLVER = Path("/etc/resolv.conf")


class View(StrEnum):
    """How a place is seen."""

    READ = "read"
    CHANGE = "change"
    HIDDEN = "hidden"


def places(bounds: Bounds, needs: Needs, private: Sequence[Path] = ()) -> Mapping[Path, View]:
    """The places of one command; a deeper one counts over those above it, and what lies in none is absent.

    Sorted so that a place comes after those above it. Only what is seen otherwise is hidden.

    Args:
        bounds: What is configured.
        needs: Of the command.
        private: Places of the system that only root may read, as from `private_places`.
    """
    found: dict[Path, View] = {place: View.READ for place in SYSTEM if place.is_dir() and not place.is_symlink()}
    if needs.network and _RESOLVER.is_symlink() and _RESOLVER.exists():
        # Many systems keep it in /run.
        found[_RESOLVER.resolve()] = View.READ
    roots = _roots(bounds)
    found |= reach(bounds, needs)
    found |= {root: View.CHANGE for root in roots if is_there(root)}
    # All of these were canonical once; where nothing was, a command may have made a link since.
    found = {place: view for place, view in found.items() if os.path.realpath(place) == str(place)}
    walls = {_reached(wall): View.HIDDEN for wall in (*bounds.own, *bounds.forbidden, *private)}
    pinned = {folder: View.CHANGE for wall in walls for folder in _folders_to(wall, found)}
    everything = dict(sorted({**pinned, **found, **walls}.items(), key=lambda item: len(item[0].parts)))
    return {place: view for place, view in everything.items() if view is not View.HIDDEN or _is_seen(place, everything)}


def reach(bounds: Bounds, needs: Needs) -> Mapping[Path, View]:
    """What a command reaches outside the bounds, by what its line names: an operator has to see all of it."""
    roots, found = _roots(bounds), dict[Path, View]()
    for place in needs.outside:
        found |= _named(place, roots, changes=needs.changes)
    return found


def view_of(path: Path, seen: Mapping[Path, View]) -> View | None:
    """How a path is seen; None: it is absent."""
    for place in (path, *path.parents):
        if place in seen:
            return seen[place]
    return None


def is_there(path: Path) -> bool:
    """Whether something stands at a path; what may not even be looked for is not there."""
    try:
        return path.exists()
    except PermissionError:
        return False


def is_folder(path: Path) -> bool:
    """The same for a folder."""
    return is_there(path) and path.is_dir()


def private_places(folder: Path = Path("/etc")) -> tuple[Path, ...]:
    """What root alone may read below a folder; empty unless this process is root, from whom nothing is hidden."""
    return tuple(_private(folder)) if os.geteuid() == 0 else ()


def holes(bounds: Bounds) -> list[Path]:
    """Forbidden and own places inside the roots that are reached by a link there, which no box can keep in place."""
    roots = (bounds.workspace, *bounds.allowed)
    return [
        wall
        for wall in (*bounds.own, *bounds.forbidden)
        if any(within(wall, root) and wall != root for root in roots) and wall.resolve() != wall
    ]


def _roots(bounds: Bounds) -> list[Path]:
    return [root for root in (bounds.workspace, *bounds.allowed) if bounds.judge(root) is Bound.INSIDE]


def _named(place: Path, roots: Iterable[Path], *, changes: bool) -> dict[Path, View]:
    """A place that the line names. A new file needs its folder; what holds the rest of the system is only read."""
    if place == TMP or any(within(place, own) for own in _OWN):
        # It has its own of that name.
        return {}
    if not is_there(place):
        place = place.parent
        if not changes or not is_folder(place) or _is_broad(place, roots):
            return {}
    return {place: View.CHANGE if changes and not _is_broad(place, roots) else View.READ}


def _is_broad(place: Path, roots: Iterable[Path]) -> bool:
    return any(within(other, place) for other in (*SYSTEM, *roots, TMP, *_OWN))


def _reached(wall: Path) -> Path:
    """A wall, or where nothing is yet the first missing name on the way to it: whoever makes that can make the rest."""
    for folder in reversed(wall.parents):
        if not os.path.lexists(folder):
            return folder
    return wall


def _folders_to(wall: Path, found: Mapping[Path, View]) -> Iterable[Path]:
    """The folders between a place that may be changed and a wall in it: one that is moved would take its wall along."""
    root = next((place for place in wall.parents if place in found), None)
    if root is None or found[root] is not View.CHANGE:
        return ()
    return [folder for folder in wall.parents if root in folder.parents]


def _is_seen(wall: Path, everything: Mapping[Path, View]) -> bool:
    above = next((everything[place] for place in wall.parents if place in everything), View.HIDDEN)
    return above is not View.HIDDEN


def _private(folder: Path) -> Iterable[Path]:
    try:
        with os.scandir(folder) as entries:
            found = list(entries)
    except OSError:
        return
    for entry in found:
        try:
            mode = entry.stat(follow_symlinks=False).st_mode
        except FileNotFoundError:
            continue
        if stat.S_ISLNK(mode):
            continue
        needed = stat.S_IROTH | stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH
        if mode & needed != needed:
            yield Path(entry.path)
        elif stat.S_ISDIR(mode):
            yield from _private(Path(entry.path))
