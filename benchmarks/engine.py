"""Measures of the engine alone: the daemon runs in this process, and the model answers from a script, at once.

What is told is processor time of this process, all its threads, because a shared disk's moods would hide the rest.
"""

import asyncio
import gc
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.inside import Inside, daemon
from benchmarks.measures import Effort, Measure
from benchmarks.process import MIB, memory_of
from benchmarks.report import Row, median
from zerobot.core.messages import AssistantMessage
from zerobot.core.model import ModelRequest
from zerobot.testing.model import Scripted, ScriptedModel, calls, says

WORDS = "Ordinary words of an answer come one after another, as people write them. "
SHORT, LONG = 1_000, 100_000
"""Characters of replies; the longer one is the longest that is not cut."""
ZONES = ("Europe/Berlin", "Asia/Tokyo")
"""What the tool is asked for in turn: the same again and again would end the turn."""
TURNS = 60
"""Turns in which the window of history moves and stays as often as not."""
FLAT = 1.2
"""How much more may be measured of what costs no more: this much two runs of the same differ."""
ELSEWHERE = 500_000
"""The first of the chats that only warm up."""

Answer = Callable[[ModelRequest], Scripted]


def deltas(effort: Effort) -> list[Row]:
    """What each character of a reply costs that comes as a delta of its own: guards, events and the draft."""

    def reply(length: int, pieces: int) -> Answer:
        text = (WORDS * (length // len(WORDS) + 1))[:length]
        answer = says(text, deltas=list(text) if pieces > 1 else [text])
        return lambda _: answer

    kinds = [reply(length, pieces) for length in (SHORT, LONG) for pieces in (1, length)]
    one_short, short, one_long, long = asyncio.run(_costs(kinds, effort.of(7, 3)))
    short, long = (short - one_short) / (SHORT - 1), (long - one_long) / (LONG - 1)
    return [
        _row(f"a delta in a reply of {SHORT:,}", "µs", short * 1e6),
        _row(f"a delta in a reply of {LONG:,}", "µs", long * 1e6),
        _row("the one beside the other", "", long / short, FLAT),
    ]


def steps(effort: Effort) -> list[Row]:
    """What each step of a turn costs that asks for one tool and gets its result."""
    few, many = 4, 20

    def turn(rounds: int) -> Answer:
        def answer(request: ModelRequest) -> Scripted:
            done = sum(isinstance(message, AssistantMessage) for message in request.messages)
            return calls("time_now", timezone=ZONES[done % len(ZONES)]) if done < rounds else says("Done.")

        return answer

    none, short, long = asyncio.run(_costs([turn(0), turn(few), turn(many)], effort.of(20, 10)))
    return [
        _row(f"a step in a turn of {few}", "ms", (short - none) / few * 1000),
        _row(f"a step in a turn of {many}", "ms", (long - none) / many * 1000),
    ]


def lengths(effort: Effort) -> list[Row]:
    """What a turn costs in a conversation that has so many messages already, with the window as it is by default."""
    lengths = (200, 1_000, effort.of(10_000, 2_000))

    async def measured() -> list[float]:
        spent = [0.0] * len(lengths)
        async with _daemon() as inside:
            inside.model.improvise = lambda _: says(WORDS * 2)
            for chat, length in enumerate(lengths):
                for _ in range(length // 2):
                    await inside.say(WORDS, first_chat=chat)
                    inside.forget()
            # In turn, so that what else the machine does meanwhile counts for each of them.
            for _ in range(TURNS):
                for chat in range(len(lengths)):
                    spent[chat] += await _cost(inside, chat)
        return [each / TURNS * 1000 for each in spent]

    found = asyncio.run(measured())
    rows = [_row(f"a turn after {length:,} messages", "ms", each) for length, each in zip(lengths, found, strict=True)]
    return [*rows, _row("the last beside the first", "", found[-1] / found[0], FLAT)]


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


async def _costs(answers: Sequence[Answer], times: int) -> list[float]:
    """Seconds of a turn that is answered in this way, the first of its chat: the median, for each of the ways."""
    costs: list[list[float]] = [[] for _ in answers]
    async with _daemon() as inside:
        for number in range(times):
            for kind, answer in enumerate(answers):
                inside.model.improvise = answer
                costs[kind].append(await _cost(inside, number * len(answers) + kind))
    return [median(each) for each in costs]


async def _cost(inside: Inside, chat: int) -> float:
    """Seconds of one turn, with all that follows it."""
    gc.collect()
    before = time.process_time()
    await inside.say(WORDS, first_chat=chat)
    await inside.quiet()
    return time.process_time() - before


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
