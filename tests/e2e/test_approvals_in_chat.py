"""Approvals through the whole daemon: who may press what, when, and what runs. V-numbers are approvals.json's."""

import sys

import pytest

from tests.e2e.stage import FullDisk, Stage
from tests.platforms.model_script import calls, holds, says


@pytest.fixture
def stage(stage: Stage) -> Stage:
    """In a group, where the platform's pace is no hindrance, all that is said is for the bot."""
    stage.configure("channels.telegram", require_mention=False)
    return stage


async def test_only_an_operator_decides_whoever_else_presses(stage: Stage) -> None:
    """B136, V001, V003: a stranger and the asker change nothing and are told so alone; the operator's press counts."""
    group = stage.team
    stage.configure("operators", notify="here")
    async with stage.daemon() as daemon:
        prompt = await stage.asks(stage.uma, chat=group)
        for person in (stage.xen, stage.uma):
            told = await stage.press(person, prompt, "Approve")
            assert told.alert
            assert "operator" in told.text
        assert daemon.named("approval.decided") == []
        stage.model.answers(says("Done."))
        told = await stage.press(stage.olga, prompt, "Approve")
        await group.reply("Done.")
    assert told.text == "Approved."
    assert stage.made()
    assert daemon.named("approval.decided")[0]["by"] == "telegram:1001"
    assert "Olga" in prompt.text
    assert prompt.buttons == []


async def test_several_approvals_of_one_turn_are_decided_by_command_while_it_runs(stage: Stage) -> None:
    """B138: no decision is taken for a message that has to wait."""
    async with stage.daemon() as daemon:
        for number in range(2):
            command = calls("shell", id=f"c{number}", command=f"touch made{number}")
            stage.model.answers(command)
            if number == 0:
                stage.olga.says("two steps", chat=stage.team)
            await daemon.until("approval.requested", count=number + 1)
            await stage.team.reply(f"touch made{number}")
            assert stage.team.prompt
            code = stage.code_of(stage.team.prompt)
            if number == 1:
                stage.model.answers(says("Both."))
            stage.olga.says(f"/approve {code}", chat=stage.team)
        await stage.team.reply("Both.")
        await daemon.kill()
    assert all(stage.made(f"made{number}") for number in range(2))


async def test_a_press_counts_at_once_though_all_turns_are_taken(stage: Stage) -> None:
    """BAR 7b: with one turn at most, a decision is taken and shown while that one runs; the call runs after it."""
    stage.configure("daemon", max_turns=1)
    async with stage.daemon() as daemon:
        prompt = await stage.asks()
        stage.model.answers(holds(says("A long answer."), after=1), says("Made."))
        stage.uma.says("something long")
        await stage.model.until_holding()
        assert (await stage.press(stage.olga, prompt, "Approve")).text == "Approved."
        await stage.telegram.wait_for(lambda: not prompt.buttons)
        assert not stage.made()
        stage.model.release()
        await stage.team.reply("Made.")
    assert stage.made()
    assert [event["event"] for event in daemon.events if event["event"] in ("approval.decided", "turn.finished")] == [
        "approval.decided",
        "turn.finished",
        "turn.finished",
    ]


async def test_an_approval_that_nobody_decides_expires_and_is_told_as_that(stage: Stage) -> None:
    """B140, V009: expired is not denied: on the prompt, in the log, and for the model."""
    stage.configure("security", approval_timeout="1s")
    async with stage.daemon() as daemon:
        prompt = await stage.asks()
        stage.model.answers(says("Nobody decided."))
        await stage.team.reply("Nobody decided.")
        await stage.team.wait_for(lambda _: not prompt.buttons)
    result = stage.model.last_request.result_of("c1")
    assert result.code == "EXPIRED"
    assert "denied" not in result.text
    assert "Expired" in prompt.text
    assert daemon.named("approval.decided")[0]["state"] == "expired"
    assert not stage.made()


