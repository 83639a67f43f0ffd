"""Killed around an approval: asked, shown, pressed, gone on."""

from typing import Any

import pytest

from tests.crash.world import ASKED, FREE, INTERRUPTED, World
from tests.platforms.daemon_process import DaemonProcess
from tests.platforms.model_script import calls, says

pytestmark = pytest.mark.slow

ASKS = calls("shell", id="c1", command=ASKED)


async def approves(world: World, daemon: DaemonProcess) -> None:
    """Press the first prompt's button, and wait until the turn has ended."""
    press = world.ann.presses(await world.prompt(), "Approve")
    await press.answered()
    await world.settles(daemon)
    assert press.text == "Approved."
    assert world.said[-1] == "Done."
    assert world.runs("asked") == 1


async def test_killed_before_the_pause_is_stored(world: World) -> None:
    """A request that is not stored was not shown; it is made again, and shown once."""
    world.model.answers(ASKS, says("Done."))
    await world.dies("before 1 INSERT INTO approvals", world.says())
    assert world.chat.replies == []
    async with world.daemon() as daemon:
        await approves(world, daemon)
    assert len(world.prompts) == 1
    assert world.rows("SELECT state FROM approvals") == [("approved",)]


async def test_killed_between_the_pause_and_its_prompt(world: World) -> None:
    """A stored request that was not shown is shown at the next start."""
    world.model.answers(ASKS, says("Done."))
    await world.dies("after 1 INSERT INTO approvals", world.says())
    assert world.chat.replies == []
    async with world.daemon() as daemon:
        await approves(world, daemon)
    assert len(world.prompts) == 1


async def test_killed_while_the_prompt_is_sent(world: World) -> None:
    """A prompt that may be there is shown once more; both have good buttons, and one decision counts."""
    world.model.answers(ASKS, says("Done."))
    async with world.daemon() as daemon:
        await daemon.ready()
        sending = world.telegram.hold_next("sendMessage", carried_out=True)
        world.ann.says("please")
        await sending.arrived.wait()
        await daemon.kill()
    old = await world.prompt()
    async with world.daemon() as daemon:
        await world.prompt(2)
        await approves(world, daemon)
    async with world.daemon() as daemon:
        await daemon.ready()
        late = await world.ann.presses(old, "Deny").answered()
        assert "Already decided" in late.text
        assert await daemon.stop() == 0
    assert len(world.prompts) == 2
    assert world.prompts[1].buttons == []
    assert world.runs("asked") == 1


@pytest.mark.parametrize("when", ["before", "after"])
async def test_killed_as_a_lost_prompt_is_pressed(world: World, when: str) -> None:
    """A prompt whose sending nobody recorded decides all the same; in the end no message has buttons any more."""
    world.model.answers(ASKS, says("Done."))
    async with world.daemon() as daemon:
        await daemon.ready()
        sending = world.telegram.hold_next("sendMessage", carried_out=True)
        world.ann.says("please")
        await sending.arrived.wait()
        await daemon.kill()
    lost = await world.prompt()
    async with world.daemon(f"{when} 1 SET state = :state, reason = :reason, decided_by") as daemon:
        await daemon.until("approval.shown")
        press = world.ann.presses(lost, "Approve")
        await world.until_dead(daemon)
    async with world.daemon() as daemon:
        await press.answered()
        await daemon.until("delivery.sent")
        await world.telegram.wait_for(lambda: not any(prompt.buttons for prompt in world.prompts))
        await world.settles(daemon, replies=0)
    assert world.said == ["Done."]
    assert world.runs("asked") == 1
    assert world.rows("SELECT state FROM approvals") == [("approved",)]
    assert all(prompt.text.startswith("Approved") for prompt in world.prompts)


async def test_killed_while_a_lost_prompt_is_shown_again(world: World) -> None:
    """Killed over the same prompt twice: whichever of the three is pressed decides, and none of them keeps buttons."""
    world.model.answers(ASKS, says("Done."))
    world.ann.says("please")
    for _ in range(2):
        sending = world.telegram.hold_next("sendMessage", carried_out=True)
        async with world.daemon() as daemon:
            await sending.arrived.wait()
            await daemon.kill()
    async with world.daemon() as daemon:
        await world.prompt(3)
        await world.ann.presses(world.prompts[1], "Approve").answered()
        await daemon.until("delivery.sent")
        await world.ann.presses(world.prompts[0], "Deny").answered()
        await world.telegram.wait_for(lambda: not any(prompt.buttons for prompt in world.prompts))
        await world.settles(daemon, replies=0)
    assert world.runs("asked") == 1
    assert all(prompt.text.startswith("Approved") for prompt in world.prompts)


async def test_killed_while_the_prompt_stands(world: World) -> None:
    """The old buttons work after a restart, and no second prompt comes."""
    world.model.answers(ASKS, says("Done."))
    await world.dies("after 1 SET shown_at", world.says())
    async with world.daemon() as daemon:
        await approves(world, daemon)
    (prompt,) = world.prompts
    assert prompt.buttons == []
    assert prompt.text.startswith("Approved")


async def test_pressed_while_nothing_runs(world: World) -> None:
    """A button that is pressed while the daemon is down decides at the next start."""
    world.model.answers(ASKS, says("Done."))
    await world.dies("after 1 SET shown_at", world.says())
    press = world.ann.presses(world.prompts[0], "Approve")
    async with world.daemon() as daemon:
        await press.answered()
        await world.settles(daemon)
    assert press.text == "Approved."
    assert world.said == ["Done."]
    assert world.runs("asked") == 1


async def pressed_and_killed(world: World, crash_at: str) -> Any:
    """Let a daemon die at a commit that follows a press; returns the press."""
    async with world.daemon(crash_at) as daemon:
        await daemon.ready()
        world.ann.says("please")
        prompt = await world.prompt()
        press = world.ann.presses(prompt, "Approve")
        await world.until_dead(daemon)
    return press


