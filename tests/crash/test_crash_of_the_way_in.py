"""Killed on the way in: from the platform's event to the model's first word."""

import pytest

from tests.crash.world import HELD, World
from tests.platforms.model_script import calls, holds, says

pytestmark = pytest.mark.slow


async def test_killed_before_the_inbox_commit(world: World) -> None:
    """What was not stored was not confirmed either: the platform sends it again, and it is answered once."""
    world.model.answers(says("Hello."))
    await world.dies("before 1 INSERT INTO inbox", world.says("hi"))
    assert world.telegram.unconfirmed != []
    async with world.daemon() as daemon:
        await world.settles(daemon)
    assert world.said == ["Hello."]
    assert len(world.model.requests) == 1


async def test_killed_between_the_inbox_commit_and_the_acknowledgement(world: World) -> None:
    """The platform sends again what we have: it is known, and answered once."""
    world.model.answers(says("Hello."))
    await world.dies("after 1 INSERT INTO inbox", world.says("hi"))
    assert world.telegram.unconfirmed != []
    async with world.daemon() as daemon:
        refused = await daemon.until("envelope.refused")
        assert refused["reason"] == "duplicate"
        await world.settles(daemon)
    assert world.said == ["Hello."]
    assert len(world.model.requests) == 1


async def test_killed_while_the_platform_is_told(world: World) -> None:
    """The position is stored, the call that confirms it never ends: one answer."""
    world.model.answers(says("Hello."), says("And again."))
    async with world.daemon() as daemon:
        await daemon.ready()
        await world.telegram.wait_for(lambda: len(world.telegram.of("getUpdates")) >= 2)
        confirming = world.telegram.hold_next("getUpdates")
        world.ann.says("hi")
        await confirming.arrived.wait()
        await daemon.until("delivery.sent")
        await daemon.kill()
    async with world.daemon() as daemon:
        await daemon.ready()
        world.ann.says("once more")
        await world.settles(daemon)
    assert world.said == ["Hello.", "And again."]


async def test_killed_before_the_turn(world: World) -> None:
    """An accepted message whose turn was not begun begins it at the next start."""
    world.model.answers(says("Hello."))
    await world.dies("before 1 INSERT INTO turns", world.says("hi"))
    async with world.daemon() as daemon:
        await world.settles(daemon)
        assert daemon.named("turn.started")[0]["resumed"] is False
    assert world.said == ["Hello."]


async def test_killed_at_the_turns_begin(world: World) -> None:
    """A turn that was begun and asked nothing yet goes on by itself."""
    world.model.answers(says("Hello."))
    await world.dies("after 1 INSERT INTO turns", world.says("hi"))
    async with world.daemon() as daemon:
        await world.settles(daemon)
        assert daemon.named("turn.started")[0]["resumed"] is True
    assert world.said == ["Hello."]
    assert world.rows("SELECT outcome, reason, crashes FROM turns") == [("replied", "done", 1)]


async def test_killed_while_the_model_thinks(world: World) -> None:
    """The model is asked again, and the question is in its history once."""
    world.model.answers(holds(says("Lost.")), says("Hello."))
    async with world.daemon() as daemon:
        await daemon.ready()
        world.ann.says("hi")
        await world.model.until_holding()
        await daemon.kill()
    async with world.daemon() as daemon:
        await world.settles(daemon)
    assert world.said == ["Hello."]
    assert world.model.last_request.messages == [("user", "hi")]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_killed_while_an_input_joins_a_turn(world: World, when: str) -> None:
    """It waits still or it is said already; the turn goes on with it, no tool runs again, one answer is for both."""
    world.configure(during_turn="steer")
    world.model.answers(calls("shell", id="c1", command=HELD), says("Both."))
    async with world.daemon(f"{when} 2 SET state = 'taken'") as daemon:
        await daemon.ready()
        world.ann.says("one")
        await world.until_held_runs()
        world.ann.says("two")
        await daemon.until("envelope.accepted", count=2)
        world.lets_held_end()
        await world.until_dead(daemon)
    async with world.daemon() as daemon:
        await world.settles(daemon)
    assert world.said == ["Both."]
    assert world.runs("held") == 1
    assert [text for role, text in world.model.last_request.messages if role == "user"] == ["one", "two"]
    assert world.rows("SELECT DISTINCT state FROM inbox") == [("done",)]
    assert world.rows("SELECT count(*) FROM turns") == [(1,)]


async def test_killed_while_the_answer_streams(world: World) -> None:
    """The draft that people see becomes the answer: it is edited, no second message comes."""
    world.model.answers(holds(says("First words of it."), after=2), says("The whole answer."))
    await world.dies("after 1 SET state = 'sent', platform_id", world.says("hi"))
    (draft,) = world.chat.replies
    assert draft.text == "First words"
    async with world.daemon() as daemon:
        await world.settles(daemon)
    assert world.said == ["The whole answer."]
    assert draft.text == "The whole answer."


async def test_killed_while_the_first_draft_is_sent(world: World) -> None:
    """Nobody knows whether the platform took the draft: the answer comes once more, marked as a possible repeat."""
    world.model.answers(holds(says("First words of it."), after=2), says("The whole answer."))
    async with world.daemon() as daemon:
        await daemon.ready()
        sending = world.telegram.hold_next("sendMessage", carried_out=True)
        world.ann.says("hi")
        await sending.arrived.wait()
        await daemon.kill()
    async with world.daemon() as daemon:
        await world.settles(daemon)
    assert [text.strip() for text in world.said] == ["First words", "↻ possibly a repeat:\nThe whole answer."]