async def test_a_press_does_not_outlive_its_operator(stage: Stage) -> None:
    """A19, A26: who is taken off the list before the call runs has not approved it."""
    stage.configure("operators", notify="here")
    stage.model.answers(calls("shell", id="c1", command="touch made") + calls("shell", id="c2", command="touch two"))
    async with stage.daemon() as daemon:
        stage.uma.says("two steps", chat=stage.team)
        await stage.team.wait_for(lambda chat: len([one for one in chat.replies if one.buttons]) == 2)
        # The two are shown side by side, in either order.
        first, second = (
            next(one for one in stage.team.replies if f"touch {name}" in one.text) for name in ("made", "two")
        )
        await stage.press(stage.olga, first, "Approve")
        await daemon.kill()
    stage.configure("operators", users=["telegram:2002"])
    stage.model.answers(says("Neither."))
    async with stage.daemon():
        await stage.press(stage.vic, second, "Deny")
        await stage.team.reply("Neither.")
    assert stage.model.last_request.result_of("c1").code == "BLOCKED"
    assert not stage.made()


async def test_late_and_double_presses_are_told_what_really_happened(stage: Stage) -> None:
    """B141, V005, V007: one decision counts, one run follows, and everybody else learns by whom it was made."""
    stage.configure("operators", users=["telegram:1001", "telegram:2002"])
    async with stage.daemon() as daemon:
        prompt = await stage.asks(command="echo x >> made")
        stage.model.answers(says("Done."))
        presses = [stage.olga.presses(prompt, "Approve"), stage.olga.presses(prompt, "Approve")]
        presses.append(stage.vic.presses(prompt, "Deny"))
        for press in presses:
            await press.answered()
        await stage.team.reply("Done.")
        late = await stage.olga.sends_press(prompt, "d:" + daemon.named("approval.requested")[0]["approval"]).answered()
    assert presses[0].text == "Approved."
    for press in (*presses[1:], late):
        assert "Already decided" in press.text
        assert "Olga" in press.text
    assert (stage.workspace / "made").read_text() == "x\n"
    assert len(daemon.named("tool.started")) == 1


async def test_without_operators_a_supervised_call_is_refused_with_the_true_reason(stage: Stage) -> None:
    """B144: nobody to ask is neither a yes nor somebody's no, and the daemon says at its start that it will be so."""
    stage.configure("operators", users=[])
    stage.model.answers(calls("shell", id="c1", command="touch made"), says("I may not."))
    async with stage.daemon() as daemon:
        await stage.says(stage.uma, "do it")
    result = stage.model.last_request.result_of("c1")
    assert result.code == "BLOCKED"
    assert "no operator" in result.text
    assert not stage.made()
    assert sum("operators" in each["text"] for each in daemon.named("config.warning")) == 1


async def test_what_runs_is_what_was_shown_though_a_file_changed_meanwhile(stage: Stage) -> None:
    """B146, V031: a script that changed between prompt and press does not run as approved."""
    async with stage.daemon():
        (stage.workspace / "script.sh").write_text("touch made\n", encoding="utf-8")
        prompt = await stage.asks(command="sh script.sh")
        (stage.workspace / "script.sh").write_text("touch other\n", encoding="utf-8")
        stage.model.answers(says("It changed."))
        await stage.press(stage.olga, prompt, "Approve")
        await stage.team.reply("It changed.")
    assert stage.model.last_request.result_of("c1").code == "BLOCKED"
    assert not stage.made()
    assert not stage.made("other")


