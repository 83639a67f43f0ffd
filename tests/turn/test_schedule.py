"""Which calls of a batch run side by side (spec K5)."""

import pytest

from zerobot.core.events import ToolFinished
from zerobot.core.model import ModelCall
from zerobot.core.tools import Access, Accesses, Mode
from zerobot.testing.house import House
from zerobot.testing.model import call, says, step
from zerobot.testing.tools import Kind


async def test_calls_that_only_read_run_at_once(house: House) -> None:
    """T29: all start before any ends; each is told as it ends, and recorded in the model's order."""
    batch = [call("rd", "c1", p="a", n=1), call("rd", "c2", p="a", n=2), call("rd", "c3", p="b")]
    house.model.answers(step(calls=batch), says("ok"))
    await house.user.writes("hi")
    await house.tools.has_started("rd a#1", "rd a#2", "rd b")
    for label in ("rd b", "rd a#2", "rd a#1"):
        await house.tools.release(label)
        await house.settles()
    await house.idle()
    assert house.tools.ended == ["rd b", "rd a#2", "rd a#1"]
    told = [event.call for event in house.seen(ToolFinished)]  # type: ignore[union-attr]
    recorded = [each.id for each in (await house.messages()).messages[1].calls]  # type: ignore[union-attr]
    assert told == recorded[::-1]
    assert (await house.history())[2:5] == ["R c1=read a", "R c2=read a", "R c3=read b"]


async def test_a_call_waits_only_for_earlier_ones_that_it_clashes_with(house: House) -> None:
    """T30: the second write on a path waits for the first; a read elsewhere overtakes both."""
    batch = [call("wr", "c1", p="a", n=1), call("wr", "c2", p="a", n=2), call("rd", "c3", p="b")]
    house.model.answers(step(calls=batch), says("ok"))
    await house.user.writes("hi")
    await house.tools.has_started("wr a#1", "rd b")
    await house.tools.release("rd b")
    await house.settles()
    assert house.tools.started == ["wr a#1", "rd b"]
    await house.tools.release("wr a#1")
    await house.tools.has_started("wr a#2")
    await house.tools.release()
    await house.idle()
    assert (await house.history())[2:5] == ["R c1=wrote a", "R c2=wrote a", "R c3=read b"]


@pytest.mark.parametrize(
    ("first", "second", "at_once"),
    [
        pytest.param(call("any", n=1), call("any", n=2), False, id="two that may touch anything"),
        pytest.param(call("any"), call("slow"), True, id="one that touches nothing overlaps anything"),
        pytest.param(call("tree", p="/a"), call("wr", p="/a/b"), False, id="a tree and a file in it"),
        pytest.param(call("tree", p="/a"), call("wr", p="/ab"), True, id="a tree and its namesake"),
        pytest.param(call("wr", p="/a"), call("rd", p="/a/b"), True, id="a file and what would be below it"),
        pytest.param(call("wr", p="/A/f"), call("rd", p="/a/F"), False, id="case does not count"),
        pytest.param(call("wr", p="/a/../b"), call("rd", p="/b"), False, id="paths are canonical"),
        pytest.param(call("wr", p="/a//b/"), call("rd", p="/a/b"), False, id="slashes are canonical"),
    ],
)
async def test_what_clashes(house: House, first: ModelCall, second: ModelCall, *, at_once: bool) -> None:
    """T32: two calls run one after the other exactly when one writes what the other touches."""
    house.model.answers(step(calls=[first, second]), says("ok"))
    await house.user.writes("hi")
    await house.settles()
    assert len(house.tools.started) == (2 if at_once else 1)
    await house.tools.release()
    await house.idle()
    assert len(house.tools.ended) == 2


async def test_one_that_may_touch_anything_is_a_barrier(house: House) -> None:
    """K5: nothing that touches something overtakes a queued call that may touch anything."""
    batch = [call("rd", "c1", p="a"), call("any", "c2"), call("rd", "c3", p="b"), call("slow", "c4")]
    house.model.answers(step(calls=batch), says("ok"))
    await house.user.writes("hi")
    await house.settles()
    assert house.tools.started == ["rd a", "slow"]
    await house.tools.release()
    await house.idle()
    assert house.tools.started == ["rd a", "slow", "any", "rd b"]


@pytest.mark.parametrize(
    ("first", "second", "at_once"),
    [
        (("mailbox:x", Mode.WRITE), ("mailbox:x", Mode.READ), False),
        (("mailbox:x", Mode.WRITE), ("chat:y", Mode.WRITE), True),
        (("chat:y", Mode.READ), ("chat:y", Mode.READ), True),
        (("chat:y", Mode.WRITE), ("chat:yy", Mode.WRITE), True),
    ],
)
async def test_named_resources_clash_like_files(
    house: House, first: tuple[str, Mode], second: tuple[str, Mode], *, at_once: bool
) -> None:
    """K5: a mailbox or a chat is read by many at once and written by one."""
    for name, (resource, mode) in (("one", first), ("two", second)):
        accesses = Accesses(items=(Access(resource, mode),))
        house.tools.add(name, house.tools.doubles["slow"].work, Kind(accesses=lambda _, found=accesses: found))  # type: ignore[misc]
    house.model.answers(step(calls=[call("one"), call("two")]), says("ok"))
    await house.user.writes("hi")
    await house.settles()
    assert len(house.tools.started) == (2 if at_once else 1)
    await house.tools.release()
    await house.idle()
