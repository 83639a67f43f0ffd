"""Killed on the way out: the last commit, the send, its record, between the parts of a long answer."""

import pytest

from tests.crash.world import REPEAT, World
from tests.platforms.model_script import holds, says

pytestmark = pytest.mark.slow

LONG = "\n\n".join(f"Paragraph {number}: " + "words and more words. " * 40 for number in range(1, 13))
"""Three messages' worth."""


async def finishes(world: World) -> None:
    """Start again, and wait until all is said."""
    async with world.daemon() as daemon:
        await world.settles(daemon)


async def test_killed_before_the_last_commit(world: World) -> None:
    """An answer that is not stored was not sent: the model is asked again."""
    world.model.answers(says("Lost."), says("Hello."))
    await world.dies("before 1 SET state = 'finished', finished_at", world.says())
    await finishes(world)
    assert world.said == ["Hello."]


async def test_killed_after_the_last_commit(world: World) -> None:
    """A stored answer is delivered at the next start, and the model is not asked again."""
    world.model.answers(says("Hello."))
    await world.dies("after 1 SET state = 'finished', finished_at", world.says())
    assert world.said == []
    await finishes(world)
    assert world.said == ["Hello."]
    assert len(world.model.requests) == 1


@pytest.mark.parametrize("carried_out", [False, True])
async def test_killed_while_the_answer_is_sent(world: World, *, carried_out: bool) -> None:
    """Nobody can ask Telegram whether it took a message: it is sent once more, marked, and no third time."""
    world.model.answers(says("Hello."))
    async with world.daemon() as daemon:
        await daemon.ready()
        sending = world.telegram.hold_next("sendMessage", carried_out=carried_out)
        world.ann.says("hi")
        await sending.arrived.wait()
        await daemon.kill()
    await finishes(world)
    assert world.said == (["Hello."] if carried_out else []) + [f"↻ {REPEAT}:\nHello."]


async def test_killed_in_the_repeat_too(world: World) -> None:
    """A repeat that is unclear as well is the last try, and the chat is told."""
    world.model.answers(says("Hello."), says("Hello again."))
    for number in range(2):
        async with world.daemon() as daemon:
            sending = world.telegram.hold_next("sendMessage", carried_out=True)
            if number == 0:
                await daemon.ready()
                world.ann.says("hi")
            await sending.arrived.wait()
            await daemon.kill()
    async with world.daemon() as daemon:
        await daemon.until("delivery.failed")
        world.ann.says("and?")
        await world.settles(daemon, replies=2)
    told = "⚠️ My answer may not have arrived; say “go on” or ask me to repeat it."
    assert world.said == ["Hello.", f"↻ {REPEAT}:\nHello.", told, "Hello again."]


async def test_killed_after_the_send_is_recorded(world: World) -> None:
    """What is on record as sent is not sent again."""
    world.model.answers(says("Hello."))
    await world.dies("after 1 SET state = 'sent', platform_id", world.says())
    await finishes(world)
    assert world.said == ["Hello."]


@pytest.mark.parametrize("carried_out", [False, True])
async def test_killed_while_the_draft_becomes_the_answer(world: World, *, carried_out: bool) -> None:
    """The last edit of a draft is made again, which changes nothing if it was made: one message, no mark."""
    world.model.answers(holds(says("First words of it."), after=2))
    async with world.daemon() as daemon:
        await daemon.ready()
        world.ann.says("hi")
        draft = await world.chat.reply("First words")
        editing = world.telegram.hold_next("editMessageText", carried_out=carried_out)
        world.model.release()
        await editing.arrived.wait()
        await daemon.kill()
    await finishes(world)
    assert world.said == ["First words of it."]
    assert draft.text == "First words of it."


async def test_killed_between_the_parts_of_a_long_answer(world: World) -> None:
    """The parts that are there stay, the missing ones follow, in order, without a mark."""
    world.model.answers(says(LONG, deltas=[LONG]))
    await world.dies("after 1 SET state = 'sent', platform_id", world.says())
    assert len(world.said) == 1
    await finishes(world)
    assert len(world.said) == 3
    assert words(world.said) == LONG.split()


async def test_killed_while_the_second_part_is_sent(world: World) -> None:
    """Only the part that was under way is marked; the one before is not sent again, the one after comes once."""
    world.model.answers(says(LONG, deltas=[LONG]))
    async with world.daemon() as daemon:
        await daemon.ready()
        world.ann.says("hi")
        await world.telegram.wait_for(lambda: len(world.said) == 1)
        sending = world.telegram.hold_next("sendMessage", carried_out=True)
        await sending.arrived.wait()
        await daemon.kill()
    await finishes(world)
    first, second, repeat, third = world.said
    assert words([first, second, third]) == LONG.split()
    assert repeat == f"↻ {REPEAT}:\n{second}"


async def test_replies_of_two_turns_keep_their_order(world: World) -> None:
    """An answer that a crash held up comes before the answer to what was asked meanwhile."""
    world.model.answers(says("One."), says("Two."))
    await world.dies("after 1 SET state = 'finished', finished_at", world.says("first"))
    world.ann.says("second")
    async with world.daemon() as daemon:
        await world.settles(daemon, replies=2)
    assert world.said == ["One.", "Two."]


@pytest.mark.parametrize("crash_at", ["before 1 SET state = 'done'", "after 1 SET state = 'done'"])
async def test_a_command_is_answered_once(world: World, crash_at: str) -> None:
    """A command that a crash met is answered once, however often it comes again."""
    await world.dies(crash_at, world.says("/whoami"))
    async with world.daemon() as daemon:
        await daemon.ready()
        world.ann.says("/whoami")
        await world.telegram.wait_for(lambda: len(world.said) >= 2)
        assert await daemon.stop() == 0
    async with world.daemon() as daemon:
        await daemon.ready()
        assert await daemon.stop() == 0
    assert len(world.said) == 2


def words(texts: list[str]) -> list[str]:
    """All words of some messages."""
    return " ".join(texts).split()
