"""What the root command hands to the commands below it."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CliContext:
    """The options that stand before the command."""

    config: Path | None = None
    """The file of `--config`; None: the first that is found."""
