"""The event log's shape; the daemon decides how events are written."""

from typing import Any, Literal, Protocol

Level = Literal["debug", "info", "warning", "error"]


class EventLog(Protocol):
    """Writes named events with fields. No secret and no message text goes in at `info` or above."""

    def __call__(
        self, event: str, /, *, level: Level = "info", error: BaseException | None = None, **fields: object
    ) -> None:
        """Write one event; `error` adds its type and text (and its traceback at debug), redacted."""
        ...


def silent(event: str, /, *, level: Level = "info", error: BaseException | None = None, **fields: object) -> None:
    """An `EventLog` that writes nothing."""


class BoundLog:
    """An `EventLog` that adds the same fields to every event: the ids of one unit of work."""

    def __init__(self, log: EventLog, **fields: object) -> None:
        self._log = log
        self._fields: dict[str, Any] = fields

    def __call__(
        self, event: str, /, *, level: Level = "info", error: BaseException | None = None, **fields: object
    ) -> None:
        """Write one event; a field given here wins over a bound one."""
        self._log(event, level=level, error=error, **{**self._fields, **fields})
