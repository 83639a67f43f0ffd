"""The values that `security.access.evaluate_tool_access` works with."""

from dataclasses import InitVar, dataclass, field
from enum import StrEnum

from zerobot.core.tools import Execution


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


VERDICT_MAKER = object()
"""What `security.access` shows when it makes a verdict; a test sees that nobody else does."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to "may this execution run?". Only `security.access` makes one; the executor takes nothing else.

    A verdict cannot be made over (`dataclasses.replace` raises), and it is about one execution, which it carries.
    """

    kind: VerdictKind
    rule: str
    """Stable name of the rule that answered, for logs: `denied_tools`, `risk`, `grant`, ..."""
    reason: str
    """For people: why. A blocked call's reason is also what the model reads, so it teaches no way around."""
    execution: Execution = field(repr=False)
    """What was judged, and nothing else may run by it."""
    maker: InitVar[object]

    def __post_init__(self, maker: object) -> None:
        """Refuse to be made by anybody else.

        Raises:
            TypeError: Somebody else did.
        """
        if maker is not VERDICT_MAKER:
            raise TypeError("only zerobot.security.access makes a verdict")


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
