"""Killed around a tool call that needs nobody: recorded, started, running, finished."""

import pytest

from tests.crash.world import FREE, HELD, INTERRUPTED, World
from tests.platforms.model_script import calls, holds, says

pytestmark = pytest.mark.slow


async def finishes(world: World) -> None:
    """Start again, and wait until the turn has ended with its answer."""
    async with world.daemon() as daemon:
        await world.settles(daemon)
    assert world.said == ["Done."]


async def test_killed_before_the_answer_is_recorded(world: World) -> None:
    """The model is asked again, and what it called the first time never ran."""
    world.model.answers(calls("shell", command=FREE), calls("shell", id="c2", command=FREE), says("Done."))
    await world.dies("before 1 INSERT INTO tool_calls", world.says())
    assert world.runs("free") == 0
    await finishes(world)
    assert world.runs("free") == 1
    assert world.model.last_request.call_ids == ["c2"]


async def test_killed_between_the_answer_and_its_tools(world: World) -> None:
    """Calls that are on record and were not started run, once; the model is not asked for them again."""
    world.model.answers(calls("shell", id="c1", command=FREE), says("Done."))
    await world.dies("after 1 INSERT INTO tool_calls", world.says())
    await finishes(world)
    assert world.runs("free") == 1
    assert world.model.last_request.result_of("c1").code == "OK"
    assert len(world.model.requests) == 2


async def test_killed_before_the_start_is_recorded(world: World) -> None:
    """A call whose start is not on record has not started."""
    world.model.answers(calls("shell", id="c1", command=FREE), says("Done."))
    await world.dies("before 1 SET state = 'started'", world.says())
    assert world.runs("free") == 0
    await finishes(world)
    assert world.runs("free") == 1


async def test_killed_between_the_start_and_the_process(world: World) -> None:
    """Whether a started call took effect nobody knows: it does not run again, and the model is told."""
    world.model.answers(calls("shell", id="c1", command=FREE), says("Done."))
    await world.dies("after 1 SET state = 'started'", world.says())
    await finishes(world)
    assert world.runs("free") == 0
    assert world.model.last_request.result_of("c1").code == INTERRUPTED


async def test_killed_while_a_tool_runs(world: World) -> None:
    """The tool's processes end with the daemon, it does not run again, and the model is told."""
    world.model.answers(calls("shell", id="c1", command=HELD), says("Done."))
    async with world.daemon() as daemon:
        await daemon.ready()
        world.ann.says("please")
        await world.until_held_runs()
        await daemon.kill()
    await world.until_gone("held")
    await finishes(world)
    assert world.runs("held") == 1
    assert world.model.last_request.result_of("c1").code == INTERRUPTED


async def test_killed_between_a_tools_end_and_its_result(world: World) -> None:
    """The result is lost: the call counts as interrupted, and does not run again."""
    world.model.answers(calls("shell", id="c1", command=FREE), says("Done."))
    await world.dies("before 1 result = :text, receipt", world.says())
    await finishes(world)
    assert world.runs("free") == 1
    assert world.model.last_request.result_of("c1").code == INTERRUPTED


async def test_killed_after_a_tools_result(world: World) -> None:
    """A result that is stored goes to the model."""
    world.model.answers(calls("shell", id="c1", command=FREE), says("Done."))
    await world.dies("after 1 result = :text, receipt", world.says())
    await finishes(world)
    assert world.runs("free") == 1
    assert world.model.last_request.result_of("c1").text.startswith("free ran")


async def test_killed_while_one_of_two_calls_runs(world: World) -> None:
    """Each call of a batch stands for itself: the finished one keeps its result, the running one is interrupted."""
    both = calls("shell", id="c1", command=FREE) + calls("shell", id="c2", command=HELD)
    world.model.answers(both, says("Done."))
    async with world.daemon() as daemon:
        await daemon.ready()
        world.ann.says("please")
        await world.until_held_runs()
        await daemon.kill()
    await finishes(world)
    assert (world.runs("free"), world.runs("held")) == (1, 1)
    request = world.model.last_request
    assert (request.result_of("c1").code, request.result_of("c2").code) == ("OK", INTERRUPTED)


@pytest.mark.parametrize("step", [1, 2, 3])
async def test_finished_steps_are_kept(world: World, step: int) -> None:
    """Killed in any later step, a turn keeps the steps before: the model sees their results, and none runs again."""
    script = [calls("shell", id=f"c{number}", command=FREE) for number in (1, 2, 3)]
    script.insert(step, holds(says("Lost.")))
    world.model.answers(*script, says("Done."))
    async with world.daemon() as daemon:
        await daemon.ready()
        world.ann.says("please")
        await world.model.until_holding()
        await daemon.kill()
    await finishes(world)
    assert world.runs("free") == 3
    assert world.model.last_request.call_ids == ["c1", "c2", "c3"]
    assert world.rows("SELECT DISTINCT code FROM tool_calls") == [("OK",)]


async def test_two_crashes_in_a_row_end_the_turn_and_tell_its_author(world: World) -> None:
    """A turn that is open at two crashes is closed; its author is told, and the conversation goes on."""
    world.model.answers(calls("shell", id="c1", command=HELD), holds(says("Lost.")), says("Done."))
    async with world.daemon() as daemon:
        await daemon.ready()
        world.ann.says("please")
        await world.until_held_runs()
        await daemon.kill()
    async with world.daemon() as daemon:
        await world.model.until_holding()
        await daemon.kill()
    async with world.daemon() as daemon:
        await daemon.until("delivery.sent")
        assert daemon.named("turn.finished")[0]["reason"] == "restarted"
        world.ann.says("once more")
        await world.settles(daemon, replies=2)
    assert "restarted twice" in world.said[0]
    assert world.said[1:] == ["Done."]
    assert world.runs("held") == 1
    assert world.model.last_request.result_of("c1").code == INTERRUPTED


async def test_a_graceful_stop_between_two_crashes_makes_them_none_in_a_row(world: World) -> None:
    """A turn that a crash met, then a graceful stop, then a crash, was not open at two crashes in a row."""
    world.configure(grace="0s")
    world.model.answers(*[holds(says("Lost."))] * 3, says("Done."))
    for number in range(3):
        async with world.daemon() as daemon:
            if number == 0:
                await daemon.ready()
                world.ann.says("please")
            await world.model.until_requests(number + 1)
            await world.model.until_holding()
            if number == 1:
                assert await daemon.stop() == 0
            else:
                await daemon.kill()
            await world.model.until_hung_up(world.model.last_request)
    await finishes(world)
