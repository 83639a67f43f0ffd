"""The measures: each starts what it needs, alternates between the daemon and the bare libraries, and returns rows."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.process import Doubles, Kind, doubles, target
from benchmarks.report import Row, Side, median, p95
from benchmarks.stage import FIRST_CHAT

ELSEWHERE = 500_000
"""The first of the chats that only warm up: nothing that is measured happens there."""
DELTAS = 10


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured."""

    quick: bool

    def of(self, much: int, little: int) -> int:
        """The one or the other."""
        return little if self.quick else much


def start(effort: Effort) -> list[Row]:
    """From the start of the process until it has polled Telegram once, each time with nothing stored."""
    took: dict[Kind, list[float]] = {"zerobot": [], "bare": []}
    for _ in range(effort.of(9, 5)):
        for kind, times in took.items():
            with doubles() as servers, target(kind, servers) as process:
                times.append(process.ready())
    return [_row("cold start", "s", median(took["zerobot"]), median(took["bare"]), 0.8)]


def idle(effort: Effort) -> list[Row]:
    """Memory and processor time while nobody says anything, with Telegram's long poll open."""
    seconds = effort.of(30, 10)
    with (
        doubles() as ours,
        doubles() as theirs,
        target("zerobot", ours) as zerobot,
        target("bare", theirs) as bare,
    ):
        both = (zerobot, bare)
        for each in both:
            each.ready()
        time.sleep(3)
        before = [each.cpu() for each in both]
        time.sleep(seconds)
        used = [(each.cpu() - began) / seconds * 100 for each, began in zip(both, before, strict=True)]
        memory = [each.memory() for each in both]
    return [
        _row("idle memory, RSS", "MiB", memory[0]["rss"], memory[1]["rss"], 70),
        _row("idle memory, PSS", "MiB", memory[0]["pss"], memory[1]["pss"]),
        _row("idle processor time", "%", used[0], used[1], 0.3),
    ]


def added(effort: Effort) -> list[Row]:
    """What a turn takes beside the model: update to model request, and last token to final text; turns come apart."""
    turns, gap = effort.of(200, 50), 0.1
    found: dict[Kind, list[float]] = {}
    for kind in _KINDS:
        with doubles() as servers, target(kind, servers) as process:
            process.ready()
            _warm_up(servers)
            servers.do("say", first_chat=FIRST_CHAT, chats=turns, turns=turns, gap=gap)
            servers.until_ended(turns + WARM_UP)
            found[kind] = [_added(turn) for turn in servers.turns(WARM_UP)]
    ours, theirs = found["zerobot"], found["bare"]
    return [
        _row("added time a turn, median", "ms", median(ours), median(theirs), 20),
        _row("added time a turn, p95", "ms", p95(ours), p95(theirs), 50),
    ]


def load(effort: Effort) -> list[Row]:
    """50 chats at once against a model without delay, until the replies have arrived."""
    turns, at_once = effort.of(1500, 400), 50
    rates: dict[Kind, list[float]] = {"zerobot": [], "bare": []}
    costs: dict[Kind, list[float]] = {"zerobot": [], "bare": []}
    for _ in range(effort.of(3, 1)):
        for kind, found in rates.items():
            with doubles() as servers, target(kind, servers) as process:
                process.ready()
                _warm_up(servers)
                before = process.cpu()
                servers.do("keep_busy", chats=at_once, at_once=at_once, turns=turns)
                servers.until_ended(turns + WARM_UP)
                # What it does behind the last reply belongs to the turns too.
                time.sleep(0.5)
                costs[kind].append((process.cpu() - before) / turns * 1000)
                done = servers.turns(WARM_UP)
                found.append(turns / (max(t["final"] for t in done) - min(t["handed"] for t in done)))
    return [
        _row("50 chats at once", "turns/s", median(rates["zerobot"]), median(rates["bare"]), 65, "at_least"),
        _row("processor time a turn", "ms", median(costs["zerobot"]), median(costs["bare"]), 17),
    ]


def burst(effort: Effort) -> list[Row]:
    """50 chats that have written all their messages before the first reply: turns worked off, replies delivered."""
    chats = 50
    turns = chats * effort.of(10, 5)
    with doubles() as servers, target("zerobot", servers) as process:
        process.ready()
        _warm_up(servers)
        servers.do("say", first_chat=FIRST_CHAT, chats=chats, turns=turns, gap=0.0)
        servers.until_ended(turns + WARM_UP)
        done = servers.turns(WARM_UP)
    began = min(turn["handed"] for turn in done)
    return [
        _row(f"a burst of {turns}: worked off", "turns/s", turns / (max(t["last"] for t in done) - began)),
        _row(f"a burst of {turns}: delivered", "turns/s", turns / (max(t["final"] for t in done) - began)),
    ]


