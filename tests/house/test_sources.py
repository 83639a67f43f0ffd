"""What holds for every source file of the house, whoever wrote it."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLATFORMS = re.compile(r"discord|slack|telegram", re.IGNORECASE)
LINES_A_FILE = 500
LINES_A_FUNCTION = 80
ATTRIBUTES_ON_A_SELF = 12

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef

SOURCES = sorted([*ROOT.glob("zerobot/**/*.py"), *ROOT.glob("channels/**/*.py"), *ROOT.glob("scripts/*.py")])
EVERYWHERE = sorted([*SOURCES, *ROOT.glob("tests/**/*.py"), *ROOT.glob("benchmarks/**/*.py")])
DAEMON = sorted(path for path in ROOT.glob("zerobot/**/*") if path.is_file() and path.suffix != ".pyc")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(node: ast.AST) -> list[str]:
    """The modules that a statement imports, by their absolute names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return []


def public(node: ast.Module | ast.ClassDef) -> Iterator[Definition]:
    """The public definitions of a module and of its public classes; an overridden visitor or dunder explains itself."""
    for child in node.body:
        if isinstance(child, Definition) and not child.name.startswith("_"):
            yield child
            if isinstance(child, ast.ClassDef):
                yield from public(child)


def compared(node: ast.AST) -> list[ast.expr]:
    """What a piece of code compares, or looks up."""
    match node:
        case ast.Compare():
            return [node.left, *node.comparators]
        case ast.MatchValue():
            return [node.value]
        case ast.Subscript() if not (isinstance(node.value, ast.Name) and node.value.id == "Literal"):
            return [node.slice]
    return []


def branches(tree: ast.Module, platforms: set[str]) -> list[int]:
    """The lines that compare something with a platform's name, or look a platform's name up."""
    return [
        leaf.lineno
        for node in ast.walk(tree)
        for expression in compared(node)
        for leaf in ast.walk(expression)
        if isinstance(leaf, ast.Constant) and leaf.value in platforms
    ]


@pytest.mark.parametrize("path", DAEMON, ids=name_of)
def test_the_daemon_names_no_platform(path: Path) -> None:
    """No file under `zerobot/` names a platform, in code, comment or text: those are the business of `channels/`."""
    found = [f"{number}: {line}" for number, line in enumerate(read(path), 1) if PLATFORMS.search(line)]
    assert found == []


def read(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("path", sorted(ROOT.glob("zerobot/**/*.py")), ids=name_of)
def test_the_daemon_branches_on_no_platform(path: Path) -> None:
    """No code under `zerobot/` asks which platform it talks to; what differs is in the channel's capabilities."""
    platforms = {folder.name for folder in ROOT.glob("channels/[a-z]*") if folder.is_dir()}
    assert branches(tree_of(path), platforms) == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("zerobot/**/*.py")), ids=name_of)
def test_the_daemon_imports_no_adapter(path: Path) -> None:
    """No file under `zerobot/` imports `channels`, late imports included."""
    modules = [module for node in ast.walk(tree_of(path)) for module in imported(node)]
    assert [module for module in modules if module.split(".")[0] == "channels"] == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("zerobot/core/*.py")), ids=name_of)
def test_the_ground_floor_stands_on_pydantic_alone(path: Path) -> None:
    """`core` imports the standard library and pydantic; another library's type at most for the type checker."""
    tree = tree_of(path)
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    modules = [module for node in ast.walk(tree) if id(node) not in typing_only for module in imported(node)]
    allowed = {*sys.stdlib_module_names, "pydantic"}
    assert [m for m in modules if m.split(".")[0] not in allowed and not m.startswith("zerobot.core")] == []


@pytest.mark.parametrize("path", EVERYWHERE, ids=name_of)
def test_a_file_is_one_idea(path: Path) -> None:
    """No file is longer than 500 lines."""
    assert len(read(path)) <= LINES_A_FILE


@pytest.mark.parametrize("path", EVERYWHERE, ids=name_of)
def test_a_function_fits_on_a_screen(path: Path) -> None:
    """No function is longer than 80 lines."""
    functions = [node for node in ast.walk(tree_of(path)) if isinstance(node, Function)]
    long = {node.name: lines for node in functions if (lines := (node.end_lineno or 0) - node.lineno + 1) > 80}
    assert long == {}, f"longer than {LINES_A_FUNCTION} lines"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_an_object_holds_few_things(path: Path) -> None:
    """No class sets more than 12 attributes on its self."""
    crowded = {}
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ClassDef):
            attributes = {
                leaf.attr
                for leaf in ast.walk(node)
                if isinstance(leaf, ast.Attribute)
                and isinstance(leaf.ctx, ast.Store)
                and isinstance(leaf.value, ast.Name)
                and leaf.value.id == "self"
            }
            if len(attributes) > ATTRIBUTES_ON_A_SELF:
                crowded[node.name] = len(attributes)
    assert crowded == {}


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_what_is_public_is_explained(path: Path) -> None:
    """Each public class and function has a docstring, and so has each module that has some."""
    definitions = list(public(tree_of(path)))
    bare = [node.name for node in definitions if ast.get_docstring(node) is None]
    if definitions and ast.get_docstring(tree_of(path)) is None:
        bare.append("the module itself")
    assert bare == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("tests/**/test_*.py")), ids=name_of)
def test_each_test_states_its_promise(path: Path) -> None:
    """Each test has a docstring."""
    tests = [n for n in ast.walk(tree_of(path)) if isinstance(n, Function) and n.name.startswith("test_")]
    assert [node.name for node in tests if ast.get_docstring(node) is None] == []
