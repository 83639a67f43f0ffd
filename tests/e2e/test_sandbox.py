"""The daemon with the sandbox that this machine has."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.stage import Stage
from tests.platforms.model_script import calls, says
from tests.sandbox.boxes import box_or_skip, unnamed
from zerobot.security.policy import bounds_of
from zerobot.security.sandbox import SandboxKind

PATIENCE = 30.0


@pytest.fixture
def boxed(stage: Stage, tmp_path: Path) -> Stage:
    """A daemon whose commands are held by bubblewrap."""
    box_or_skip(SandboxKind.BUBBLEWRAP, bounds_of(workspace=tmp_path))
    stage.configure("security", sandbox="bubblewrap")
    return stage


async def test_what_only_reads_runs_unasked_and_everything_else_says_what_holds_it(boxed: Stage) -> None:
    """A reader inside needs nobody; a line that changes something asks, and the operator reads where it will run."""
    async with boxed.daemon() as daemon:
        (boxed.workspace / "note").write_text("seven\n", encoding="utf-8")
        boxed.model.answers(calls("shell", id="c0", command="cat note | wc -l"), says("One line."))
        await boxed.says(boxed.olga, "@zero_bot count", chat=boxed.team)
        assert boxed.model.last_request.result_of("c0").text.startswith("1\n[exit status 0]")
        prompt = await boxed.asks(command=f"cat note > made; cat {unnamed('../zerobot.db')} >> made")
        assert "held by: bubblewrap" in prompt.text
        boxed.model.answers(says("Done."))
        await boxed.press(boxed.olga, prompt, "Approve")
        await boxed.team.reply("Done.")
    assert daemon.named("sandbox.found")[0]["kind"] == "bubblewrap"
    assert (boxed.workspace / "made").read_text() == "seven\n"


async def test_a_boxed_command_ends_with_a_killed_daemon(boxed: Stage) -> None:
    """Also what it started in a session of its own."""
    async with boxed.process() as daemon:
        await daemon.ready()
        prompt = await boxed.asks(command="setsid sleep 4325.25 & touch made; wait")
        await boxed.press(boxed.olga, prompt, "Approve")
        await asyncio.to_thread(_until, lambda: boxed.made() and _sleeping())
        await daemon.kill()
    await asyncio.to_thread(_until, lambda: not _sleeping())


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def _sleeping() -> bool:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if entry.read_bytes() == b"sleep\x004325.25\x00":
                return True
        except OSError:
            continue
    return False