def streams(effort: Effort) -> list[Row]:
    """20 streams of 10 s at once, on a platform that refuses a second call a second in a chat."""
    at_once, seconds = 20, 10.0
    rounds = effort.of(3, 1)
    deltas = 200
    with doubles() as servers, target("zerobot", servers) as process:
        process.ready()
        _warm_up(servers)
        servers.do("strict")
        servers.do("model", deltas=deltas, gap=seconds / deltas)
        for number in range(1, rounds + 1):
            servers.do("say", first_chat=FIRST_CHAT + number * at_once, chats=at_once, turns=at_once, gap=0.0)
            servers.until_ended(WARM_UP + number * at_once)
        done = servers.turns(WARM_UP)
    first = [(turn["shown"] - turn["first"]) * 1000 for turn in done]
    return [
        _row("first visible token, 20 streams, median", "ms", median(first)),
        _row("first visible token, 20 streams, p95", "ms", p95(first), None, 300),
        _row("visible calls a chat in 10 s, most", "", max(turn["calls"] for turn in done), None, 11),
        _row("calls refused at 1 call/s a chat", "", sum(turn["refused"] for turn in done), None, 0),
        _row("last token to final text, 20 streams, p95", "ms", p95([_behind(turn) for turn in done])),
    ]


def history(effort: Effort) -> list[Row]:
    """Time from the update to the final text when so many messages are sent to the model, one turn at a time."""
    lengths, turns = (1, 100, 1000), effort.of(40, 20)
    found: dict[Kind, dict[int, float]] = {}
    for kind in ("zerobot", "bare"):
        with doubles() as servers, target(kind, servers, history=10_000) as process:
            process.ready()
            _warm_up(servers)
            found[kind] = {length: _at_length(servers, length, turns) for length in lengths}
    return [
        _row(f"a turn, messages sent: {length:,}", "ms", found["zerobot"][length], found["bare"][length])
        for length in lengths
    ]


def growth(effort: Effort) -> list[Row]:
    """Memory after 10,000 turns in 1,000 chats beside that after the first 1,000."""
    chats = 1000
    turns = effort.of(10, 3) * chats
    found: dict[Kind, tuple[float, float]] = {}
    for kind in ("zerobot", "bare"):
        with doubles() as servers, target(kind, servers) as process:
            process.ready()
            servers.do("keep_busy", chats=chats, at_once=50, turns=turns)
            servers.until_ended(chats)
            early = process.memory()["rss"]
            servers.until_ended(turns)
            time.sleep(1)
            found[kind] = early, process.memory()["rss"]
    (early, late), (bare_early, bare_late) = found["zerobot"], found["bare"]
    return [
        _row("memory after 1,000 turns, RSS", "MiB", early, bare_early),
        _row(f"memory after {turns:,} turns, RSS", "MiB", late, bare_late),
        _row("growth between them", "MiB", late - early, bare_late - bare_early),
    ]


Measure = Callable[[Effort], Sequence[Row]]
MEASURES: dict[str, Measure] = {
    "start": start,
    "idle": idle,
    "added": added,
    "load": load,
    "burst": burst,
    "streams": streams,
    "history": history,
    "growth": growth,
}

WARM_UP = 50
_KINDS: tuple[Kind, ...] = ("bare", "zerobot")


def _row(
    measure: str, unit: str, zerobot: float, bare: float | None = None, aim: float | None = None, side: Side = "at_most"
) -> Row:
    return Row(measure=measure, unit=unit, zerobot=zerobot, bare=bare, aim=aim, side=side)


def _warm_up(servers: Doubles) -> None:
    """Let every part have worked once, in chats of its own, until all is quiet again."""
    servers.do("say", first_chat=ELSEWHERE, chats=WARM_UP, turns=WARM_UP, gap=0.02)
    servers.until_ended(WARM_UP)
    time.sleep(2)


def _at_length(servers: Doubles, length: int, turns: int) -> float:
    """Milliseconds, the median over turns whose history has about so many messages."""
    begin = len(servers.turns())
    if length == 1:
        # The first turn of many chats.
        servers.do("keep_busy", chats=turns, at_once=1, turns=turns)
        servers.until_ended(begin + turns)
        return median([_whole(turn) for turn in servers.turns(begin)])
    filled = (length - turns) // 2
    chat = ELSEWHERE + length
    for count in (filled, turns):
        for _ in range(count):
            servers.do("say", first_chat=chat, chats=1, turns=1, gap=0.0)
            begin += 1
            servers.until_ended(begin)
    return median([_whole(turn) for turn in servers.turns(begin - turns)])


def _whole(turn: dict[str, float]) -> float:
    return (turn["final"] - turn["handed"]) * 1000


def _behind(turn: dict[str, float]) -> float:
    return max(turn["final"] - turn["last"], 0.0) * 1000


def _added(turn: dict[str, float]) -> float:
    return (turn["asked"] - turn["handed"]) * 1000 + _behind(turn)