async def test_a_script_that_another_call_of_the_answer_rewrites_does_not_run(stage: Stage) -> None:
    """B146: both were approved, but what the second would run is no longer what was shown."""
    stage.model.answers(
        calls("write_file", id="c1", path="x.sh", content="touch evil\n") + calls("shell", id="c2", command="sh x.sh"),
        says("Understood."),
    )
    async with stage.daemon() as daemon:
        (stage.workspace / "x.sh").write_text("touch good\n", encoding="utf-8")
        stage.olga.says("@zero_bot run it", chat=stage.team)
        await daemon.until("turn.paused")
        await stage.team.wait_for(lambda chat: sum(bool(message.buttons) for message in chat.replies) == 2)
        for prompt in [message for message in stage.team.replies if message.buttons]:
            await stage.press(stage.olga, prompt, "Approve")
        await stage.team.reply("Understood.")
    assert stage.model.last_request.result_of("c2").code == "BLOCKED"
    assert not stage.made("evil")
    assert not stage.made("good")


async def test_an_open_approval_is_decided_after_a_crash_by_its_old_buttons(stage: Stage) -> None:
    """V011: the row outlives the process; the call runs once and the reply comes to the old chat."""
    async with stage.daemon() as daemon:
        prompt = await stage.asks()
        await daemon.kill()
    stage.model.answers(says("Done."))
    async with stage.daemon() as daemon:
        told = await stage.press(stage.olga, prompt, "Approve")
        await stage.team.reply("Done.")
    assert told.text == "Approved."
    assert stage.made()
    assert stage.model.last_request.result_of("c1").code == "OK"
    assert len(daemon.named("tool.started")) == 1


async def test_a_command_that_a_crash_interrupted_is_not_run_again(stage: Stage) -> None:
    """V013: the model is told that the outcome is not known."""
    async with stage.daemon() as daemon:
        prompt = await stage.asks(command="echo x >> made; exec sleep 60")
        await stage.press(stage.olga, prompt, "Approve")
        await daemon.until("tool.started")
        await daemon.kill()
    stage.model.answers(says("I don't know."))
    async with stage.daemon() as daemon:
        await stage.team.reply("I don't know.")
    assert stage.model.last_request.result_of("c1").code == "INTERRUPTED"
    assert daemon.named("tool.started") == []


async def test_always_that_was_not_offered_is_an_approval_for_once(stage: Stage) -> None:
    """V017: a changed client gets no grant out of a prompt that has no such button."""
    async with stage.daemon() as daemon:
        prompt = await stage.asks(command="rm -rf build; touch made")
        assert "Always in this chat" not in prompt.buttons
        stage.model.answers(says("Done."))
        await stage.olga.sends_press(prompt, "g:" + daemon.named("approval.requested")[0]["approval"]).answered()
        await stage.team.reply("Done.")
        stage.olga.says("/grants", chat=stage.team)
        await stage.team.reply("Nothing is granted")
    assert daemon.named("approval.decided")[0]["granted"] is False


async def test_of_two_open_requests_each_press_decides_its_own(stage: Stage) -> None:
    """V019: not the oldest, the one that was pressed; the turn goes on when both are decided."""
    stage.model.answers(
        calls("shell", id="c1", command="touch first") + calls("shell", id="c2", command="touch second"),
        says("One of two."),
    )
    async with stage.daemon() as daemon:
        stage.olga.says("both", chat=stage.team)
        await daemon.until("approval.requested", count=2)
        await stage.team.wait_for(lambda chat: len([one for one in chat.replies if one.buttons]) == 2)
        first, second = (
            next(one for one in stage.team.replies if f"touch {name}" in one.text) for name in ("first", "second")
        )
        await stage.press(stage.olga, second, "Approve")
        await stage.press(stage.olga, first, "Deny")
        await stage.team.reply("One of two.")
    assert stage.made("second")
    assert not stage.made("first")
    assert stage.model.last_request.result_of("c1").code == "DENIED"


async def test_a_code_that_the_asker_types_decides_nothing(stage: Stage) -> None:
    """V021: reading the code in the group gives no right."""
    group = stage.team
    stage.configure("operators", notify="here")
    async with stage.daemon() as daemon:
        prompt = await stage.asks(stage.uma, chat=group)
        stage.uma.says(f"/approve {stage.code_of(prompt)}", chat=group)
        await group.reply("Only an operator")
        assert daemon.named("approval.decided") == []
        await daemon.kill()
    assert prompt.buttons


