"""The values that `security.access.evaluate_tool_access` works with."""

from dataclasses import dataclass
from enum import StrEnum


class Autonomy(StrEnum):
    """The one dial of `[security]`."""

    READ_ONLY = "read_only"
    SUPERVISED = "supervised"
    FULL = "full"


class VerdictKind(StrEnum):
    """What may happen with a call."""

    ALLOW = "allow"
    ASK = "ask"
    BLOCK = "block"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to "may this call run?". Only `security.access` makes one; the executor takes nothing else."""

    kind: VerdictKind
    rule: str
    """Stable name of the rule that answered, for logs: `denied_tools`, `risk`, `grant`, ..."""
    reason: str
    """For people: why. A blocked call's reason is also what the model reads, so it teaches no way around."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What an operator's 'always in this chat' covers."""

    id: int
    conversation: int
    tool: str
    pattern: str
    """A command prefix for `shell` (words joined by one blank), a path root for file tools; empty: any arguments."""
    granted_by: str
    expires_at: str
    """UTC, ISO 8601."""
