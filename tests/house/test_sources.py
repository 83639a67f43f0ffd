"""What holds for every source file of the house, whoever wrote it."""

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLATFORMS = re.compile(r"discord|slack|telegram", re.IGNORECASE)
LINES_A_FILE = 500
LINES_A_FUNCTION = 80
ATTRIBUTES_ON_A_SELF = 12

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef

SOURCES = sorted([*ROOT.glob("zerobot/**/*.py"), *ROOT.glob("channels/**/*.py"), *ROOT.glob("scripts/*.py")])
EVERYWHERE = sorted([*SOURCES, *ROOT.glob("tests/**/*.py"), *ROOT.glob("benchmarks/**/*.py")])
DAEMON = sorted(ROOT.glob("zerobot/**/*.py"))
DAEMON_FILES = sorted(path for path in ROOT.glob("zerobot/**/*") if path.is_file() and path.suffix != ".pyc")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def faults(paths: Iterable[Path], look: Callable[[Path], object]) -> dict[str, object]:
    """What is found in which file; nothing where nothing is found."""
    return {str(path.relative_to(ROOT)): found for path in paths if (found := look(path))}


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


def functions_of(path: Path) -> list[Function]:
    return [node for node in ast.walk(tree_of(path)) if isinstance(node, Function)]


def attributes_of(node: ast.ClassDef) -> set[str]:
    """What a class sets on its self."""
    return {
        leaf.attr
        for leaf in ast.walk(node)
        if isinstance(leaf, ast.Attribute)
        and isinstance(leaf.ctx, ast.Store)
        and isinstance(leaf.value, ast.Name)
        and leaf.value.id == "self"
    }


def foreign_imports(path: Path) -> list[str]:
    """What a file of the ground floor imports beyond it, the standard library and pydantic."""
    tree = tree_of(path)
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    modules = [module for node in ast.walk(tree) if id(node) not in typing_only for module in imported(node)]
    allowed = {*sys.stdlib_module_names, "pydantic"}
    return [each for each in modules if each.split(".")[0] not in allowed and not each.startswith("zerobot.core")]


def bare_of(path: Path) -> list[str]:
    """What is public in a file and has no docstring."""
    tree = tree_of(path)
    definitions = list(public(tree))
    bare = [node.name for node in definitions if ast.get_docstring(node) is None]
    return bare if ast.get_docstring(tree) or not definitions else [*bare, "the module itself"]


def test_the_daemon_names_no_platform() -> None:
    """No file under `zerobot/` names a platform, in code, comment or text: those are the business of `channels/`."""

    def named(path: Path) -> list[str]:
        return [f"{number}: {line}" for number, line in enumerate(lines_of(path), 1) if PLATFORMS.search(line)]

    assert faults(DAEMON_FILES, named) == {}


def test_the_daemon_branches_on_no_platform() -> None:
    """No code under `zerobot/` asks which platform it talks to; what differs is in the channel's capabilities."""
    platforms = {folder.name for folder in ROOT.glob("channels/[a-z]*") if folder.is_dir()}
    assert faults(DAEMON, lambda path: branches(tree_of(path), platforms)) == {}


def test_the_daemon_imports_no_adapter() -> None:
    """No file under `zerobot/` imports `channels`, late imports included."""

    def adapters(path: Path) -> list[str]:
        modules = [module for node in ast.walk(tree_of(path)) for module in imported(node)]
        return [module for module in modules if module.split(".")[0] == "channels"]

    assert faults(DAEMON, adapters) == {}


def test_the_ground_floor_stands_on_pydantic_alone() -> None:
    """`core` imports the standard library and pydantic; another library's type at most for the type checker."""
    assert faults(sorted(ROOT.glob("zerobot/core/*.py")), foreign_imports) == {}


def test_a_file_is_one_idea() -> None:
    """No file is longer than 500 lines."""
    lengths = {path: len(lines_of(path)) for path in EVERYWHERE}
    assert faults(EVERYWHERE, lambda path: lengths[path] if lengths[path] > LINES_A_FILE else 0) == {}


def test_a_function_fits_on_a_screen() -> None:
    """No function is longer than 80 lines."""

    def long(path: Path) -> dict[str, int]:
        lengths = {node.name: (node.end_lineno or 0) - node.lineno + 1 for node in functions_of(path)}
        return {name: lines for name, lines in lengths.items() if lines > LINES_A_FUNCTION}

    assert faults(EVERYWHERE, long) == {}


def test_an_object_holds_few_things() -> None:
    """No class sets more than 12 attributes on its self."""

    def crowded(path: Path) -> dict[str, int]:
        classes = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.ClassDef)]
        counts = {node.name: len(attributes_of(node)) for node in classes}
        return {name: count for name, count in counts.items() if count > ATTRIBUTES_ON_A_SELF}

    assert faults(SOURCES, crowded) == {}


def test_what_is_public_is_explained() -> None:
    """Each public class and function has a docstring, and so has each module that has some."""
    assert faults(SOURCES, bare_of) == {}


def test_each_test_states_its_promise() -> None:
    """Each test has a docstring."""

    def silent(path: Path) -> list[str]:
        tests = [node for node in functions_of(path) if node.name.startswith("test_")]
        return [node.name for node in tests if ast.get_docstring(node) is None]

    assert faults(sorted(ROOT.glob("tests/**/test_*.py")), silent) == {}
