"""A crowd: as many conversations as one daemon can be expected to hold stream at once, on each platform's own rates."""

import sys
import time

from benchmarks.measures import ELSEWHERE, Effort
from benchmarks.platforms import PLATFORMS, Platform, seconds_for
from benchmarks.process import Doubles, Target, doubles, target
from benchmarks.report import Row, median, p95
from benchmarks.stage import FIRST_CHAT
from zerobot.delivery.pacing import DRAFT_SHARE

GAP = 0.1
"""Seconds between the deltas of an answer."""
DELTAS = 200
WARM_UP = 5
MARGIN = 0.5
"""Seconds on top of what a platform's rate makes the last of a crowd wait."""


def crowd(effort: Effort) -> list[Row]:
    """200 conversations that stream at once, platform by platform."""
    rows: list[Row] = []
    for platform in PLATFORMS.values():
        rows += crowd_on(platform, effort.of(200, 40), DELTAS)
    return rows


def crowd_on(platform: type[Platform], chats: int, deltas: int) -> list[Row]:
    """What one platform shows when so many people ask in the same moment.

    Args:
        platform: Its strict double.
        chats: How many people, each in a chat of one's own.
        deltas: The length of each answer, ten a second.
    """
    kind = platform.kind
    with doubles("benchmarks.strict", kind.name) as servers, target("zerobot", servers, at_once=chats) as process:
        process.ready()
        servers.do("say", first_chat=ELSEWHERE, chats=WARM_UP, turns=WARM_UP, gap=0.2)
        servers.until_ended(WARM_UP)
        time.sleep(2)
        servers.do("strict")
        servers.do("model", deltas=deltas, gap=GAP)
        before, used, began = process.memory()["rss"], process.cpu(), time.monotonic()
        servers.do("say", first_chat=FIRST_CHAT, chats=chats, turns=chats, gap=0.0)
        most = _most_memory(servers, process, chats)
        busy = (process.cpu() - used) / (time.monotonic() - began) * 100
        done = servers.turns(WARM_UP)
        refused = servers.do("refused")
    if refused:
        print(f"{kind.name} refused {refused}", file=sys.stderr)
    first = [turn["shown"] - turn["first"] for turn in done]
    last = [max(turn["final"] - turn["last"], 0.0) for turn in done]
    calls = [turn["calls"] for turn in done]

    def row(measure: str, unit: str, value: float, aim: float | None = None) -> Row:
        return Row(measure=f"{kind.name}, {chats} streams: {measure}", unit=unit, zerobot=value, aim=aim)

    return [
        row("messages and edits a turn, median", "", median(calls)),
        row("messages and edits a turn, fewest", "", min(calls)),
        row("first visible text, median", "s", median(first)),
        row("first visible text, p95", "s", p95(first), seconds_for(kind, chats, DRAFT_SHARE) + MARGIN),
        row("last token to final text, median", "s", median(last)),
        row(
            "last token to final text, p95",
            "s",
            p95(last),
            seconds_for(kind, chats) + kind.pace.draft_interval + MARGIN,
        ),
        row("calls refused by rate", "", sum(refused.values()), 0),
        row("processor time until the last final text", "%", busy),
        row("memory a conversation, RSS", "kB", (most - before) / chats * 1024),
    ]


def _most_memory(servers: Doubles, process: Target, chats: int) -> float:
    """Wait until all have their final text; returns the most MiB that the process had meanwhile."""
    most = 0.0
    for _ in servers.ends(WARM_UP + chats):
        most = max(most, process.memory()["rss"])
    return most
