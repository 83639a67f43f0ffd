"""The built-in tools, and which of them an agent has."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from zerobot.core.clock import Clock
from zerobot.core.tools import Tool
from zerobot.security.paths import GuardedFiles
from zerobot.tools.filetools import file_tools
from zerobot.tools.read_file import read_tool
from zerobot.tools.search import search_tool
from zerobot.tools.shell import ShellSettings, shell_tool
from zerobot.tools.time_now import time_tool


def builtin_tools(files: GuardedFiles, shell: ShellSettings, clock: Clock) -> tuple[Tool, ...]:
    """All built-in tools, sorted by name so that requests to a model stay the same from turn to turn."""
    tools = (read_tool(files), *file_tools(files), search_tool(files), shell_tool(files, shell), time_tool(clock))
    return tuple(sorted(tools, key=lambda tool: tool.name))


def selected(tools: Iterable[Tool], patterns: Sequence[str]) -> tuple[Tool, ...]:
    """The tools whose names fit one of `[agent] tools`; `*` in a pattern stands for anything."""
    return tuple(tool for tool in tools if any(fnmatchcase(tool.name, pattern) for pattern in patterns))


def unused_patterns(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """Patterns that fit no tool's name: most likely misspelt, which an owner should hear."""
    names = list(names)
    return [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in names)]
