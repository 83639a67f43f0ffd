"""The daemon dies while operators are asked about a stranger: they are asked all the same, and decide once."""

import pytest

from tests.crash.world import ASKED, World
from tests.platforms.model_script import calls
from tests.platforms.telegram_world import Message

pytestmark = pytest.mark.slow

ASKS = calls("shell", id="c1", command=ASKED)


def asked(world: World) -> list[Message]:
    """The messages in which Ann was asked about somebody, decided or not."""
    return [each for each in world.ann.chat.replies if "wants to talk to me" in each.history[0]]


async def test_killed_before_an_operator_could_read_of_a_stranger(world: World) -> None:
    """What never arrived is asked after the start."""
    stranger = world.telegram.user("9001")
    async with world.daemon() as daemon:
        await daemon.ready()
        sending = world.telegram.hold_next("sendMessage", chat=world.ann.chat)
        stranger.says("hello")
        await sending.arrived.wait()
        await daemon.kill()
    assert asked(world) == []
    async with world.daemon() as daemon:
        await world.telegram.wait_for(lambda: asked(world))
        await world.ann.presses(asked(world)[0], "Approve").answered()
        await stranger.chat.reply("You are in.")
        assert await daemon.stop() == 0
    assert len(asked(world)) == 1


async def test_killed_while_an_operator_is_asked_about_a_stranger(world: World) -> None:
    """A message that may be there is sent once more; both have good buttons, which go once one was pressed."""
    stranger = world.telegram.user("9001")
    async with world.daemon() as daemon:
        await daemon.ready()
        sending = world.telegram.hold_next("sendMessage", carried_out=True, chat=world.ann.chat)
        stranger.says("hello")
        await sending.arrived.wait()
        await daemon.kill()
    async with world.daemon() as daemon:
        await world.telegram.wait_for(lambda: len(asked(world)) == 2)
        await world.ann.presses(asked(world)[0], "Approve").answered()
        await stranger.chat.reply("You are in.")
        await world.telegram.wait_for(lambda: not any(each.buttons for each in asked(world)))
        assert await daemon.stop() == 0
    async with world.daemon() as daemon:
        await daemon.ready()
        assert await daemon.stop() == 0
    assert len(asked(world)) == 2


async def test_killed_right_after_somebody_was_shut_out(world: World) -> None:
    """The operator reads that it is done, though it was done before the start; nothing goes on for the person."""
    stranger = world.telegram.user("9001")
    world.model.answers(ASKS)
    async with world.daemon() as daemon:
        await daemon.ready()
        stranger.says("hello")
        await world.telegram.wait_for(lambda: asked(world))
        await world.ann.presses(asked(world)[0], "Approve").answered()
        await stranger.chat.reply("You are in.")
        stranger.says("please")
        await daemon.until("approval.requested")
        assert await daemon.stop() == 0
    await world.dies("after 1 DELETE FROM handles", world.says("/pair revoke telegram:9001"))
    async with world.daemon() as daemon:
        await world.ann.chat.reply("telegram:9001 may no longer talk to me.")
        await daemon.until("turn.finished")
        assert await daemon.stop() == 0
    assert daemon.named("turn.finished")[0]["outcome"] == "stopped"
    assert world.runs("asked") == 0
