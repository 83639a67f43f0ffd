"""`zerobot memory`: what is remembered is seen, found, corrected and forgotten from the shell."""

import json
from pathlib import Path

from tests.platforms.shell import Shell


async def test_what_is_remembered_is_found_and_forgotten(tmp_path: Path) -> None:
    """An operator lets the bot remember something for everybody, finds it by words, and deletes it for good."""
    shell = Shell(tmp_path)
    assert (
        "remembered as 1" in (await shell.run("memory", "add", "agent:default", "opening hours", "We open at nine")).out
    )
    assert "We open at nine" in (await shell.run("memory", "search", "when do you open")).out
    assert [each["owner"] for each in json.loads((await shell.run("memory", "list", "--json")).out)] == [
        "agent:default"
    ]
    assert "forgotten: opening hours" in (await shell.run("memory", "forget", "1")).out
    assert "nothing is remembered yet" in (await shell.run("memory", "list")).out


async def test_a_correction_can_be_taken_back(tmp_path: Path) -> None:
    """The same key again replaces the entry; the earlier version is kept and can be the current one again."""
    shell = Shell(tmp_path)
    for text in ("We open at nine", "We open at ten"):
        await shell.run("memory", "add", "agent:default", "opening hours", text)
    assert "We open at nine" not in (await shell.run("memory", "list")).out
    entries = json.loads((await shell.run("memory", "list", "--all", "--json")).out)
    earlier = next(each["id"] for each in entries if each["text"] == "We open at nine")
    await shell.run("memory", "restore", str(earlier))
    assert "We open at nine" in (await shell.run("memory", "list")).out


async def test_what_cannot_be_done_is_said_in_a_line(tmp_path: Path) -> None:
    """A number that there is not, an owner that is none: one line, and an exit code for scripts."""
    shell = Shell(tmp_path)
    for arguments in (("forget", "7"), ("add", "nobody", "key", "text")):
        result = await shell.run("memory", *arguments)
        assert result.status == 1
        assert len(result.err.strip().splitlines()) == 1
