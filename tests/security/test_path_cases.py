"""Paths with known right answers, through the file tools and the policy."""

from pathlib import Path
from typing import Any

import pytest

from tests.security.cases import Case, Layout, ident, load
from tests.security.worlds import ask, case_bounds, case_policy, context, tools_of
from zerobot.core.access import VerdictKind
from zerobot.core.tools import BadArgumentsError, BlockedByToolError, ToolOutput

CASES = [case for case in load("paths") if case["tool"] != "send_file"]


def _arguments(case: Case, layout: Layout) -> dict[str, Any]:
    more: dict[str, dict[str, Any]] = {
        "write_file": {"content": "new\n"},
        "edit_file": {"old_text": "inside", "new_text": "edited"},
        "search_files": {"pattern": "inside"},
    }
    return {"path": layout.fill(case["path"]), **more.get(case["tool"], {}), **case.get("args", {})}


async def _play(case: Case, layout: Layout) -> tuple[str, ToolOutput | None]:
    bounds = case_bounds(layout)
    tool = case["tool"]
    try:
        execution = tools_of(bounds)[tool].resolve(_arguments(case, layout))
    except (BadArgumentsError, BlockedByToolError):
        return "block", None
    verdict = ask(tool, execution, case_policy(case, bounds))
    if "between" in case:
        layout.swap()
    # An operator would say yes to whatever is asked.
    output = await execution.run(context()) if verdict.kind is not VerdictKind.BLOCK else None
    return verdict.kind.value, output


@pytest.mark.parametrize("case", CASES, ids=ident)
async def test_a_path_is_judged_by_where_it_really_leads(case: Case, tmp_path: Path) -> None:
    """The verdict is one that the case accepts, and nothing from outside comes back or changes."""
    layout = Layout(case, tmp_path)
    changing = layout.root / case.get("changes", "nothing")
    before = changing.read_bytes() if changing.is_file() else b""
    verdict, output = await _play(case, layout)
    assert verdict in case["accept"]
    for text in case.get("must_not", []):
        assert output is None or text not in output.text
    assert not (layout.root / case.get("creates", "nothing")).exists()
    assert (changing.read_bytes() if changing.is_file() else b"") == before
    if case.get("after") == "block":
        assert output is not None
        assert not output.ok
