"""Loaded by a daemon under test before anything else: sends that process a signal at a chosen moment.

The folder stands on the PYTHONPATH of the daemon alone. `CRASH_AT` is `WHEN NUMBER WORDS`: SIGKILL `before` or `after`
the commit of the NUMBERth write transaction in which a statement contained WORDS (none: of the NUMBERth at all), or
SIGTERM after it (`stop`). So the process ends between two commits, where no double of a platform or a model can hold
it, and without a pause or a hook in the daemon. With `work`, SIGKILL comes when the process has used NUMBER
milliseconds of processor time: at any moment of what it does, and never while it only waits.
"""

import os
import signal
import sqlite3
import threading
from collections.abc import Callable
from typing import Any

_LOCK = threading.Lock()


class _Plan:
    """When the process has to die, and how far it is from that."""

    def __init__(self, text: str) -> None:
        self.when, number, self.words = text.split(" ", 2)
        self._left = int(number)

    def is_reached(self) -> bool:
        """Count a transaction that fits."""
        with _LOCK:
            self._left -= 1
            return self._left == 0


def _send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def _die_at_work(milliseconds: int) -> None:
    signal.signal(signal.SIGPROF, lambda *_: _send(signal.SIGKILL))
    signal.setitimer(signal.ITIMER_PROF, milliseconds / 1000)


def _connection_class(plan: _Plan) -> type[sqlite3.Connection]:
    class DyingConnection(sqlite3.Connection):
        """A connection whose commits are counted."""

        _fits: bool | None = None
        """Whether the open write transaction counts; None: there is none."""

        def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:
            if sql == "BEGIN IMMEDIATE":
                self._fits = not plan.words
            elif self._fits is not None and plan.words and plan.words in sql:
                self._fits = True
            if sql != "COMMIT" or self._fits is None:
                return super().execute(sql, *rest)
            is_reached = self._fits and plan.is_reached()
            self._fits = None
            if is_reached and plan.when == "before":
                _send(signal.SIGKILL)
            cursor = super().execute(sql, *rest)
            if is_reached:
                _send(signal.SIGTERM if plan.when == "stop" else signal.SIGKILL)
            return cursor

    return DyingConnection


def _install(plan: _Plan) -> None:
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect
    factory = _connection_class(plan)

    def dying_connect(*args: Any, **options: Any) -> sqlite3.Connection:
        return connect(*args, factory=factory, **options)

    sqlite3.connect = dying_connect  # type: ignore[assignment]  # the overloads differ in what their options are


if text := os.environ.get("CRASH_AT"):
    if text.startswith("work "):
        _die_at_work(int(text.split()[1]))
    else:
        _install(_Plan(text))
