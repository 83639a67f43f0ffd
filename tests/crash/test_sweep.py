"""The whole way of a message, killed right before and after every commit that the daemon makes on it, and at random.

A person asks; the model looks with a tool that needs nobody, then calls one that an operator has to approve; he does;
the answer streams into a draft; a second question follows. Whatever the moment of the kill, people and the model see
the same in the end as without it, but for what no daemon can know: one message may be there twice, the second one
marked, and one call may be on record as interrupted.
"""

import asyncio
import contextlib
import random
import signal
from itertools import count
from pathlib import Path

import pytest

from tests.crash.world import ASKED, FREE, REPEAT, World
from tests.platforms.daemon_process import PATIENCE, DaemonProcess
from tests.platforms.model_script import Step, calls, holds, says
from tests.platforms.model_server import ModelServer
from tests.platforms.telegram_server import TelegramServer

pytestmark = pytest.mark.slow

SHARDS = 6
"""Tests that share the commits, so that they can run side by side."""
MOMENTS = 5
"""Random moments of one of eight tests."""
LONGER_THAN_IT_WORKS = 2_000.0
"""Milliseconds of processor time, more than the conversation takes on most machines; the test finds out."""
AGAIN = 3
"""How often the model gives an answer: a kill may make the daemon ask again."""
ANSWER = "All of it is done now."
GOES_ON = "\n\nRun a command in the workspace"
SAID = ["I look first.\n\nNow for it.", ANSWER, "You are welcome."]
STORY = [
    ("user", "[Ann] please"),
    ("assistant", "I look first."),
    ("tool", "free ran\n[exit status 0]\n"),
    ("assistant", "Now for it."),
    ("tool", "asked ran\n[exit status 0]\n"),
    ("assistant", ANSWER),
    ("user", "[Ann] thanks"),
]


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("when", ["before", "after", "stop"])
async def test_ended_at_every_commit(tmp_path: Path, when: str, shard: int) -> None:
    """One answer, no tool run twice, one decision; and after a graceful stop neither a mark nor an interrupted call."""
    ended = 0
    for number in count(shard + 1, SHARDS):
        if not await lives_to(tmp_path / str(number), f"{when} {number} ", is_killed=when != "stop"):
            break
        ended += 1
    assert ended >= 3, "the daemon commits less than that: the sweep does not end it"


@pytest.mark.parametrize("seed", range(8))
async def test_killed_at_random_moments(tmp_path: Path, seed: int) -> None:
    """The same at 40 moments of the daemon's work, from its start to its end: in a commit, a call, or between two."""
    draws, ends, killed = random.Random(seed), LONGER_THAN_IT_WORKS, 0
    for number in count():
        moment = draws.uniform(0, ends)
        if not await lives_to(tmp_path / str(number), f"work {moment:.0f} "):
            ends = moment
        elif (killed := killed + 1) == MOMENTS:
            break


async def lives_to(folder: Path, crash_at: str, *, is_killed: bool = True) -> bool:
    """Have the conversation in a world of its own and look at its end; False: it had come by itself."""
    async with ModelServer() as model, TelegramServer() as telegram:
        world = World(folder, model, telegram)
        world.chat = telegram.group()
        if not await lives_through(world, crash_at):
            return False
        checks(world, is_killed=is_killed)
        return True


async def lives_through(world: World, crash_at: str) -> bool:
    """Have the conversation with a daemon that ends too early; False: it ended when all was done."""
    writes_script(world)
    person = asyncio.create_task(talks(world))
    async with world.daemon(crash_at) as daemon:
        ended = asyncio.create_task(daemon.ended())
        await asyncio.wait({person, ended}, return_when=asyncio.FIRST_COMPLETED)
        is_early = ended.done()
        if not is_early:
            await person
            await stops(world, daemon)
        is_early = is_early or await ended == -signal.SIGKILL
    if is_early:
        is_asked = world.rows("SELECT 1 FROM approvals") if world.has_table("approvals") else []
        world.model.when("was interrupted", says(ANSWER) if is_asked else CALLS_ASKED)
        async with world.daemon() as daemon:
            await daemon.ready()
            await person
            await stops(world, daemon)
            assert await daemon.ended() == 0
    return is_early


