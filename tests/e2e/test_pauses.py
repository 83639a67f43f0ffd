"""While an approval is open: messages, commands, stops, and the emergency stop."""

import asyncio
import sys

import pytest

from tests.e2e.stage import FullDisk, Stage
from tests.platforms.model_script import calls, says


@pytest.fixture
def stage(stage: Stage) -> Stage:
    """In a group, where the platform's pace is no hindrance, all that is said is for the bot."""
    stage.configure("channels.telegram", require_mention=False)
    return stage


@pytest.mark.parametrize(("rule", "superseded"), [("auto", True), ("queue", False), ("supersede", True)])
async def test_a_message_while_an_approval_is_open_does_what_is_configured(
    stage: Stage, rule: str, *, superseded: bool
) -> None:
    """A30, A34: the operator's new message ends the open request, or waits for it, and is told which."""
    stage.configure("agent", on_message_during_approval=rule)
    async with stage.daemon() as daemon:
        prompt = await stage.asks()
        # Its reply comes after the prompt is on record as shown.
        stage.olga.says("/whoami", chat=stage.team)
        await stage.team.reply("You are")
        if superseded:
            stage.model.answers(says("Instead."))
        stage.olga.says("never mind", chat=stage.team)
        if superseded:
            await daemon.until("turn.finished", where=lambda each: each["outcome"] == "superseded")
            reply = await stage.team.reply("Instead.")
            assert "did not run" in reply.text
            await stage.team.wait_for(lambda _: not prompt.buttons)
            assert stage.model.last_request.result_of("c1").code == "NOT_RUN"
        else:
            await stage.team.reply("waiting for an operator")
            stage.model.answers(says("First."), says("Second."))
            await stage.press(stage.olga, prompt, "Approve")
            await stage.team.reply("Second.")
            assert stage.model.last_request.newest_text.endswith("never mind")
    assert stage.made() is not superseded


async def test_a_message_of_somebody_else_waits_for_the_decision(stage: Stage) -> None:
    """Decision 1: who could not have pressed the button does not supersede it, and is told what he waits for."""
    group = stage.team
    async with stage.daemon():
        prompt = await stage.asks(stage.olga, chat=group)
        stage.uma.says("@zero_bot hurry", chat=group)
        await group.reply("waiting for an operator")
        assert prompt.buttons
        stage.model.answers(says("Done."), says("Hurried."))
        await stage.press(stage.olga, prompt, "Approve")
        await group.reply("Hurried.")
    assert stage.made()


async def test_commands_and_refused_messages_leave_a_pause_alone(stage: Stage) -> None:
    """A31, A32: what starts no turn ends no pause."""
    # Seen to fail with: commands stored as inputs (A32).
    async with stage.daemon() as daemon:
        prompt = await stage.asks()
        stage.olga.says("/status", chat=stage.team)
        await stage.team.reply("waiting for an operator")
        stage.xen.says("hello?")
        await daemon.until("envelope.refused")
        stage.model.answers(says("Done."))
        await stage.press(stage.olga, prompt, "Approve")
        await stage.team.reply("Done.")
    assert stage.made()


async def test_a_stop_of_a_paused_turn_withdraws_its_requests(stage: Stage) -> None:
    """A23: nothing runs, the model is not asked, and a later press is told so."""
    async with stage.daemon() as daemon:
        prompt = await stage.asks()
        stage.olga.says("/stop", chat=stage.team)
        finished = await daemon.until("turn.finished")
        await stage.team.wait_for(lambda _: not prompt.buttons)
        approval = daemon.named("approval.requested")[0]["approval"]
        told = await stage.olga.sends_press(prompt, f"a:{approval}").answered()
    assert finished["outcome"] == "stopped"
    assert "Already decided" in told.text
    assert len(stage.model.requests) == 1
    assert not stage.made()


async def test_a_stop_and_a_message_at_once_never_work_on_one_turn_twice(stage: Stage) -> None:
    """A84: a paused turn that is stopped while the next message comes in ends once, and the message is answered."""
    stage.configure("agent", on_message_during_approval="queue")
    async with stage.daemon() as daemon:
        await stage.asks()
        stage.model.answers(says("Next."))
        stage.olga.says("/stop", chat=stage.team)
        stage.olga.says("next question", chat=stage.team)
        await stage.team.reply("Next.")
    ended = [each["turn"] for each in daemon.named("turn.finished")]
    assert len(ended) == len(set(ended)) == 2
    assert daemon.named("conversation.crashed") == []


async def test_a_scripted_press_of_another_chat_decides_for_the_chat_of_the_request(stage: Stage) -> None:
    """V015: an operator may decide from anywhere; the id alone gives nobody else a right."""
    async with stage.daemon() as daemon:
        await stage.asks()
        data = "a:" + daemon.named("approval.requested")[0]["approval"]
        elsewhere = stage.xen.says("anything")
        told = await stage.xen.sends_press(elsewhere, data).answered()
        assert "Only an operator" in told.text
        stage.model.answers(says("Done."))
        told = await stage.olga.sends_press(elsewhere, data).answered()
        await stage.team.reply("Done.")
    assert told.text == "Approved."
    assert stage.made()


async def test_freezing_lets_no_tool_run_until_unfrozen(stage: Stage) -> None:
    """The emergency stop holds for everybody, over a restart, and also for what was approved."""
    stage.model.answers(calls("time_now", id="c1"), says("Frozen."))
    async with stage.daemon():
        stage.olga.says("/freeze", chat=stage.team)
        await stage.team.reply("Frozen: no tool runs")
        stage.uma.says("/unfreeze")
        await stage.uma.chat.reply("Only an operator")
    async with stage.daemon():
        await stage.says(stage.vic, "what time?")
        assert stage.model.last_request.result_of("c1").code == "BLOCKED"
        stage.olga.says("/unfreeze", chat=stage.team)
        await stage.team.reply("Tools may run again")
        stage.model.answers(calls("time_now", id="c2"), says("Noon."))
        await stage.says(stage.vic, "and now?")
    assert stage.model.last_request.result_of("c2").code == "OK"


async def test_freezing_on_a_full_disk_holds_at_once(stage: Stage) -> None:
    """An emergency stop does not depend on the disk: it counts though it cannot be put on record."""
    stage.expected_errors = {"storage.failed", "telegram.not_stored", "storage.alarm"}
    async with stage.daemon() as daemon:
        with FullDisk(daemon):
            shell = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "zerobot",
                "--config",
                str(stage.folder / "zerobot.toml"),
                "freeze",
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            await shell.communicate()
        stage.model.answers(calls("time_now", id="c1"), says("Frozen."))
        await stage.says(stage.vic, "what time?")
    assert stage.model.last_request.result_of("c1").code == "BLOCKED"