async def test_killed_before_the_decision_is_stored(world: World) -> None:
    """A press that was not stored comes again, and decides then."""
    world.model.answers(ASKS, says("Done."))
    press = await pressed_and_killed(world, "before 1 SET state = :state, reason = :reason, decided_by")
    assert world.rows("SELECT state FROM approvals") == [("pending",)]
    async with world.daemon() as daemon:
        await press.answered()
        await world.settles(daemon)
    assert press.text == "Approved."
    assert world.said == ["Done."]
    assert world.runs("asked") == 1


async def test_killed_after_the_decision_is_stored(world: World) -> None:
    """A stored decision goes on by itself; the press that comes again is told that it is decided."""
    world.model.answers(ASKS, says("Done."))
    press = await pressed_and_killed(world, "after 1 SET state = :state, reason = :reason, decided_by")
    async with world.daemon() as daemon:
        await press.answered()
        await world.settles(daemon)
    assert press.text.startswith("Already decided. Approved")
    assert world.said == ["Done."]
    assert world.runs("asked") == 1
    assert world.rows("SELECT state FROM approvals") == [("approved",)]


async def test_killed_as_the_approved_call_starts(world: World) -> None:
    """An approved call that was started and not finished is interrupted; its approval does not run it again."""
    world.model.answers(ASKS, says("Done."))
    await pressed_and_killed(world, "after 1 SET state = 'started'")
    async with world.daemon() as daemon:
        await world.settles(daemon)
    assert world.said == ["Done."]
    assert world.runs("asked") == 0
    assert world.model.last_request.result_of("c1").code == INTERRUPTED


async def test_killed_before_the_prompt_shows_the_decision(world: World) -> None:
    """A prompt that was decided and still shows its buttons loses them at the next start."""
    world.model.answers(ASKS, says("Done."))
    async with world.daemon() as daemon:
        await daemon.ready()
        changing = world.telegram.hold_next("editMessageText")
        world.ann.says("please")
        world.ann.presses(await world.prompt(), "Approve")
        await changing.arrived.wait()
        await daemon.kill()
    assert world.prompts[0].buttons != []
    async with world.daemon() as daemon:
        await world.telegram.wait_for(lambda: world.prompts[0].buttons == [])
        await world.telegram.wait_for(lambda: "Done." in world.said)
        await world.settles(daemon, replies=0)
    assert world.said == ["Done."]
    assert world.runs("asked") == 1


async def test_what_waits_for_a_decision_is_told_so_once(world: World) -> None:
    """The author of a message that waits for a decision hears of it once, over any number of starts."""
    world.configure(during_approval="queue")
    world.model.answers(ASKS, says("Done."), says("And that too."))
    async with world.daemon() as daemon:
        await daemon.ready()
        world.ann.says("please")
        await world.prompt()
        world.ann.says("and that")
        await daemon.until("delivery.sent")
        await daemon.kill()
    async with world.daemon() as daemon:
        await daemon.ready()
        world.ann.presses(await world.prompt(), "Approve")
        await world.telegram.wait_for(lambda: "And that too." in world.said)
        await world.settles(daemon, replies=2)
    waits, *answers = world.said
    assert "waiting" in waits
    assert answers == ["Done.", "And that too."]


async def test_a_new_message_takes_the_place_of_a_request_that_a_crash_left_open(world: World) -> None:
    """Over a restart too, an operator's new message withdraws what he was asked: the call never runs."""
    world.model.answers(ASKS, says("Something else, then."))
    await world.dies("after 1 SET shown_at", world.says())
    async with world.daemon() as daemon:
        await daemon.ready()
        world.ann.says("something else")
        await world.telegram.wait_for(lambda: not world.prompts[0].buttons)
        await world.settles(daemon)
    assert len(world.said) == 1
    assert world.said[0].endswith("Something else, then.")
    assert world.runs("asked") == 0
    assert world.rows("SELECT state FROM approvals") == [("cancelled",)]


@pytest.mark.parametrize("decision", ["Approve", "Deny"])
async def test_a_restart_between_request_and_decision_changes_nothing(world: World, decision: str) -> None:
    """With and without a kill while the request stands, the model sees the same in the end, and so does the chat."""
    stories = [await story(world, decision, is_killed=is_killed) for is_killed in (False, True)]
    assert stories[0] == stories[1]
    assert world.runs("asked") == (2 if decision == "Approve" else 0)
    assert world.runs("free") == 2


async def story(world: World, decision: str, *, is_killed: bool) -> tuple[list[tuple[str, str]], list[str]]:
    """Have a call asked for and decided; returns what the model saw of it, and what stands in the chat."""
    world.model.answers(
        says("I look first. ") + calls("shell", id=f"a{is_killed:d}", command=FREE),
        says("Now for it. ") + calls("shell", id=f"b{is_killed:d}", command=ASKED),
        says("Done."),
    )
    prompts, replies = len(world.prompts), len(world.said)
    async with world.daemon() as daemon:
        await daemon.ready()
        world.ann.says("please")
        prompt = await world.prompt(prompts + 1)
        if is_killed:
            await daemon.kill()
        else:
            world.ann.presses(prompt, decision)
            await world.settles(daemon, replies=2)
    if is_killed:
        async with world.daemon() as daemon:
            await daemon.ready()
            world.ann.presses(prompt, decision)
            await world.settles(daemon)
    messages = [(role, text.partition("[receipt")[0]) for role, text in world.model.last_request.messages]
    begins = max(number for number, message in enumerate(messages) if message == ("user", "please"))
    return messages[begins:], world.said[replies:]
