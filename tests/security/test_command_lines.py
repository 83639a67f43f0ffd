"""Our own table of shell lines, through the tool and the policy: what runs unasked, and what an operator sees."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.cases import FOLDER
from tests.security.worlds import ask, tools_of
from zerobot.core.tools import BadArgumentsError
from zerobot.security.policy import AccessPolicy, bounds_of, command_prefixes
from zerobot.security.sandbox import SandboxKind, SandboxState

HEAD = re.compile(r"\[(.+)\] (?:allowed: (.+)|readers)")


def rows() -> Iterator[tuple[str, tuple[str, ...], str, str]]:
    """Table, what is allowed there (nothing: readers), the verdict, the line."""
    table, allowed = "", ()
    for row in (FOLDER / "lines.txt").read_text(encoding="utf-8").splitlines():
        if head := HEAD.fullmatch(row):
            table, allowed = head[1], tuple((head[2] or "").split("; ")) if head[2] else ()
        elif row and not row.startswith("#"):
            verdict, _, line = row.partition(" ")
            yield table, allowed, verdict, _written(line)


def _written(line: str) -> str:
    escaped = re.compile(r"\\u([0-9a-f]{4})|\\U([0-9a-f]{8})")
    line = escaped.sub(lambda match: chr(int(match[1] or match[2], 16)), line)
    return line.replace("⏎", "\n").replace("→", "\t")


ROWS = list(rows())


@pytest.mark.parametrize(
    ("table", "allowed", "verdict", "line"), ROWS, ids=[f"{n}-{row[0]}" for n, row in enumerate(ROWS)]
)
def test_a_line_is_judged_as_the_table_says(
    table: str, allowed: tuple[str, ...], verdict: str, line: str, tmp_path: Path
) -> None:
    """Never more than what was listed, and no less either."""
    kind = SandboxKind.OFF if allowed else SandboxKind.BUBBLEWRAP
    bounds = bounds_of(workspace=tmp_path)
    policy = AccessPolicy(bounds=bounds, allowed_commands=command_prefixes(allowed), sandbox=SandboxState(kind))
    try:
        execution = tools_of(bounds)["shell"].resolve({"command": line})
    except BadArgumentsError:
        assert verdict == "ask", (table, line)
        return
    judged = ask("shell", execution, policy)
    assert judged.kind.value == verdict, (table, line, judged)


def test_the_table_is_large_and_says_each_line_once() -> None:
    """As many lines as the cases that came from outside, at least."""
    lines = [(allowed, line) for _, allowed, _, line in ROWS]
    assert len(set(lines)) == len(lines) >= 361
    assert {verdict for _, _, verdict, _ in ROWS} == {"allow", "ask"}