async def test_guessed_codes_are_answered_alike_and_lock_the_guesser(stage: Stage) -> None:
    """V023: a wrong code says nothing of the open ones, and many of them slow down whoever types them."""
    stage.configure("channels.telegram", drafts="off")
    async with stage.daemon() as daemon:
        prompt = await stage.asks()
        for number in range(10):
            stage.olga.says(f"/approve AAAA{number}", chat=stage.team)
        stage.olga.says(f"/approve {stage.code_of(prompt)}", chat=stage.team)
        await daemon.until("command.received", count=11)
        stage.olga.says("/whoami", chat=stage.team)
        await daemon.until("command.received", count=12)
        assert daemon.named("approval.decided") == []
        await daemon.kill()


async def test_the_code_of_an_old_request_does_not_fit_a_new_one(stage: Stage) -> None:
    """V025: an old code tells of the old request."""
    async with stage.daemon() as daemon:
        old = await stage.asks()
        code = stage.code_of(old)
        stage.model.answers(calls("shell", id="c2", command="touch second"))
        await stage.press(stage.olga, old, "Deny")
        await daemon.until("approval.requested", count=2)
        stage.olga.says(f"/approve {code}", chat=stage.team)
        await stage.team.reply("Already decided")
        assert len(daemon.named("approval.decided")) == 1
        await daemon.kill()
    assert not stage.made("second")


async def test_what_the_model_writes_is_no_command(stage: Stage) -> None:
    """V027, V029: neither its text nor the shell lets the model approve."""
    stage.configure("security", allowed_commands=["zerobot", f"{sys.executable} -m zerobot"])
    stage.model.answers(says("/freeze"))
    async with stage.daemon() as daemon:
        await stage.says(stage.olga, "say it")
        assert daemon.named("command.received") == []
        prompt = await stage.asks()
        code = stage.code_of(prompt)
        shell = f"{sys.executable} -m zerobot --config {stage.folder / 'zerobot.toml'} approvals approve {code}"
        stage.model.answers(calls("shell", id="c9", command=shell), says("It refused."))
        stage.vic.says("approve it")
        await stage.vic.chat.reply("It refused.")
        assert stage.model.last_request.result_of("c9").code != "UNKNOWN_TOOL"
        assert [each for each in daemon.named("approval.decided") if each["state"] == "approved"] == []
        await daemon.kill()
    assert not stage.made()


async def test_always_holds_for_the_same_command_in_the_same_chat_only(stage: Stage) -> None:
    """V037, V039, V041: a grant covers what it names, no longer line, and no other conversation."""
    async with stage.daemon() as daemon:
        prompt = await stage.asks(command="git push")
        stage.model.answers(says("Done."))
        await stage.press(stage.olga, prompt, "Always in this chat")
        await stage.team.reply("Done.")
        stage.model.answers(calls("shell", id="c2", command="git push origin x"), says("No question."))
        stage.olga.says("again", chat=stage.team)
        await stage.team.reply("No question.")
        assert len(daemon.named("approval.requested")) == 1
        assert len(daemon.named("tool.started")) == 2
        stage.model.answers(calls("shell", id="c3", command="git push; rm -rf build"))
        stage.olga.says("more", chat=stage.team)
        await daemon.until("approval.requested", count=2)
        stage.model.answers(calls("shell", id="c4", command="git push"))
        stage.uma.says("me too")
        await daemon.until("approval.requested", count=3)
        assert len(daemon.named("tool.started")) == 2
        await daemon.kill()


