"""No tool runs without a verdict, and no verdict comes from anywhere but the one function (security spec R01)."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted([*ROOT.glob("zerobot/**/*.py"), *ROOT.glob("channels/**/*.py")])
NETWORK = {"httpx", "httpcore", "http", "urllib", "requests", "aiohttp", "socket", "ssl"}


def files_where(wanted: "type[ast.AST]", name: str) -> set[str]:
    """The files in which a call of something, or a name, stands."""
    found = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            target = node.func if isinstance(node, ast.Call) else node
            said = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
            if isinstance(node, wanted) and said == name:
                found.add(str(path.relative_to(ROOT)))
    return found


def test_one_module_makes_verdicts() -> None:
    """`Verdict(...)` stands in one file, and so does what it has to be shown to be made."""
    assert files_where(ast.Call, "Verdict") == {"zerobot/security/access.py"}
    assert files_where(ast.Name, "VERDICT_MAKER") == {"zerobot/core/access.py", "zerobot/security/access.py"}


def test_one_module_lets_calls_run() -> None:
    """`Allowed(...)` stands in the stage that judges; what runs an execution takes nothing else."""
    assert files_where(ast.Call, "Allowed") == {"zerobot/turn/authorize.py"}
    runner = ast.parse((ROOT / "zerobot/turn/run.py").read_text(encoding="utf-8"))
    runs = [
        node
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("execution.run")
    ]
    assert len(runs) == 1
    assert any(ast.unparse(node) == ast.unparse(runs[0]) for node in ast.walk(runner))
    (started,) = [
        node for node in ast.walk(runner) if isinstance(node, ast.AsyncFunctionDef) and node.name == "_started"
    ]
    given = [ast.unparse(each.annotation) for each in started.args.args[1:] if each.annotation]
    assert given == ["Allowed", "ToolContext"]


KEEPER = "keeper.py"
"""Runs as a process of its own beside a command, and reads the system's record of its children there."""


def test_tools_reach_nothing_but_what_they_are_handed() -> None:
    """No tool opens a file or a connection by itself: both have guards that are no optional calls."""
    broken = []
    for path in sorted(path for path in ROOT.glob("zerobot/tools/**/*.py") if path.name != KEEPER):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            opens = isinstance(node, ast.Call) and ast.unparse(node.func) in ("open", "os.open", "io.open")
            if opens or any(name.split(".")[0] in NETWORK and name != "urllib.parse" for name in names):
                broken.append(f"{path.name}:{getattr(node, 'lineno', 0)}")
    assert broken == []
