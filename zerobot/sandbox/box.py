"""The seam between a tool and what holds its command: a box turns the command into one that runs inside."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from zerobot.security.sandbox import SandboxState


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What one command may have beyond the workspace, the allowed paths and the system's programs."""

    folder: Path
    """Where it runs; canonical, inside the bounds."""
    network: bool = False
    outside: tuple[Path, ...] = ()
    """Canonical places outside the bounds that its line names. Whoever approved the line saw them."""
    changes: bool = True
    """Whether those may be changed; False where the line is known to only read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxed:
    """What to start instead of a command."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the command gets beside its own."""
    ends_the_rest: bool = False
    """Whether the box ends what its command leaves behind; what is seen to be left is then its own."""


class Box(Protocol):
    """Holds commands."""

    @property
    def state(self) -> SandboxState:
        """What it is, for the policy and for people."""
        ...

    @contextmanager
    def boxed(self, argv: tuple[str, ...], needs: Needs) -> Iterator[Boxed]:
        """What to start so that a command runs inside; what is made for it is gone afterwards.

        Args:
            argv: The command; the first is an absolute path.
            needs: What it may have.
        """
        ...


class NoBox:
    """Holds nothing: the command is started as it is."""

    def __init__(self, state: SandboxState) -> None:
        self.state = state

    @contextmanager
    def boxed(self, argv: tuple[str, ...], needs: Needs) -> Iterator[Boxed]:  # noqa: ARG002 - the seam's
        """The command itself."""
        yield Boxed(argv=argv)
