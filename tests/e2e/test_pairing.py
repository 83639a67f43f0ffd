"""Letting strangers in by a code that an operator approves."""

import asyncio
import re
import sys

from tests.e2e.stage import Stage
from tests.platforms.model_script import says
from tests.platforms.telegram_world import Chat

CODE = re.compile(r"\b[A-Z0-9]{8}\b")


async def told_code(stage: Stage) -> str:
    """Let the stranger write, and return the code that he is told."""
    stage.xen.says("hello?")
    reply = await stage.xen.chat.reply("don't know you")
    found = CODE.search(reply.text)
    assert found
    return found[0]


async def test_a_stranger_is_let_in_by_the_code_that_an_operator_types(stage: Stage) -> None:
    """Told a code, approved with /pair, told so, and answered from then on."""
    stage.model.always(says("Welcome."))
    async with stage.daemon():
        code = await told_code(stage)
        stage.olga.says(f"/pair {code}")
        await stage.olga.chat.reply("telegram:9001")
        await stage.xen.chat.reply("You are in")
        stage.xen.says("hello!")
        await stage.xen.chat.reply("Welcome.")
    assert [message for _, message in stage.model.last_request.messages] == ["hello!"]


async def test_a_stranger_is_told_his_code_once_however_much_he_writes(stage: Stage) -> None:
    """One message in ten minutes; the rest is refused in silence."""
    async with stage.daemon() as daemon:
        await told_code(stage)
        for number in range(4):
            stage.xen.says(f"please {number}")
        await daemon.until("envelope.refused", count=5)
    assert len(stage.xen.chat.replies) == 1


async def test_a_stranger_in_a_group_is_told_nothing(stage: Stage) -> None:
    """Codes are for direct chats only."""
    group = stage.telegram.group("Team")
    async with stage.daemon() as daemon:
        stage.xen.says("@zero_bot hi", chat=group)
        refused = await daemon.until("envelope.refused")
    assert refused["reason"] == "not_allowed"
    assert group.replies == []


async def test_nobody_but_an_operator_lets_people_in(stage: Stage) -> None:
    """/pair of a user does nothing."""
    async with stage.daemon():
        code = await told_code(stage)
        stage.uma.says(f"/pair {code}")
        await stage.uma.chat.reply("Only an operator")
        stage.olga.says("/pair")
        listed = await stage.olga.chat.reply("pending")
    assert "telegram:9001" in listed.text


async def test_many_wrong_codes_lock_the_right_one_too(stage: Stage) -> None:
    """Guessing does not pay: after some wrong codes even the right one is refused for a while, in the same words."""
    stage.configure("operators", users=["telegram:1001", "telegram:2002"])
    async with stage.daemon():
        code = await told_code(stage)
        for number in range(10):
            stage.olga.says(f"/pair WRONG{number:03}")
        await stage.olga.chat.wait_for(lambda chat: len(_answers(chat)) == 10)
        stage.olga.says(f"/pair {code}")
        await stage.olga.chat.wait_for(lambda chat: len(_answers(chat)) == 11)
        assert len(set(_answers(stage.olga.chat))) == 1
        # Another operator is not locked out by it.
        stage.vic.says("/pair")
        assert "telegram:9001" in (await stage.vic.chat.reply("pending")).text


def _answers(chat: Chat) -> list[str]:
    """What of the bot's is no question about the stranger."""
    return [text for text in chat.texts if "wants to talk" not in text]


async def test_the_shell_lets_people_in_beside_a_running_daemon(stage: Stage) -> None:
    """`zerobot pair approve CODE` counts at once, and the daemon goes on."""
    stage.model.always(says("Welcome."))
    async with stage.daemon() as daemon:
        code = await told_code(stage)
        shell = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "zerobot",
            "--config",
            str(stage.folder / "zerobot.toml"),
            "pair",
            "approve",
            code,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await shell.communicate()
        assert shell.returncode == 0, output
        stage.xen.says("hello!")
        await stage.xen.chat.reply("Welcome.")
        assert not daemon.has_ended
