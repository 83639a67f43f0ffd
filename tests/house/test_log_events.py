"""docs/log-events.md and the events that the code writes are the same."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted([*ROOT.glob("zerobot/**/*.py"), *ROOT.glob("channels/**/*.py")])
EVENT = re.compile(r"[a-z]+\.[a-z_]+")
WRITERS = {"log", "_log", "_note", "_write", "fenced", "_fence"}
"""Names of what is called to write an event."""


def written(path: Path) -> Iterator[str]:
    """The events that a file writes by their names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in WRITERS:
            for given in node.args[:2]:
                if isinstance(given, ast.Constant) and EVENT.fullmatch(str(given.value)):
                    yield str(given.value)


def documented() -> set[str]:
    """The events in the first column of the page's tables."""
    rows = [
        line
        for line in (ROOT / "docs/log-events.md").read_text(encoding="utf-8").splitlines()
        if line[:3] == "| `" or line[:5] == "| **`"
    ]
    return {name for row in rows for name in re.findall(r"`([a-z]+\.[a-z_]+)`", row.split("|")[1])}


def test_each_event_that_is_written_is_documented() -> None:
    """A reader of the log finds each of its events on the page."""
    names = {name for path in SOURCES if "testing" not in path.parts for name in written(path)}
    assert len(names) > 40
    assert names - documented() == set()


def test_each_documented_event_is_in_the_code() -> None:
    """The page has no events that nothing writes."""
    constants = {
        node.value
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert documented() - constants == set()
