"""Receipts as people meet them: below a reply where the owner wants that, and checked at the shell."""

import asyncio
import re
import sqlite3
import sys
from contextlib import closing

from tests.e2e.stage import Stage
from tests.platforms.model_script import calls, says

RECEIPT = re.compile(r"zb1-\d+-[\w-]+")


async def check(stage: Stage, receipt: str) -> tuple[int, str]:
    """Run `zerobot receipt`; returns its exit code and all that it says."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "zerobot", "--config", str(stage.config), "receipt", receipt),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return process.returncode or 0, said.decode()


async def test_receipts_stand_below_a_reply_if_the_owner_wants_it(stage: Stage) -> None:
    """Each call of the turn with what it came to; by default people read none."""
    stage.configure("security", show_receipts=True)
    stage.model.answers(calls("time_now", id="c1"), calls("read_file", id="c2", path="none.txt"), says("Done."))
    async with stage.daemon():
        stage.uma.says("what time is it?")
        await stage.uma.chat.reply("Done.")
    lines = stage.shown(stage.uma.chat)[-1].splitlines()
    assert lines[0] == "Done."
    assert [RECEIPT.sub("RECEIPT", line) for line in lines if "zb1-" in line] == [
        "• time_now, OK: RECEIPT",
        "• read_file, ERROR: RECEIPT",
    ]
    stage.configure("security", show_receipts=None)
    stage.model.answers(calls("time_now", id="c1"), says("Again."))
    async with stage.daemon():
        stage.uma.says("and now?")
        await stage.uma.chat.reply("Again.")
    assert stage.shown(stage.uma.chat)[-1] == "Again."


async def test_a_receipt_is_checked_at_the_shell(stage: Stage) -> None:
    """Beside the daemon and without one; a made-up one and one whose call was changed on disk prove nothing."""
    stage.model.answers(calls("time_now", id="c1"), says("Noon."))
    async with stage.daemon():
        stage.uma.says("what time is it?")
        await stage.uma.chat.reply("Noon.")
        found = RECEIPT.search(stage.model.last_request.result_of("c1").text)
        assert found is not None
        receipt = found[0]
        beside = await check(stage, receipt)
    assert beside[0] == 0
    assert "genuine: made at " in beside[1]
    assert "tool: time_now, outcome: OK" in beside[1]
    assert await check(stage, receipt) == beside
    status, said = await check(stage, receipt[:-3] + "abc")
    assert (status, "made up" in said) == (1, True)
    with closing(sqlite3.connect(stage.folder / "state" / "zerobot.db")) as database, database:
        database.execute("UPDATE tool_calls SET result = 'midnight'")
    status, said = await check(stage, receipt)
    assert (status, "FORGED" in said) == (1, True)
