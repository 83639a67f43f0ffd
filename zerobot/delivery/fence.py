"""Keeps a fault where it happened."""

from collections.abc import Iterator
from contextlib import contextmanager

from zerobot.core.log import EventLog, Level


@contextmanager
def fenced(log: EventLog, event: str, level: Level, **fields: object) -> Iterator[None]:
    """Log whatever the body raises as an event, and go on after it.

    For what an adapter does beside the work itself (a draft, a signal, a prompt of one place): its faults, foreseen or
    not, must not touch a turn or another chat.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001 -- see above
        log(event, level=level, error=error, **fields)
