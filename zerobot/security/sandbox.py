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
    LANDLOCK = "landlock"
    """Together with a filter of system calls for what landlock does not see."""


_HOLDS = {
    SandboxKind.BUBBLEWRAP: "it sees the system's programs, and changes only the workspace and the allowed paths",
    SandboxKind.LANDLOCK: "it reads the system's programs, and changes files only in the workspace and the allowed "
    "paths; it can still see which files there are and change the modes of those of the daemon's user",
}


@dataclass(frozen=True, slots=True)
class SandboxState:
    """The sandbox of this process, found once at the start."""

    kind: SandboxKind = SandboxKind.NONE
    why: str = ""
    """Of NONE: why each kind does not work here, for the owner."""

    @property
    def holds(self) -> bool:
        """Whether a command is kept from what lies outside."""
        return self.kind in _HOLDS

    @property
    def declined(self) -> bool:
        """Whether the owner said in so many words that there shall be none."""
        return self.kind is SandboxKind.OFF

    def __str__(self) -> str:
        if self.holds:
            return f"{self.kind.value}: {_HOLDS[self.kind]}; no network unless the call has it"
        why = "switched off in the configuration" if self.declined else "none works on this system"
        return f"no sandbox ({why}): it runs with all rights of the daemon's user"


NO_SANDBOX = SandboxState()
"""None was found."""
