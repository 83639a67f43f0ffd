"""Shell lines with known right answers, through the tool and the policy."""

from pathlib import Path

import pytest

from tests.security.cases import Case, Layout, ident, load
from tests.security.worlds import ask, case_bounds, case_conversation, case_grants, case_policy, tools_of
from zerobot.core.tools import BadArgumentsError, BlockedByToolError


@pytest.mark.parametrize("case", load("shell"), ids=ident)
def test_a_line_gets_a_verdict_that_its_case_accepts(case: Case, tmp_path: Path) -> None:
    """No line is allowed that should ask, none is asked for that the owner has allowed."""
    layout = Layout(case, tmp_path)
    bounds = case_bounds(layout)
    try:
        execution = tools_of(bounds)["shell"].resolve({"command": layout.fill(case["command"])})
    except (BadArgumentsError, BlockedByToolError):
        assert "block" in case["accept"]
        return
    verdict = ask(
        "shell", execution, case_policy(case, bounds), case_grants(case), conversation=case_conversation(case)
    )
    assert verdict.kind.value in case["accept"], (case["command"], verdict)
