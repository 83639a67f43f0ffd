"""The benchmarks measure what they say; how fast anything is, no test asks."""

from collections.abc import Mapping

import pytest

from benchmarks.crowd import crowd_on
from benchmarks.platforms import PLATFORMS, Platform
from benchmarks.process import Kind, doubles, target
from benchmarks.report import Row, p95, table
from benchmarks.stage import FIRST_CHAT


def moments(turn: Mapping[str, float]) -> list[float]:
    return [turn[name] for name in ("handed", "asked", "first", "last", "shown", "final")]


@pytest.mark.parametrize("kind", ["bare", "zerobot"])
def test_a_turn_is_seen_from_update_to_final_text(kind: Kind) -> None:
    """Each kind of process answers both chats, and each moment of a turn is noted in its order, once."""
    with doubles() as servers, target(kind, servers) as process:
        process.ready()
        servers.do("say", first_chat=FIRST_CHAT, chats=2, turns=2, gap=0.0)
        servers.until_ended(2)
        turns = servers.turns()
        assert process.cpu() > 0
        assert process.memory()["rss"] >= process.memory()["pss"] > 0
    assert [turn["chat"] for turn in turns] == [FIRST_CHAT, FIRST_CHAT + 1]
    for turn in turns:
        assert moments(turn) == sorted(moments(turn))
        assert (turn["calls"], turn["refused"]) == (1, 0)


def test_a_stream_is_shown_while_it_grows_and_refusals_are_counted() -> None:
    """A slow answer is seen before its end; the bare bot sends it once, and a second one at once is refused."""
    with doubles() as servers, target("bare", servers) as process:
        process.ready()
        servers.do("strict")
        servers.do("model", deltas=12, gap=0.01)
        servers.do("say", first_chat=FIRST_CHAT, chats=1, turns=1, gap=0.0)
        servers.until_ended(1)
        (turn,) = servers.turns()
    assert turn["asked"] <= turn["first"] < turn["last"] <= turn["final"]
    assert turn["refused"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=list(PLATFORMS))
def test_a_crowd_is_measured_on_each_platform(platform: type[Platform]) -> None:
    """Three people at once see their answers grow and end whole; the platform refuses nothing, and all is told."""
    rows = {row.measure.partition(": ")[2]: row.zerobot for row in crowd_on(platform, chats=3, deltas=20)}
    assert rows["messages and edits a turn, fewest"] >= 2
    assert rows["calls refused by rate"] == 0
    assert all(value > 0 for name, value in rows.items() if name.endswith(("text, median", "text, p95")))


def test_a_row_is_judged_by_its_aim() -> None:
    """`over` and `under` where the aim is missed, nothing where there is none."""
    rows = [
        Row(measure="a", unit="ms", zerobot=20.0, bare=10.0, aim=20),
        Row(measure="b", unit="ms", zerobot=20.1, aim=20),
        Row(measure="c", unit="turns/s", zerobot=64.0, aim=65, side="at_least"),
        Row(measure="d", unit="", zerobot=1.0),
    ]
    assert [row.verdict for row in rows] == ["ok", "over", "under", ""]
    assert "| a (ms)      | 20.0    | 10.0           | 2.0   | ≤ 20.0 | ok    |" in table(rows)


def test_p95_is_one_of_the_values() -> None:
    """Of a hundred values the 96th smallest; of few the largest."""
    assert p95(list(range(100))) == 95
    assert p95([3.0, 1.0, 2.0]) == 3.0
