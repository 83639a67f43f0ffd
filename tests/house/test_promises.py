"""tests/turn/README.md names a test for each promise of the turn engine, and each test that it names is there."""

import ast
import re
from functools import cache
from itertools import chain
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS / "turn" / "README.md"
ROW = re.compile(r"\| ((?:A|T)\d\d|BAR \d[a-z]) \| ([^|]+) \| ([^|]+) \|")
NAMED = re.compile(r"`((?:\w+/)*test_\w+\.py)::(test_\w+)`")

INVARIANTS = chain(
    range(1, 9), range(10, 27), range(30, 35), range(40, 45), range(50, 54), range(60, 70), range(70, 78), range(80, 89)
)
CASES = (
    "01 02 05 06 07 10 11 13 14 16 20 24 25 26 28 29 30 32 34 35 39 40 42 43 45 46 49 50 51 52 54 56 57 58 60 61 62 63 "
    "64 65 66 67 68 69 74 75 79 80 81 82 83 85 88"
)
BARS = {1: "abcdefg", 3: "abcde", 4: "abcdefgh", 5: "abcdefgh", 6: "abcde", 7: "abcdef", 8: "abc"}
PROMISES = [
    *(f"A{number:02d}" for number in INVARIANTS),
    *(f"T{number}" for number in CASES.split()),
    *(f"BAR {number}{letter}" for number, letters in BARS.items() for letter in letters),
]


def rows() -> dict[str, list[tuple[str, str]]]:
    """The promises of the page, each with the files and functions that it names."""
    found = ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert len({ident for ident, _, _ in found}) == len(found), "a promise stands there twice"
    return {ident: NAMED.findall(tests) for ident, _, tests in found}


@cache
def functions(file: str) -> frozenset[str]:
    """The functions of a test file, by its name on the page; none when there is no such file."""
    path = TESTS / (file if "/" in file else f"turn/{file}")
    if not path.exists():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_each_promise_has_a_test() -> None:
    """None is left out, none is invented, and none stands there without a test."""
    page = rows()
    assert list(page) == PROMISES
    assert [ident for ident, tests in page.items() if not tests] == []


def test_each_test_that_is_named_is_there() -> None:
    """A test that is renamed or deleted is missed here."""
    named = {test for tests in rows().values() for test in tests} | set(NAMED.findall(PAGE.read_text(encoding="utf-8")))
    assert [f"{file}::{name}" for file, name in sorted(named) if name not in functions(file)] == []
