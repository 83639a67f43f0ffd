"""One daemon a state directory, graceful stops, and starts right after a kill."""

import os
import signal

import pytest

from tests.crash.world import FREE, HELD, INTERRUPTED, World
from tests.platforms.daemon_process import DaemonProcess
from tests.platforms.model_script import calls, holds, says

pytestmark = pytest.mark.slow


async def test_a_second_daemon_is_refused(world: World) -> None:
    """Who comes second is told in one line who holds the state directory; the first one is not disturbed."""
    world.model.answers(says("Hello."))
    async with world.daemon() as daemon:
        await daemon.ready()
        async with DaemonProcess(world.config) as second:
            assert await second.ended() == 1
        (line,) = second.other_lines
        assert f"process {daemon.pid}" in line
        assert "zerobot run" in line
        assert second.events == []
        world.ann.says("hi")
        await world.settles(daemon)
    assert world.said == ["Hello."]


async def test_a_start_right_after_a_kill_works(world: World) -> None:
    """Neither the lock nor the socket of a killed daemon keeps the next one from starting."""
    world.model.answers(says("Hello."))
    for _ in range(2):
        async with world.daemon() as daemon:
            await daemon.ready()
            await daemon.kill()
    async with world.daemon() as daemon:
        await daemon.ready()
        world.ann.says("hi")
        await world.settles(daemon)
    assert world.said == ["Hello."]


async def test_killed_while_it_opens_its_first_database(world: World) -> None:
    """A first start that dies in the middle of creating the schema leaves nothing that the second cannot use."""
    world.model.answers(says("Hello."))
    await world.dies("before 1 ")
    await world.dies("after 1 ")
    async with world.daemon() as daemon:
        await daemon.ready()
        world.ann.says("hi")
        await world.settles(daemon)
    assert world.said == ["Hello."]


async def test_a_graceful_stop_lets_a_turn_end(world: World) -> None:
    """A turn that ends within the grace is answered before the daemon is gone."""
    world.model.answers(calls("shell", id="c1", command=HELD), says("Done."))
    async with world.daemon() as daemon:
        await daemon.ready()
        world.ann.says("please")
        await world.until_held_runs()
        os.kill(daemon.pid, signal.SIGTERM)
        world.lets_held_end()
        assert await daemon.ended() == 0
        assert daemon.named("turn.finished")[0]["outcome"] == "replied"
    assert world.said == ["Done."]
    assert world.model.last_request.result_of("c1").code == "OK"


async def test_a_graceful_stop_while_the_model_thinks_leaves_the_turn_for_the_next_start(world: World) -> None:
    """A turn that does not end within the grace goes on at the next start, and that was no crash."""
    world.configure(grace="0.2s")
    world.model.answers(holds(says("First words of it."), after=2), says("The whole answer."))
    async with world.daemon() as daemon:
        await daemon.ready()
        world.ann.says("hi")
        await world.chat.reply("First words")
        assert await daemon.stop() == 0
    assert world.rows("SELECT state, crashes FROM turns") == [("suspended", 0)]
    async with world.daemon() as daemon:
        await world.settles(daemon)
    assert world.said == ["The whole answer."]


async def test_a_graceful_stop_while_a_tool_runs_interrupts_it(world: World) -> None:
    """A tool that does not end within the grace is ended; the model is told at the next start, and it runs once."""
    world.configure(grace="0.2s")
    world.model.answers(calls("shell", id="c1", command=HELD) + calls("shell", id="c2", command=FREE), says("Done."))
    async with world.daemon() as daemon:
        await daemon.ready()
        world.ann.says("please")
        await world.until_held_runs()
        assert await daemon.stop() == 0
    await world.until_gone("held")
    async with world.daemon() as daemon:
        await world.settles(daemon)
    assert world.said == ["Done."]
    assert (world.runs("held"), world.runs("free")) == (1, 1)
    assert world.model.last_request.result_of("c1").code == INTERRUPTED
    assert world.model.last_request.result_of("c2").code == "OK"


async def test_a_stop_takes_over_what_was_just_delivered(world: World) -> None:
    """Stopped right after an event came in, it is neither lost nor worked on twice."""
    world.model.answers(says("Hello."), says("Hello."))
    async with world.daemon() as daemon:
        await daemon.ready()
        polls = len(world.telegram.of("getUpdates"))
        world.ann.says("hi")
        await world.telegram.wait_for(
            lambda: len(world.telegram.of("getUpdates")) > polls or world.telegram.unconfirmed
        )
        assert await daemon.stop() == 0
    async with world.daemon() as daemon:
        await daemon.ready()
        await world.telegram.wait_for(lambda: world.said)
        assert await daemon.stop() == 0
    assert world.said == ["Hello."]
    assert world.rows("SELECT count(*) FROM turns") == [(1,)]


async def test_a_second_signal_ends_it_at_once(world: World) -> None:
    """Who asks twice does not wait for the grace; the turn goes on at the next start all the same."""
    world.model.answers(holds(says("Lost.")), says("Hello."))
    async with world.daemon() as daemon:
        await daemon.ready()
        world.ann.says("hi")
        await world.model.until_holding()
        os.kill(daemon.pid, signal.SIGTERM)
        await daemon.until("daemon.stopping")
        os.kill(daemon.pid, signal.SIGTERM)
        assert await daemon.ended() == 130
    async with world.daemon() as daemon:
        await world.settles(daemon)
    assert world.said == ["Hello."]


async def test_a_stop_while_it_starts_is_a_stop(world: World) -> None:
    """A signal that comes while the daemon still connects ends it like any other."""
    connecting = world.telegram.hold_next("getMe")
    async with world.daemon() as daemon:
        await connecting.arrived.wait()
        assert await daemon.stop() == 0
        assert daemon.named("daemon.ready") == []
