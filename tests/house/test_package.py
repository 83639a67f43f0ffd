"""The package as it is installed: its entry points, its extras, its import graph, what a start imports."""

import re
import subprocess
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import EntryPoint, entry_points, metadata
from pathlib import Path

import grimp
import pytest

from zerobot.core.channel import ChannelKind
from zerobot.core.provider_kind import ProviderKind

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HEAVY = (
    *("aiohttp", "aioimaplib", "aiosmtplib", "aiosqlite", "discord", "dkim", "dns", "httpcore", "httpx", "idna"),
    *("markdown_it", "prompt_toolkit", "pypdf", "rich", "selectolax", "slack_sdk", "striprtf", "telegram", "tomlkit"),
)

channels = tuple(entry_points(group="zerobot.channels"))
providers = tuple(entry_points(group="zerobot.providers"))


@pytest.mark.parametrize("entry", channels, ids=lambda entry: entry.name)
def test_a_channel_is_found_by_its_entry_point(entry: EntryPoint) -> None:
    """Each entry point of `zerobot.channels` is a kind of that name, and its extra, if any, exists."""
    kind = entry.load()
    assert isinstance(kind, ChannelKind)
    assert kind.name == entry.name
    assert kind.extra == "" or kind.extra in PROJECT["optional-dependencies"]


@pytest.mark.parametrize("entry", providers, ids=lambda entry: entry.name)
def test_a_provider_is_found_by_its_entry_point(entry: EntryPoint) -> None:
    """Each entry point of `zerobot.providers` is a kind of that name."""
    kind = entry.load()
    assert isinstance(kind, ProviderKind)
    assert kind.name == entry.name


def test_what_is_declared_is_what_is_installed() -> None:
    """The installed package has the entry points that pyproject.toml declares: nobody tests a stale installation."""
    declared = PROJECT["entry-points"]
    assert {entry.name: entry.value for entry in channels} == declared["zerobot.channels"]
    assert {entry.name: entry.value for entry in providers} == declared["zerobot.providers"]


def test_the_extra_all_is_every_other() -> None:
    """`zerobot[all]` brings each extra but the developers' one."""
    extras = PROJECT["optional-dependencies"]
    named = set(re.findall(r"zerobot\[([^]]*)\]", " ".join(extras["all"])).pop().split(","))
    assert named == set(extras) - {"all", "dev"}
    assert set(metadata("zerobot").get_all("Provides-Extra") or ()) == set(extras)


def test_nothing_imports_in_a_circle() -> None:
    """There is no import cycle, with late imports and those for the type checker counted."""
    graph = grimp.build_graph("zerobot", "channels", cache_dir=None)
    try:
        TopologicalSorter({m: graph.find_modules_directly_imported_by(m) for m in graph.modules}).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def heavy_imports(statement: str) -> str:
    """What a fresh interpreter has imported of the heavy modules after a statement."""
    code = f"{statement}\nimport sys\nprint(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_the_command_starts_lean() -> None:
    """Importing the command imports no library that only some commands need."""
    assert heavy_imports("import zerobot.cli.main") == ""


@pytest.mark.parametrize("entry", channels, ids=lambda entry: entry.name)
def test_a_kind_is_light(entry: EntryPoint) -> None:
    """Loading a channel's kind, which `config check` does for all, imports no platform library."""
    assert heavy_imports(f"import {entry.module}") == ""


SHARED = {"httpcore", "httpx", "idna", "markdown_it", "rich"}
"""What the parts that all adapters share bring along."""


@pytest.mark.parametrize(
    ("adapter", "own"),
    [
        ("console", set()),
        ("discord", {"aiohttp", "discord"}),
        ("email", {"aioimaplib", "aiosmtplib"}),  # its check of signatures (dkim, dns) comes where it is configured
        ("slack", {"aiohttp", "slack_sdk"}),
        ("telegram", {"telegram"}),
    ],
)
def test_an_adapter_brings_its_own_library_and_no_other(adapter: str, own: set[str]) -> None:
    """Who has one platform switched on pays for that one."""
    assert set(heavy_imports(f"import channels.{adapter}.adapter").split()) - SHARED == own
