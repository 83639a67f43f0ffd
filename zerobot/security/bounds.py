"""Where a canonical path lies: inside the bounds, outside, in a forbidden place, or among the daemon's own files."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

ATTACHMENTS = "attachments"
"""The folder of the workspace that holds what people have attached."""


class Bound(StrEnum):
    """The place of a path."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    FORBIDDEN = "forbidden"
    OWN = "own"
    """The daemon's config, state, keys and secret files: no tool reads or writes them, whatever is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Roots as canonical absolute paths. The order of force: own, then forbidden, then allowed."""

    workspace: Path
    allowed: tuple[Path, ...] = ()
    forbidden: tuple[Path, ...] = ()
    own: tuple[Path, ...] = ()
    """The state directory may stand here although the workspace lies in it: the workspace is carved out."""

    def judge(self, path: Path) -> Bound:
        """Say where a canonical path (absolute, links resolved) lies."""
        if any(self._is_own(path, root) for root in self.own):
            return Bound.OWN
        if any(_within_loosely(path, root) for root in self.forbidden):
            return Bound.FORBIDDEN
        return Bound.INSIDE if self.root_of(path) is not None else Bound.OUTSIDE

    def root_of(self, path: Path) -> Path | None:
        """The innermost root that holds a canonical path, whether or not something forbids it."""
        roots = [root for root in (self.workspace, *self.allowed) if within(path, root)]
        return max(roots, key=lambda root: len(root.parts), default=None)

    def is_attached(self, path: Path) -> bool:
        """Whether a canonical path is where people's attachments lie: what is in them may be by anybody."""
        return within(path, self.workspace / ATTACHMENTS)

    def _is_own(self, path: Path, root: Path) -> bool:
        if not _within_loosely(path, root):
            return False
        carved_out = self.workspace != root and within(self.workspace, root)
        return not (carved_out and within(path, self.workspace))


def within(path: Path, root: Path) -> bool:
    """Whether a path is a root or lies below it, component by component."""
    return _below(str(path), str(root))


def _within_loosely(path: Path, root: Path) -> bool:
    # What is refused is compared without case: on some file systems `SECRET` is `secret` (CVE-2025-59944).
    return _below(str(path).casefold(), str(root).casefold())


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root if root.endswith("/") else f"{root}/")
