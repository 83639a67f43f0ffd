"""Killed while the earlier conversation is being summed up, before a step by itself or because somebody asks for it."""

import pytest

from tests.crash.world import World
from tests.platforms.daemon_process import DaemonProcess
from tests.platforms.model_script import holds, says

pytestmark = pytest.mark.slow

WINDOW = 1000
NARROW = f'\n[models."main/m-1"]\ncontext_window = {WINDOW}\n'
SUMMARY = "They spoke of questions."
QUESTIONS = 13
"""As many as leave something to sum up between the head and the recent part."""


async def talks(world: World, daemon: DaemonProcess) -> None:
    """Ask some questions. With the last answer the model says that its window is nearly full."""
    for number in range(1, QUESTIONS + 1):
        usage = (WINDOW - 50, 5) if number == QUESTIONS else (12, 5)
        world.model.answers(says(f"answer {number}.", usage=usage))
        world.ann.says(f"question {number}?")
        await daemon.until("delivery.sent", count=number)


def asked_for_summaries(world: World) -> int:
    """How often the model was asked for one."""
    return sum("summary now" in request.newest_text for request in world.model.requests)


def sent(world: World) -> str:
    """What the model read last."""
    return str(world.model.last_request.messages)


def whole(world: World, *, last: str) -> None:
    """Every question has its one answer in the chat, in order."""
    assert world.said == [*(f"answer {number}." for number in range(1, QUESTIONS + 1)), last]


async def test_killed_while_the_model_sums_up(world: World) -> None:
    """A73, A77: the turn goes on with all there is, and does not try again at once; the question is answered once."""
    world.configure(tables=NARROW)
    async with world.daemon() as daemon:
        await daemon.ready()
        await talks(world, daemon)
        world.model.answers(holds(says("Lost.")))
        world.ann.says("and now?")
        await world.model.until_holding()
        await daemon.kill()
    world.model.answers(says("Now this."))
    async with world.daemon() as daemon:
        await world.settles(daemon)
    assert asked_for_summaries(world) == 1
    assert SUMMARY not in sent(world)
    assert all(f"question {number}?" in sent(world) for number in range(1, QUESTIONS + 1))
    whole(world, last="Now this.")


@pytest.mark.parametrize("when", ["before", "after"])
async def test_killed_as_the_summary_is_stored(world: World, when: str) -> None:
    """A71, A73: it stands for the older messages, or they are all sent; never neither, and it is not written twice."""
    world.configure(tables=NARROW)
    async with world.daemon(f"{when} 1 UPDATE summaries SET head") as daemon:
        await daemon.ready()
        await talks(world, daemon)
        world.model.answers(says(SUMMARY), says("Now this."))
        world.ann.says("and now?")
        await world.until_dead(daemon)
    async with world.daemon() as daemon:
        await world.settles(daemon)
    is_stored = when == "after"
    assert asked_for_summaries(world) == 1
    assert (SUMMARY in sent(world)) is is_stored
    assert ("question 4?" in sent(world)) is not is_stored
    assert "question 1?" in sent(world)
    assert f"question {QUESTIONS}?" in sent(world)
    whole(world, last="Now this.")


async def test_killed_while_somebody_waits_for_a_summary(world: World) -> None:
    """/compact is a stored command: the next start carries it out, says so once, and nothing said is lost."""
    async with world.daemon() as daemon:
        await daemon.ready()
        await talks(world, daemon)
        world.model.answers(holds(says("Lost.")))
        world.ann.says("/compact")
        await world.model.until_holding()
        await daemon.kill()
    world.model.answers(says(SUMMARY), says("Now this."))
    async with world.daemon() as daemon:
        await daemon.until("delivery.sent")
        world.ann.says("and now?")
        await world.settles(daemon, replies=2)
    assert SUMMARY in sent(world)
    assert "question 1?" in sent(world)
    assert f"question {QUESTIONS}?" in sent(world)
    told, answer = world.said[QUESTIONS:]
    assert "summed up" in told
    assert answer == "Now this."