async def test_a_prompt_that_was_deleted_is_still_decided_by_its_code(stage: Stage) -> None:
    """V053: the message is no part of the decision."""
    async with stage.daemon():
        prompt = await stage.asks()
        prompt.deleted = True
        stage.model.answers(says("Done."))
        stage.olga.says(f"/approve {stage.code_of(prompt)}", chat=stage.team)
        await stage.team.reply("Done.")
    assert stage.made()


async def test_always_can_be_typed_as_well(stage: Stage) -> None:
    """`/approve CODE always`, where nobody can press: approved, and a grant as by the button."""
    async with stage.daemon() as daemon:
        prompt = await stage.asks()
        stage.model.answers(says("Done."))
        stage.olga.says(f"/approve {stage.code_of(prompt)} Always", chat=stage.team)
        await stage.team.reply("Approved, and always")
        await stage.team.reply("Done.")
        (decided,) = daemon.named("approval.decided")
        assert decided["granted"] is True
    assert stage.made()


async def test_a_decision_that_cannot_be_stored_does_not_count(stage: Stage) -> None:
    """V055: no decision on record, no run; the presser is told, and can press again."""
    stage.expected_errors = {"storage.failed", "telegram.not_stored", "storage.alarm"}
    async with stage.daemon() as daemon:
        prompt = await stage.asks()
        with FullDisk(daemon):
            told = await stage.press(stage.olga, prompt, "Approve")
            assert "could not be stored" in told.text
            assert daemon.named("approval.decided") == []
        stage.model.answers(says("Done."))
        told = await stage.press(stage.olga, prompt, "Approve")
        await stage.team.reply("Done.")
    assert told.text == "Approved."
    assert stage.made()


async def test_somebody_who_is_an_operator_no_more_decides_nothing(stage: Stage) -> None:
    """V035: the list that counts is the one of the press, not of the request."""
    stage.configure("operators", users=["telegram:1001", "telegram:2002"])
    async with stage.daemon():
        prompt = await stage.asks()
    stage.configure("operators", users=["telegram:2002"])
    stage.configure("channels.telegram", allowed_users=["1001"])
    async with stage.daemon() as daemon:
        told = await stage.press(stage.olga, prompt, "Approve")
        assert "Only an operator" in told.text
        assert daemon.named("approval.decided") == []


async def test_an_approval_expires_also_while_nothing_runs(stage: Stage) -> None:
    """A22: its time passes over a crash, and a press after it is told so."""
    stage.configure("security", approval_timeout="1s")
    async with stage.daemon():
        prompt = await stage.asks()
    stage.model.answers(says("Nobody decided."))
    async with stage.daemon() as daemon:
        await stage.team.reply("Nobody decided.")
        await stage.team.wait_for(lambda _: not prompt.buttons)
        approval = daemon.named("approval.decided")[0]["approval"]
        told = await stage.olga.sends_press(prompt, f"a:{approval}").answered()
    assert "xpired" in told.text
    assert not stage.made()


async def test_a_denial_with_its_reason_reaches_the_model(stage: Stage) -> None:
    """T52: the result of that call says who did not want it and why."""
    async with stage.daemon():
        prompt = await stage.asks()
        stage.model.answers(says("Understood."))
        stage.olga.says(f"/deny {stage.code_of(prompt)} not on Friday", chat=stage.team)
        await stage.team.reply("Understood.")
        await stage.team.wait_for(lambda _: "not on Friday" in prompt.text)
    result = stage.model.last_request.result_of("c1")
    assert result.code == "DENIED"
    assert "not on Friday" in result.text
    assert not stage.made()


@pytest.mark.parametrize(("rule", "direct_is_enough"), [("direct", True), ("never", False)])
async def test_whether_an_operator_may_decide_his_own_is_configured(
    stage: Stage, rule: str, *, direct_is_enough: bool
) -> None:
    """`self_approval`: in a group the asker's own press is refused; with `direct` he decides in his direct chat."""
    group = stage.team
    stage.configure("operators", users=["telegram:1001", "telegram:2002"], self_approval=rule, notify="here")
    async with stage.daemon():
        prompt = await stage.asks(stage.olga, chat=group)
        told = await stage.press(stage.olga, prompt, "Approve")
        assert "another operator" in told.text
        stage.model.answers(says("Done."))
        if direct_is_enough:
            stage.olga.says(f"/approve {stage.code_of(prompt)}")
        else:
            await stage.press(stage.vic, prompt, "Approve")
        await group.reply("Done.")
    assert stage.made()


