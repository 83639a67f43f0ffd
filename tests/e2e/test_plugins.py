"""A package that adds a tool and a guard: the one that docs/plugins.md shows, installed as any other."""

import re
from pathlib import Path

from tests.e2e.stage import Stage
from tests.platforms.daemon_process import DaemonProcess
from tests.platforms.model_script import calls, says

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"


def install(folder: Path) -> dict[str, str]:
    """Lay the page's example out as an installed package; returns the environment in which it is one."""
    page = PAGE.read_text(encoding="utf-8")
    source = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    entries = re.search(r'"zerobot\.plugins"\]\n(.*?) = "(.*?)"\n', page)
    assert source is not None
    assert entries is not None
    info = folder / "house_rules-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "house_rules.py").write_text(source[1], encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: house-rules\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[zerobot.plugins]\n{entries[1]} = {entries[2]}\n", encoding="utf-8")
    return {"PYTHONPATH": str(folder)}


async def test_the_example_of_the_page_adds_a_guard_and_a_tool(stage: Stage) -> None:
    """What the guard blocks is told to its author and no model is asked; the tool's call runs like any other."""
    stage.configure("plugins.house_rules", word="mumble")
    stage.model.answers(calls("roll_die", id="c1"), says("You rolled it."))
    async with stage.daemon(install(stage.folder / "site")):
        stage.uma.says("Mumble, please")
        await stage.uma.chat.reply("We do not say that here.")
        assert stage.model.requests == []
        stage.uma.says("roll a die")
        await stage.uma.chat.reply("You rolled it.")
    result = stage.model.last_request.result_of("c1")
    assert result.code == "OK"
    assert result.text[:1] in "123456"


async def test_without_a_table_an_installed_package_does_nothing(stage: Stage) -> None:
    """The word may be said, and the model is offered no such tool."""
    stage.model.answers(says("Pardon?"))
    async with stage.daemon(install(stage.folder / "site")):
        stage.uma.says("mumble")
        await stage.uma.chat.reply("Pardon?")
    assert "roll_die" not in str(stage.model.last_request.body["tools"])


async def test_a_plugin_that_does_not_open_ends_the_start(stage: Stage) -> None:
    """Its owner relies on it: exit code 2, and one line that names the table."""
    environ = install(stage.folder / "site")
    module = stage.folder / "site" / "house_rules.py"
    module.write_text(module.read_text(encoding="utf-8").replace("services.log(", "raise OSError("), encoding="utf-8")
    stage.configure("plugins.house_rules", word="mumble")
    async with DaemonProcess(stage.config, environ) as daemon:
        assert await daemon.ended() == 2
    assert daemon.other_lines == ["plugins.house_rules: does not open: house_rules.opened"]


async def test_two_tools_of_one_name_end_the_start(stage: Stage) -> None:
    """Nobody shall approve one tool and get the other."""
    environ = install(stage.folder / "site")
    module = stage.folder / "site" / "house_rules.py"
    text = module.read_text(encoding="utf-8").replace('name = "roll_die"', 'name = "shell"')
    module.write_text(text, encoding="utf-8")
    stage.configure("plugins.house_rules", word="mumble")
    async with DaemonProcess(stage.config, environ) as daemon:
        assert await daemon.ended() == 2
    assert daemon.other_lines == ["plugins: there are two tools called 'shell'; leave one of the plug-ins out"]
