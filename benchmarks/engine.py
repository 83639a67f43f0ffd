"""Measures of the engine alone: the daemon runs in this process, and the model answers from a script, at once.

What is told is processor time of this process, all its threads, because a shared disk's moods would hide the rest.
"""

import asyncio
import gc
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count, islice
from pathlib import Path

from benchmarks.inside import Inside, daemon
from benchmarks.measures import Effort, Measure
from benchmarks.process import MIB, memory_of
from benchmarks.report import Row, median
from benchmarks.stage import FIRST_CHAT
from zerobot.core.messages import AssistantMessage
from zerobot.core.model import ModelRequest
from zerobot.testing.model import Scripted, ScriptedModel, calls, says

WORDS = "Ordinary words of an answer come one after another, as people write them. "
LONGEST = 100_000
"""Characters of the longest reply that is not cut."""
ZONES = ("Europe/Berlin", "Asia/Tokyo")
"""What the tool is asked for in turn: the same again and again would end the turn."""
TURNS = 60
"""Turns in which the window of history moves and stays as often as not."""
ELSEWHERE = 500_000
"""The first of the chats that only warm up."""


def deltas(effort: Effort) -> list[Row]:
    """What each character of a reply costs that comes as a delta of its own: guards, events and the draft."""
    lengths = (1_000, LONGEST)

    async def measured() -> list[float]:
        async with _daemon() as inside:
            return [await _of_delta(inside, length, effort.of(5, 3)) for length in lengths]

    short, long = asyncio.run(measured())
    return [
        _row(f"a delta in a reply of {lengths[0]:,}", "µs", short),
        _row(f"a delta in a reply of {lengths[1]:,}", "µs", long),
        _row("the one beside the other", "", long / short, 1.1),
    ]


def steps(effort: Effort) -> list[Row]:
    """What each step of a turn costs that asks for one tool and gets its result."""
    lengths = (4, 20)

    async def measured() -> list[float]:
        async with _daemon() as inside:
            return [await _of_step(inside, length, effort.of(20, 10)) for length in lengths]

    short, long = asyncio.run(measured())
    return [
        _row(f"a step in a turn of {lengths[0]}", "ms", short),
        _row(f"a step in a turn of {lengths[1]}", "ms", long),
    ]


def lengths(effort: Effort) -> list[Row]:
    """What a turn costs in a conversation that has so many messages already, with the window as it is by default."""
    wanted = (200, 1_000, effort.of(10_000, 2_000))

    async def measured() -> list[float]:
        found = []
        async with _daemon() as inside:
            inside.model.improvise = lambda _: says(WORDS * 2)
            said = 0
            for length in wanted:
                for _ in range((length - said) // 2):
                    await inside.say(WORDS)
                found.append(await _of_turn(inside))
                said = length + 2 * TURNS
        return found

    found = asyncio.run(measured())
    rows = [_row(f"a turn after {length:,} messages", "ms", each) for length, each in zip(wanted, found, strict=True)]
    return [*rows, _row("the last beside the first", "", found[-1] / found[0], 1.25)]


def paused(effort: Effort) -> list[Row]:
    """What turns hold that wait for an operator, after as many before them, and what they cost the next start."""
    turns = effort.of(1_000, 300)

    async def measured() -> tuple[float, int, float]:
        with tempfile.TemporaryDirectory(prefix="zerobot-benchmark-") as name:
            folder = Path(name)
            async with daemon(folder, _asks()) as inside:
                await inside.say("Please clean up.", first_chat=ELSEWHERE, ends="turn.paused")
                await inside.settle()
                before = await _memory_with(inside, turns, first_chat=0)
                after = await _memory_with(inside, turns, first_chat=turns)
                left = len(asyncio.all_tasks()) - inside.tasks
            began = time.process_time()
            async with daemon(folder, _asks()):
                took = time.process_time() - began
        return (after - before) / turns, left, took / (2 * turns)

    memory, left, start = asyncio.run(measured())
    return [
        _row(f"a paused turn, of {turns:,}: memory", "kB", memory / 1000, 5),
        _row(f"{turns:,} paused turns: tasks more than one has", "", left, 0),
        _row("a paused turn at the next start", "ms", start * 1000, 1),
    ]


_chats = count(FIRST_CHAT)
ENGINE: dict[str, Measure] = {"deltas": deltas, "steps": steps, "lengths": lengths, "paused": paused}


def _row(measure: str, unit: str, zerobot: float, aim: float | None = None) -> Row:
    return Row(measure=measure, unit=unit, zerobot=zerobot, aim=aim)


@asynccontextmanager
async def _daemon() -> AsyncIterator[Inside]:
    """A daemon on an empty state whose every part has worked once."""
    with tempfile.TemporaryDirectory(prefix="zerobot-benchmark-") as name:
        async with daemon(Path(name), ScriptedModel()) as inside:
            inside.model.improvise = lambda _: says("Warm.")
            await inside.say("Warm up.", chats=20, first_chat=ELSEWHERE)
            yield inside


async def _cost(inside: Inside, answer: Callable[[ModelRequest], Scripted], times: int) -> float:
    """Seconds of a first turn in a chat, with all that follows it; the median."""
    inside.model.improvise = answer
    costs = []
    for chat in islice(_chats, times):
        await inside.quiet()
        gc.collect()
        before = time.process_time()
        await inside.say("What do you say?", first_chat=chat)
        await inside.quiet()
        costs.append(time.process_time() - before)
    return median(costs)


async def _of_delta(inside: Inside, length: int, times: int) -> float:
    """Microseconds, without what a turn costs that has one."""
    text = (WORDS * (length // len(WORDS) + 1))[:length]
    one = await _cost(inside, lambda _: says(text, deltas=[text]), times)
    many = await _cost(inside, lambda _: says(text, deltas=list(text)), times)
    return (many - one) / (length - 1) * 1e6


async def _of_step(inside: Inside, length: int, times: int) -> float:
    """Milliseconds, without what a turn costs that has no tool."""

    def answer(request: ModelRequest) -> Scripted:
        rounds = sum(isinstance(message, AssistantMessage) for message in request.messages)
        return calls("time_now", timezone=ZONES[rounds % len(ZONES)]) if rounds < length else says("Done.")

    return (await _cost(inside, answer, times) - await _cost(inside, lambda _: says("Done."), times)) / length * 1e3


async def _of_turn(inside: Inside) -> float:
    """Milliseconds; the mean of `TURNS` turns in the chat that grows."""
    await inside.quiet()
    gc.collect()
    before = time.process_time()
    for _ in range(TURNS):
        await inside.say(WORDS)
    await inside.quiet()
    return (time.process_time() - before) / TURNS * 1e3


async def _memory_with(inside: Inside, turns: int, *, first_chat: int) -> float:
    """Bytes of this process when so many more turns have paused."""
    await inside.say("Please clean up.", chats=turns, first_chat=first_chat, ends="turn.paused")
    await inside.quiet()
    gc.collect()
    return memory_of(os.getpid())["rss"] * MIB


def _asks() -> ScriptedModel:
    """A model that wants to do what an operator must allow."""
    model = ScriptedModel()
    model.improvise = lambda _: calls("shell", command="rm -rf build")
    return model
