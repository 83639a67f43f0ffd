"""What holds a shell command while it runs: one value that says so truthfully, for the policy and for people."""

from dataclasses import dataclass
from enum import StrEnum


class SandboxKind(StrEnum):
    """What was found, or chosen."""

    NONE = "none"
    """Wanted, but this system has none that works."""
    OFF = "off"
    """Switched off by the owner."""
    BUBBLEWRAP = "bubblewrap"


@dataclass(frozen=True, slots=True)
class SandboxState:
    """The sandbox of this process, found once at the start."""

    kind: SandboxKind = SandboxKind.NONE

    @property
    def holds(self) -> bool:
        """Whether a command is kept from what lies outside."""
        return self.kind not in (SandboxKind.NONE, SandboxKind.OFF)

    @property
    def declined(self) -> bool:
        """Whether the owner said in so many words that there shall be none."""
        return self.kind is SandboxKind.OFF

    def __str__(self) -> str:
        if self.holds:
            return f"{self.kind.value} (sees the workspace and the allowed paths only)"
        why = "switched off in the configuration" if self.declined else "none is available on this system"
        return f"no sandbox ({why}): it runs with all rights of the daemon's user"


NO_SANDBOX = SandboxState()
"""None was found."""
