"""The sequences of approvals with known right outcomes: each has a test that plays it and names it."""

from pathlib import Path

import pytest

from tests.security.cases import Case, ident, load

TESTS = Path(__file__).parents[1]
ELSEWHERE = {"V049": "a mail in an operator's name is the business of the channel that proves senders"}


@pytest.fixture(scope="module")
def told() -> str:
    """All tests, as one text."""
    return "\n".join(path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py") if path != Path(__file__))


@pytest.mark.parametrize("case", [case for case in load("approvals") if case["id"] not in ELSEWHERE], ids=ident)
def test_each_sequence_is_played(case: Case, told: str) -> None:
    """A test names the case by its number."""
    assert str(case["id"]) in told
