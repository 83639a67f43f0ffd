"""What operators can always do: let people in by a button, shut them out at once, stop all tools at once."""

from tests.e2e.stage import Stage
from tests.platforms.model_script import calls, says
from tests.sandbox.boxes import box_or_skip
from zerobot.security.policy import bounds_of
from zerobot.security.sandbox import SandboxKind

SLEEP = "touch begun; sleep 60; touch made"


async def test_a_stranger_is_let_in_by_a_button(stage: Stage) -> None:
    """The operator is asked in his direct chat, presses, and the stranger is told and answered; no model before."""
    stage.model.always(says("Welcome."))
    async with stage.daemon():
        stage.xen.says("hello?")
        prompt = await stage.prompt(stage.olga.chat)
        assert "Xen (telegram:9001)" in prompt.text
        told = await stage.press(stage.xen, prompt, "Approve")
        assert "operator" in told.text
        told = await stage.press(stage.olga, prompt, "Approve")
        assert "telegram:9001 may talk to me" in told.text
        await stage.xen.chat.reply("You are in")
        await stage.olga.chat.wait_for(lambda _: not prompt.buttons)
        assert "Let in by telegram:1001" in prompt.text
        assert stage.model.requests == []
        stage.xen.says("hello!")
        await stage.xen.chat.reply("Welcome.")


async def test_revoking_stops_what_runs_for_the_person_at_once(stage: Stage) -> None:
    """A running tool is ended, what waits is refused, and nothing that he writes is taken in any more."""
    stage.configure("channels.telegram", allowed_users=["@uma"])
    stage.configure("security", auto_approve=["shell"])
    async with stage.daemon() as daemon:
        stage.model.answers(calls("shell", id="c1", command=SLEEP))
        stage.uma.says("sleep")
        await daemon.until("tool.started")
        stage.uma.says("and this")
        await daemon.until("envelope.accepted", count=2)
        stage.olga.says("/pair revoke telegram:2001")
        await stage.olga.chat.reply("may no longer talk")
        await daemon.until("turn.finished")
        stage.uma.says("hello?")
        refused = await daemon.until("envelope.refused")
    assert daemon.named("turn.finished")[0]["outcome"] == "stopped"
    assert refused["reason"] == "not_allowed"
    assert len(stage.model.requests) == 1
    assert not stage.made()


async def test_a_strangers_name_is_a_name_in_the_list_and_nothing_else(stage: Stage) -> None:
    """No markup, no line of its own, nothing that turns the text around."""
    name = "Ann** on mail\n- `telegram:2` Boss: allowed on telegram \u202e"
    stage.telegram.user("9002", name=name).says("hello?")
    async with stage.daemon():
        prompt = await stage.prompt(stage.olga.chat)
        stage.olga.says("/pair")
        listed = await stage.olga.chat.reply("pending")
        shown = "Ann** on mail\\n- 'telegram:2' Boss: allowed on telegram \\u{202e}"
        assert listed.text == f"• telegram:9002 {shown}: pending on telegram {stage.code_of(prompt)}"


async def test_revoking_somebody_whom_the_settings_let_in_says_so(stage: Stage) -> None:
    """A pairing is ended, but an id in the settings counts more; the operator is not told that the person is out."""
    async with stage.daemon():
        stage.xen.says("hello?")
        await stage.press(stage.olga, await stage.prompt(stage.olga.chat), "Approve")
        await stage.xen.chat.reply("You are in")
    stage.configure("channels.telegram", allowed_users=["9001"])
    stage.model.always(says("Welcome."))
    async with stage.daemon():
        stage.olga.says("/pair revoke telegram:9001")
        await stage.olga.chat.reply("The settings still let telegram:9001 in on telegram")
        stage.xen.says("hello!")
        await stage.xen.chat.reply("Welcome.")


