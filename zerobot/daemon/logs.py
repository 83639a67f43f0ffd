"""Events on stderr, as JSON lines or for people to read. Whatever goes out passes the redactor first."""

import json
import logging
import sys
import threading
import traceback
from datetime import UTC, datetime
from typing import TextIO

from zerobot.core.log import EventLog, Level
from zerobot.security.redact import Redactor
from zerobot.security.visible import one_line

LEVELS: dict[str, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}
FOLD_AFTER = 3
"""Equal warnings in a row that are written; the rest of the row is counted and told when it ends."""


class StderrLog:
    """The daemon's event log.

    Args:
        stream: Where lines go.
        level: The least level that is written.
        as_json: One object a line, and nothing else; else a line for people.
        redactor: Takes secrets out of every line.
    """

    def __init__(self, stream: TextIO, level: Level, redactor: Redactor, *, as_json: bool) -> None:
        self._stream = stream
        self._threshold = LEVELS[level]
        self._redactor = redactor
        self._as_json = as_json
        self._lock = threading.Lock()
        self._last = ""
        self._repeats = 0

    def __call__(
        self, event: str, /, *, level: Level = "info", error: BaseException | None = None, **fields: object
    ) -> None:
        """Write one event, if its level is high enough. Fields that are None are left out."""
        if LEVELS[level] < self._threshold:
            return
        known = {key: _plain(value) for key, value in fields.items() if value is not None}
        if error is not None:
            known["error"] = f"{type(error).__name__}: {error}"
            if self._threshold <= LEVELS["debug"] or level == "error":
                known["traceback"] = "".join(traceback.format_exception(error))
        with self._lock:
            self._fold(event, level, known)

    def _fold(self, event: str, level: Level, fields: dict[str, object]) -> None:
        """Write the event, unless it says the same as those before it; a fault that lasts must not fill the disk."""
        said = f"{event} {fields}" if LEVELS[level] >= LEVELS["warning"] else ""
        if said and said == self._last:
            self._repeats += 1
            if self._repeats >= FOLD_AFTER:
                return
        else:
            if self._repeats >= FOLD_AFTER:
                self._write("log.repeated", "warning", {"times": self._repeats - FOLD_AFTER + 1})
            self._last, self._repeats = said, 0
        self._write(event, level, fields)

    def _write(self, event: str, level: Level, fields: dict[str, object]) -> None:
        now = datetime.now(UTC)
        if self._as_json:
            stamp = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            line = json.dumps({"event": event, "ts": stamp, "level": level, **fields}, ensure_ascii=False)
        else:
            line = _for_people(now, event, level, fields)
        try:
            self._stream.write(self._redactor.clean(line) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            # Nobody reads stderr any more (a closed pipe): work goes on without a log.
            return


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | float | str | list | dict) else str(value)


def _for_people(now: datetime, event: str, level: Level, fields: dict[str, object]) -> str:
    trace = str(fields.pop("traceback", ""))
    words = " ".join(f"{key}={one_line(str(value))}" for key, value in fields.items())
    mark = "" if level == "info" else f" {level.upper()}"
    line = f"{now.astimezone():%H:%M:%S}{mark} {event} {words}".rstrip()
    return f"{line}\n{trace}".rstrip() if trace else line


class _LibraryHandler(logging.Handler):
    """Turns what libraries log into events."""

    def __init__(self, log: EventLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a library's record as `library.log`."""
        level: Level = "error" if record.levelno >= logging.ERROR else "warning"
        error = record.exc_info[1] if record.exc_info else None
        self._log("library.log", level=level, error=error, logger=record.name, text=record.getMessage())


def log_to(stream: TextIO, level: Level, redactor: Redactor, form: str) -> StderrLog:
    """Make the daemon's log, and send the libraries' warnings through it.

    Args:
        stream: Usually stderr.
        level: `[daemon] log_level`.
        redactor: Knows the configured secrets.
        form: `auto`, `console` or `json`; `auto` is for people at a terminal.
    """
    as_json = form == "json" or (form == "auto" and not stream.isatty())
    log = StderrLog(stream, level, redactor, as_json=as_json)
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, _LibraryHandler):
            root.removeHandler(handler)
    root.addHandler(_LibraryHandler(log))
    # They write each request with its address, and a token may be part of that.
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return log


def stderr_log(level: Level, redactor: Redactor, form: str) -> StderrLog:
    """See `log_to`; on stderr."""
    return log_to(sys.stderr, level, redactor, form)
