"""A folder's README names each of its modules, and none that there is not."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("folder", ["channels/email", "zerobot/daemon", "zerobot/turn"])
def test_a_readme_names_each_module_of_its_folder(folder: str) -> None:
    """Who looks for a thing finds its file there; a table of files that is out of date is worse than none."""
    told = (ROOT / folder / "README.md").read_text(encoding="utf-8")
    named = {name for name in re.findall(r"`(\w+\.py)`", told) if not name.startswith("test_")}
    there = {path.name for path in (ROOT / folder).glob("*.py")}
    assert named | {"__init__.py"} == there | {"__init__.py"}
