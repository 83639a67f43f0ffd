"""Files as tools may touch them: bounds are judged after links are resolved, and held again while opening.

A path is first brought to its canonical form and judged. It is then opened component by component from its root,
each by a handle on its parent and without following links. So what is opened is what was judged, even if somebody
puts a link into the way in between: such an open fails. (`openat2` with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS does
the same in one call on Linux; the walk does it everywhere, so there is only the walk.)
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from zerobot.security.bounds import Bound, Bounds, within
from zerobot.security.visible import one_line

MAX_PATH_BYTES = 4_095
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Opening a pipe or a device must not wait for, or do, anything.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class BadPathError(ValueError):
    """The text is no path at all; `str(error)` may be read by a model."""


class PathRefusedError(Exception):
    """The path is a path, but not one that a tool may touch; `str(error)` may be read by a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """What was read of a file."""

    data: bytes
    size: int
    """Bytes of the whole file."""

    @property
    def complete(self) -> bool:
        """Whether `data` is all of it."""
        return len(self.data) >= self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name in a directory."""

    path: Path
    kind: str
    """`file`, `directory`, `link` or `other`; a link is never followed."""
    size: int = 0
    """Bytes, of a file."""
    depth: int = 1


class GuardedFiles:
    """The only way in which tools reach files."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds

    def canonical(self, text: str, base: Path | None = None) -> Path:
        """Resolve what a model wrote to an absolute path without links; it need not exist, and is not judged.

        Args:
            text: Relative paths are below `base`; nothing is expanded: `~` and `$HOME` are names.
            base: A canonical directory; the workspace when None.

        Raises:
            BadPathError: It holds NUL or a lone surrogate, or is too long.
            PathRefusedError: It leads through a loop of links.
        """
        try:
            raw = text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise BadPathError("the path is not valid Unicode text") from error
        if b"\0" in raw:
            raise BadPathError("the path holds a NUL character")
        if len(raw) > MAX_PATH_BYTES:
            raise BadPathError(f"the path is longer than {MAX_PATH_BYTES} bytes")
        real = os.path.realpath(os.path.join(base or self.bounds.workspace, text))  # noqa: PTH118, PTH - "" is the base
        try:
            looped = stat.S_ISLNK(os.lstat(real).st_mode)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise BadPathError("a name in the path is too long") from error
            looped = error.errno == errno.ELOOP
        if looped:
            raise PathRefusedError("the path leads through a loop of links")
        return Path(real)

    def shown(self, path: Path) -> str:
        """A path as people and models know it: relative to the workspace when it lies there, on one visible line."""
        inside = within(path, self.bounds.workspace)
        return one_line(str(path.relative_to(self.bounds.workspace) if inside else path))

    def read_bytes(self, path: Path, limit: int) -> FileContent:
        """Read the first `limit` bytes of a regular file.

        Raises:
            PathRefusedError: It is out of bounds, or something else than a regular file.
            OSError: The system says so (not found, no permission).
        """
        with self.opened(path) as file:
            handle = file.fileno()
            return FileContent(data=_read_up_to(handle, limit), size=os.fstat(handle).st_size)

    @contextmanager
    def opened(self, path: Path) -> Iterator[FileIO]:
        """A regular file, open for reading.

        Raises:
            PathRefusedError: It is out of bounds, or something else than a regular file.
            OSError: The system says so (not found, no permission).
        """
        with self._parent(path) as (folder, name), FileIO(self._open(name, _READ, folder)) as file:
            mode = os.fstat(file.fileno()).st_mode
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(errno.EISDIR, "is a directory")
            if not stat.S_ISREG(mode):
                raise PathRefusedError("it is not a regular file")
            yield file

    def write_bytes(self, path: Path, data: bytes) -> bool:
        """Replace or create a file as a whole, so that nobody sees half of it; missing parents are made.

        The mode of an existing file is kept. True when the file is new.

        Raises:
            PathRefusedError: It is out of bounds, or something else than a regular file stands there.
            OSError: The system says so (no space, no permission).
        """
        with self._parent(path, make=True) as (folder, name):
            mode = self._mode_of(name, folder)
            temporary = f".{secrets.token_hex(8)}.tmp"
            # A new file has the mode that the daemon's umask leaves; an existing one keeps its own.
            handle = os.open(temporary, _CREATE, 0o666 if mode is None else 0o600, dir_fd=folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    if mode is not None:
                        os.fchmod(file.fileno(), mode)
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(temporary, dir_fd=folder)
                raise
            return mode is None

    def write_text(self, path: Path, text: str) -> bool:
        """The same for text, as UTF-8."""
        return self.write_bytes(path, text.encode("utf-8"))

    def is_directory(self, path: Path) -> bool:
        """Whether a directory inside the bounds stands there; False also when it is out of bounds."""
        try:
            with self._directory(path):
                return True
        except (OSError, PathRefusedError):
            return False

    def list_dir(self, path: Path) -> list[Entry]:
        """The names in a directory, sorted; what is forbidden or the daemon's own is left out.

        Raises:
            PathRefusedError: It is out of bounds.
            OSError: The system says so (not found, not a directory).
        """
        with self._directory(path) as folder, os.scandir(folder) as found:
            entries = [_entry(path, item) for item in found]
        return sorted((e for e in entries if self._may_be_seen(e)), key=lambda entry: entry.path.name)

    def walk(self, path: Path, depth: int) -> Iterator[Entry]:
        """Everything below a directory down to a depth, parents first; links are named and not followed.

        A directory that cannot be read is passed over.

        Raises:
            PathRefusedError, OSError: As `list_dir`, for the directory itself.
        """
        waiting = [(entry, 1) for entry in reversed(self.list_dir(path))]
        while waiting:
            entry, level = waiting.pop()
            yield Entry(path=entry.path, kind=entry.kind, size=entry.size, depth=level)
            if entry.kind == "directory" and level < depth:
                try:
                    below = self.list_dir(entry.path)
                except (OSError, PathRefusedError):
                    continue
                waiting.extend((child, level + 1) for child in reversed(below))

    def _may_be_seen(self, entry: Entry) -> bool:
        # The place of a link is where its own name stands: it is shown, and judged anew when somebody follows it.
        return self.bounds.judge(entry.path) is Bound.INSIDE

    def _root_for(self, path: Path) -> Path:
        root = self.bounds.root_of(path)
        if root is None or self.bounds.judge(path) is not Bound.INSIDE:
            raise PathRefusedError("the path is out of bounds")
        return root

    @contextmanager
    def _directory(self, path: Path) -> Iterator[int]:
        """A handle on a directory inside the bounds."""
        root = self._root_for(path)
        handle = os.open(root, _DIRECTORY)
        try:
            for name in path.relative_to(root).parts:
                handle = self._step(handle, name, make=False)
            yield handle
        finally:
            os.close(handle)

    @contextmanager
    def _parent(self, path: Path, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """A handle on the directory that a path stands in, and the path's last name."""
        root = self._root_for(path)
        if path == root and root.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a directory")
        # An allowed path may be one file: then its folder is the place to start from.
        start = root.parent if path == root else root
        handle = os.open(start, _DIRECTORY)
        try:
            for name in path.relative_to(start).parts[:-1]:
                handle = self._step(handle, name, make=make)
            yield handle, path.name
        finally:
            os.close(handle)

    def _step(self, parent: int, name: str, *, make: bool) -> int:
        """Go down one directory and close the handle on its parent, unless that fails."""
        if make:
            # What stands there already is opened below, and refused there if it is no directory.
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=parent)
        child = self._open(name, _DIRECTORY, parent)
        os.close(parent)
        return child

    def _open(self, name: str, flags: int, folder: int) -> int:
        try:
            return os.open(name, flags, dir_fd=folder)
        except OSError as error:
            # O_NOFOLLOW met a link: ELOOP, or ENOTDIR together with O_DIRECTORY. The canonical path had none.
            if _is_link(name, folder):
                raise PathRefusedError("the path has changed: a link stands in it now") from error
            if error.errno == errno.ENXIO:
                raise PathRefusedError("it is not a regular file") from error
            raise

    def _mode_of(self, name: str, folder: int) -> int | None:
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, "is a directory")
        if not stat.S_ISREG(status.st_mode):
            raise PathRefusedError("something else than a regular file stands there")
        return stat.S_IMODE(status.st_mode) & 0o777


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _entry(folder: Path, item: os.DirEntry[str]) -> Entry:
    path = folder / item.name
    if item.is_symlink():
        return Entry(path=path, kind="link")
    if item.is_dir(follow_symlinks=False):
        return Entry(path=path, kind="directory")
    if not item.is_file(follow_symlinks=False):
        return Entry(path=path, kind="other")
    try:
        return Entry(path=path, kind="file", size=item.stat(follow_symlinks=False).st_size)
    except FileNotFoundError:
        return Entry(path=path, kind="other")


def _read_up_to(handle: int, limit: int) -> bytes:
    chunks: list[bytes] = []
    left = limit
    while left > 0 and (chunk := os.read(handle, min(left, 1 << 20))):
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)