CALLS_ASKED: Step = says("Now for it.") + calls("shell", command=ASKED)


def writes_script(world: World) -> None:
    """What the model answers, by what it is asked."""
    world.model.when("please", *[says("I look first.") + calls("shell", command=FREE)] * AGAIN)
    world.model.when("free ran", *[CALLS_ASKED] * AGAIN)
    world.model.when("asked ran", holds(says(ANSWER), after=2), *[says(ANSWER)] * AGAIN)
    world.model.when("thanks", *[says("You are welcome.")] * AGAIN)


async def talks(world: World) -> None:
    """What the person does, whatever becomes of the daemon."""
    telegram = world.telegram
    world.ann.says("@zero_bot please", chat=world.chat)
    world.ann.presses(await world.prompt(), "Approve")
    streams = asyncio.create_task(lets_stream(world))
    await telegram.wait_for(lambda: any(text.endswith(ANSWER) for text in world.said), PATIENCE)
    streams.cancel()
    world.ann.says("@zero_bot thanks", chat=world.chat)
    await telegram.wait_for(lambda: any(text.endswith("welcome.") for text in world.said), PATIENCE)


async def lets_stream(world: World) -> None:
    """Let the answer go on as soon as its draft stands in the chat."""
    await world.model.until_holding()
    await world.telegram.wait_for(lambda: any("All of" in text for text in world.said), PATIENCE)
    with contextlib.suppress(IndexError):  # who asked for it has died meanwhile
        world.model.release()


async def stops(world: World, daemon: DaemonProcess) -> None:
    """Stop a daemon that has nothing left to do but to settle the newest prompt."""
    settled = asyncio.create_task(world.telegram.wait_for(lambda: not world.prompts[-1].buttons, PATIENCE))
    ended = asyncio.create_task(daemon.ended())
    await asyncio.wait({settled, ended}, return_when=asyncio.FIRST_COMPLETED)
    if not ended.done():
        await settled
        await daemon.stop()
    await ended
    settled.cancel()


def checks(world: World, *, is_killed: bool) -> None:
    """What must hold in the end."""
    marked = [text for text in world.said if REPEAT in text]
    plain = [text for text in world.said if REPEAT not in text]
    repeated = [text.partition("\n")[2] for text in marked]
    assert len(marked) <= is_killed
    for text in SAID:
        assert plain.count(text) + repeated.count(text) >= 1, world.said
    # A draft whose sending was unclear stays as it was, maybe with what went on; the whole text follows with the mark.
    drafts = [text.removesuffix(GOES_ON) for text in plain if text not in SAID]
    assert [text for text in drafts if not any(each.startswith(text) for each in repeated)] == []
    assert len(plain) == len(set(plain))
    codes = [code for (code,) in world.rows("SELECT code FROM tool_calls ORDER BY message_id")]
    assert len(codes) == 2
    assert codes.count("OK") >= 2 - is_killed
    for name, code in zip(("free", "asked"), codes, strict=True):
        assert world.runs(name) == 1 or (code == "INTERRUPTED" and world.runs(name) == 0)
    assert world.rows("SELECT state FROM approvals") == [("approved",)]
    assert len(world.prompts) <= 1 + is_killed
    assert world.rows("SELECT outcome FROM turns") == [("replied",)] * 2
    assert world.rows("SELECT count(*) FROM inbox WHERE state <> 'done'") == [(0,)]
    assert world.rows("SELECT count(*) FROM replies WHERE state <> 'done'") == [(0,)]
    assert world.telegram.violations == []
    story = [(role, text.partition("[receipt")[0]) for role, text in world.model.last_request.messages]
    assert len(story) == len(STORY)
    assert [
        each for each in zip(story, STORY, strict=True) if each[0] != each[1] and "INTERRUPTED" not in each[0][1]
    ] == []
