"""The log: one object a line, folded, without secrets, and never in the way of the work."""

import io
import json
import logging

from zerobot.daemon.logs import StderrLog, log_to
from zerobot.security.redact import Redactor

SECRET = 'p4ss"word\\with-odd characters'


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    """The events that were written."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_every_event_is_one_object_with_its_fields() -> None:
    """Values of any kind are written; fields that are None are left out."""
    stream = io.StringIO()
    log = StderrLog(stream, "info", Redactor(), as_json=True)
    log("turn.finished", turn="t1", steps=2, cost=None, reason=ValueError("as text"), text="a\nb")
    (event,) = lines(stream)
    assert event["event"] == "turn.finished"
    assert event["level"] == "info"
    assert str(event["ts"]).endswith("Z")
    assert event["steps"] == 2
    assert event["reason"] == "as text"
    assert "cost" not in event


def test_a_secret_is_masked_in_fields_errors_and_tracebacks_and_the_line_stays_json() -> None:
    """B036: also one that JSON has to escape."""
    stream = io.StringIO()
    log = StderrLog(stream, "debug", Redactor([SECRET]), as_json=True)
    try:
        int(SECRET)
    except ValueError as error:
        log("model.failed", level="error", error=error, text=f"key {SECRET} end", nested={"a": [SECRET]})
    (event,) = lines(stream)
    assert SECRET not in str(event)
    assert json.dumps(SECRET)[1:-1] not in stream.getvalue()
    assert "[redacted]" in str(event["text"])
    assert "Traceback" in str(event["traceback"])


def test_equal_faults_in_a_row_are_folded_and_counted() -> None:
    """B079: a fault that lasts writes a few lines, and how often it came when it ends."""
    stream = io.StringIO()
    log = StderrLog(stream, "info", Redactor(), as_json=True)
    for _ in range(500):
        log("telegram.not_stored", level="error", channel="telegram")
    log("channel.connected", channel="telegram")
    events = [each["event"] for each in lines(stream)]
    assert len(events) <= 5
    assert events[-1] == "channel.connected"
    assert next(each["times"] for each in lines(stream) if each["event"] == "log.repeated") == 497


def test_what_is_below_the_level_is_not_written() -> None:
    """`info` has no debug events."""
    stream = io.StringIO()
    log = StderrLog(stream, "info", Redactor(), as_json=True)
    log("envelope.edited", level="debug")
    assert stream.getvalue() == ""


def test_a_closed_stream_does_not_stop_the_work() -> None:
    """Nobody reads any more: the daemon goes on."""
    stream = io.StringIO()
    log = StderrLog(stream, "info", Redactor(), as_json=True)
    stream.close()
    log("turn.finished")


def test_lines_for_people_have_no_raw_line_ends_or_escapes_in_their_fields() -> None:
    """A field cannot fake a line, and no terminal code gets through."""
    stream = io.StringIO()
    log = StderrLog(stream, "info", Redactor(), as_json=False)
    log("turn.finished", why="a\n12:00:00 fake.event\x1b[2J")
    (line,) = stream.getvalue().splitlines()
    assert "\x1b" not in line
    assert "turn.finished" in line


def test_what_libraries_warn_of_becomes_an_event() -> None:
    """With `json` there is nothing on stderr that is no event; a library's chatter below a warning is left out."""
    stream = io.StringIO()
    before = list(logging.getLogger().handlers)
    try:
        log_to(stream, "info", Redactor(), "json")
        logging.getLogger("some.library").warning("it is %s", "odd")
        logging.getLogger("some.library").info("chatter")
    finally:
        for handler in list(logging.getLogger().handlers):
            if handler not in before:
                logging.getLogger().removeHandler(handler)
    (event,) = lines(stream)
    assert event["event"] == "library.log"
    assert event["text"] == "it is odd"