async def test_with_notify_direct_the_operator_is_asked_alone(stage: Stage) -> None:
    """A request from somebody else's chat is shown in the operator's own, and the reply goes back to the asker."""
    stage.configure("operators", notify="direct")
    stage.model.answers(calls("shell", id="c1", command="touch made"), says("Done."))
    async with stage.daemon():
        stage.uma.says("do it")
        prompt = await stage.prompt(stage.olga.chat)
        assert stage.uma.chat.prompt is None
        await stage.press(stage.olga, prompt, "Approve")
        await stage.uma.chat.reply("Done.")
    assert "Uma" in prompt.text
    assert "telegram:2001" in prompt.text


async def test_an_operator_who_cannot_be_reached_is_told_of_truthfully(stage: Stage) -> None:
    """V047: who cannot be asked has not said no; the turn goes on and the asker hears of it."""
    stage.olga.blocks_the_bot()
    stage.model.answers(calls("shell", id="c1", command="touch made"), says("I could not ask."))
    async with stage.daemon():
        stage.uma.says("do it")
        await stage.uma.chat.reply("I could not ask.")
    result = stage.model.last_request.result_of("c1")
    assert result.code == "BLOCKED"
    assert "no operator can be reached" in result.text
    assert not stage.made()


async def test_a_prompt_whose_buttons_are_refused_is_shown_with_its_code(stage: Stage) -> None:
    """B023: a long call id does not get into the buttons, and without buttons the code decides."""
    stage.model.answers(calls("shell", id="call_" + "x" * 35, command="touch made"), says("Done."))
    stage.telegram.fail_next("sendMessage", 400, "Bad Request: BUTTON_DATA_INVALID")
    async with stage.daemon():
        stage.olga.says("do it", chat=stage.team)
        shown = await stage.team.reply("/approve ")
        assert shown.buttons == []
        stage.olga.says(f"/approve {stage.code_of(shown)}", chat=stage.team)
        await stage.team.reply("Done.")
    assert stage.made()


async def test_equal_calls_of_one_answer_ask_once(stage: Stage) -> None:
    """V043: a model that repeats itself does not flood the operator; each call gets its result."""
    equal = calls("shell", id="e0", command="touch made")
    for number in range(1, 10):
        equal += calls("shell", id=f"e{number}", command="touch made")
    stage.model.answers(equal)
    async with stage.daemon() as daemon:
        stage.olga.says("ten equal", chat=stage.team)
        await daemon.until("turn.paused")
        await daemon.kill()
    assert len(daemon.named("approval.requested")) == 1


async def test_a_link_that_was_put_there_after_the_prompt_is_not_followed(stage: Stage) -> None:
    """What was approved is a write to one place; a link to another place makes it another call."""
    stage.model.answers(calls("write_file", id="c1", path="notes.txt", content="touch evil\n"), says("Understood."))
    async with stage.daemon():
        stage.olga.says("@zero_bot write it down", chat=stage.team)
        prompt = await stage.prompt(stage.team)
        (stage.workspace / "other.txt").write_text("kept", encoding="utf-8")
        (stage.workspace / "notes.txt").symlink_to(stage.workspace / "other.txt")
        await stage.press(stage.olga, prompt, "Approve")
        await stage.team.reply("Understood.")
    assert stage.model.last_request.result_of("c1").code == "BLOCKED"
    assert (stage.workspace / "other.txt").read_text(encoding="utf-8") == "kept"
