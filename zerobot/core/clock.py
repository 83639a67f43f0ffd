"""Time as an argument, so that tests can hold it still."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for what is stored, monotonic time for what is measured, and the one way to wait."""

    def now(self) -> datetime:
        """The time in UTC, aware."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for some seconds of monotonic time."""
        ...