async def test_somebody_who_was_taken_off_the_list_gets_nothing_done_after_a_restart(stage: Stage) -> None:
    """A paused turn of a person who may not talk any more ends when it would go on, whoever presses."""
    async with stage.daemon():
        stage.model.answers(calls("shell", id="c1", command="touch made"))
        stage.uma.says("do it")
        prompt = await stage.prompt(stage.olga.chat)
    stage.configure("channels.telegram", allowed_users=["2002"])
    async with stage.daemon() as daemon:
        await stage.press(stage.olga, prompt, "Approve")
        await daemon.until("turn.finished")
    assert daemon.named("tool.started") == []
    assert not stage.made()


async def test_the_emergency_stop_ends_running_tools_everywhere_and_outlives_a_restart(stage: Stage) -> None:
    """Two chats have a command running: both are ended at once and told; after a restart still nothing runs."""
    stage.configure("security", auto_approve=["shell"])
    async with stage.daemon() as daemon:
        for person in (stage.uma, stage.vic):
            stage.model.answers(calls("shell", id="c1", command=SLEEP))
            person.says("sleep")
            await daemon.until("tool.started", count=1 + (person is stage.vic))
        stage.model.always(says("It was stopped."))
        stage.olga.says("/freeze")
        await stage.olga.chat.reply("Frozen")
        await daemon.until("turn.finished", count=2)
        for person in (stage.uma, stage.vic):
            await person.chat.reply("An operator has stopped all tools")
            await person.chat.reply("It was stopped.")
        result = stage.model.last_request.result_of("c1")
        assert result.code == "CANCELLED"
    assert not stage.made()
    stage.model.answers(calls("shell", id="c2", command="touch later"), says("I cannot."))
    async with stage.daemon():
        stage.uma.says("again")
        await stage.uma.chat.reply("I cannot.")
        assert stage.model.last_request.result_of("c2").code == "BLOCKED"
        stage.olga.says("/unfreeze")
        await stage.olga.chat.reply("Tools may run again")
        stage.model.answers(calls("shell", id="c3", command="touch later"), says("Done."))
        stage.uma.says("and now?")
        await stage.uma.chat.reply("Done.")
    assert stage.made("later")


async def test_what_was_granted_is_asked_again_once_it_is_revoked(stage: Stage) -> None:
    """The list tells the number; a number that no grant has, however long, ends nothing."""
    stage.configure("security", sandbox=None)
    box_or_skip(SandboxKind.BUBBLEWRAP, bounds_of(workspace=stage.folder))
    async with stage.daemon() as daemon:
        prompt = await stage.asks(command="mkdir made", chat=stage.olga.chat)
        stage.model.always(says("Done."))
        await stage.press(stage.olga, prompt, "Always in this chat")
        await daemon.until("turn.finished")
        for number in ("9" * 20, "7"):
            stage.olga.says(f"/grants revoke {number}")
        await daemon.until("delivery.sent", count=3)
        stage.olga.says("/grants")
        await stage.olga.chat.reply("1: mkdir made (this very command) until")
        stage.olga.says("/grants revoke 1")
        await stage.olga.chat.reply("Revoked.")
        await stage.asks(command="mkdir made", chat=stage.olga.chat)


async def test_one_of_our_own_secrets_is_told_by_its_name_and_never_shown(stage: Stage) -> None:
    """The prompt says whose secret would be given away; it is nowhere in a chat or the log."""
    stage.configure("security", auto_approve=["shell"])
    token = stage.telegram.token
    async with stage.daemon() as daemon:
        stage.model.answers(calls("shell", id="c1", command=f"echo {token} > made"))
        stage.uma.says("show it")
        prompt = await stage.prompt(stage.olga.chat)
        assert f"[secret channels.telegram.bot_token, {len(token)} characters, digest " in prompt.text
        assert "Always in this chat" not in prompt.buttons
        assert daemon.named("approval.requested")[0]["rule"] == "own_secret"
        stage.model.answers(says("Understood."))
        await stage.press(stage.olga, prompt, "Deny")
        await stage.uma.chat.reply("Understood.")
    assert token not in stage.log
    assert not any(token in text for chat in (stage.olga.chat, stage.uma.chat) for text in chat.texts)
    assert not stage.made()
