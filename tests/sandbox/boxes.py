"""A workspace with walls in it, and the shell tool in each kind of box that works on this machine."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.security.worlds import context, tools_of
from zerobot.core.tools import Execution, ToolOutput
from zerobot.sandbox.box import Box
from zerobot.sandbox.find import UnusableError, working_box
from zerobot.security.bounds import Bounds
from zerobot.security.policy import bounds_of
from zerobot.security.sandbox import SandboxKind
from zerobot.tools.process import Limits
from zerobot.tools.shell import ShellSettings


class Boxed:
    """The shell tool in a box.

    Args:
        kind: Of the box. A test is skipped where it does not work, with the reason.
        root: An empty folder.
        forbidden: Forbidden paths.
        limits: Of a command.
    """

    def __init__(
        self, kind: SandboxKind, root: Path, forbidden: Sequence[str] = (), limits: Limits | None = None
    ) -> None:
        self.root = root
        self.state = root / "state"
        self.workspace = self.state / "workspace"
        self.allowed = root / "allowed"
        self.later = self.workspace / "later"
        """Allowed too, and not there yet."""
        for folder in (self.workspace, self.allowed):
            folder.mkdir(parents=True, exist_ok=True)
        (self.state / "zerobot.db").write_text("everything", encoding="utf-8")
        self.bounds = bounds_of(
            workspace=self.workspace,
            allowed_paths=[str(self.allowed), str(self.later)],
            forbidden_paths=forbidden,
            own_paths=[self.state],
        )
        self.box = box_or_skip(kind, self.bounds)
        self._tool = tools_of(self.bounds, ShellSettings(limits=limits or Limits(), box=self.box))["shell"]

    def resolve(self, command: str, **more: object) -> Execution:
        """The call, not yet run."""
        return self._tool.resolve({"command": command, **more})

    async def run(self, command: str, **more: object) -> ToolOutput:
        """Run a line in the box."""
        return await self.resolve(command, **more).run(context())

    async def says(self, command: str, **more: object) -> str:
        """What a line prints, without the note on its end."""
        return (await self.run(command, **more)).text.rpartition("[")[0].strip()


def box_or_skip(kind: SandboxKind, bounds: Bounds) -> Box:
    """The box, tried out; the test is skipped where it does not work."""
    try:
        return working_box(kind, bounds, None)
    except UnusableError as error:
        pytest.skip(f"{kind} does not work here: {error}")


def unnamed(path: str | Path) -> str:
    """A path as a shell word in which it cannot be read, so that the line does not name it."""
    return "\"$(printf '%b' '" + "".join(f"\\x{byte:02x}" for byte in str(path).encode()) + "')\""
