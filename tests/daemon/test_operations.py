"""What operators do from the shell: odd parameters change nothing and are answered as such."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from zerobot.config.loader import load_for_operators
from zerobot.core.places import Identity
from zerobot.daemon.access_state import FROZEN
from zerobot.daemon.control_wire import ControlError
from zerobot.daemon.costs import Costs
from zerobot.daemon.operations import NoEffects, Operations
from zerobot.store.audit import Audit
from zerobot.store.channel_state import DAEMON, StoredChannelState
from zerobot.store.database import Database, open_database
from zerobot.store.usage import UsageLog
from zerobot.testing.clock import ManualClock

ODD: list[tuple[str, Mapping[str, object]]] = [
    ("approvals.decide", {}),
    ("approvals.decide", {"id": 7, "approve": True}),
    ("approvals.decide", {"id": "ABC", "approve": "yes"}),
    ("approvals.decide", {"id": "ABC", "approve": True, "reason": 1}),
    ("pair.approve", {"code": None}),
    ("pair.revoke", {"identity": "nobody"}),
    ("sessions.show", {"id": "1"}),
    ("sessions.show", {"id": 0}),
    ("sessions.show", {"id": 1, "last": -1}),
    ("grants.revoke", {"id": True}),
    ("grants.revoke", {"id": 10**30}),
    ("memory.list", {"all": "no"}),
    ("memory.search", {"text": ["a"]}),
    ("usage", {"by": "day"}),
    ("usage", {"by": ["moon"]}),
    ("usage", {"days": 10**9}),
    ("audit", {"limit": 0}),
    ("audit", {"who": 5}),
    ("freeze", {}),
    ("freeze", {"frozen": "no"}),
    ("freeze", {"frozen": 0}),
    ("backup", {"path": "relative.db"}),
]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


class Desk:
    """The operations on a fresh store, without a daemon."""

    def __init__(self, database: Database, clock: ManualClock, folder: Path) -> None:
        config = folder / "zerobot.toml"
        config.write_text("", encoding="utf-8")
        costs = Costs(load_for_operators(config, {"ZEROBOT_STATE_DIR": str(folder)}), UsageLog(database))
        self.database = database
        self.clock = clock
        operations = Operations(
            database=database, effects=NoEffects(database), costs=costs, clean=str, receipt_key=bytes, clock=clock
        )
        self._table = operations.table()

    async def ask(self, method: str, params: Mapping[str, object]) -> Mapping[str, object]:
        """Ask for one operation."""

        async def send(item: Mapping[str, object]) -> None:
            raise AssertionError(f"nothing is sent before an error: {item}")

        return await self._table[method](params, send)


async def test_odd_parameters_are_a_bad_request_and_change_nothing(tmp_path: Path, clock: ManualClock) -> None:
    """Each names what is odd; above all, nothing that is not a plain yes throws the emergency stop the other way."""
    async with open_database(tmp_path / "zerobot.db") as database:
        desk = Desk(database, clock, tmp_path)
        await desk.ask("freeze", {"frozen": True})
        for method, params in ODD:
            with pytest.raises(ControlError) as refused:
                await desk.ask(method, params)
            assert refused.value.code == "bad_request", (method, params)
        assert await StoredChannelState(database, DAEMON).get(FROZEN) == "yes"
        assert [entry.action for entry in await Audit(database, clock).latest()] == ["freeze"]


async def test_the_audit_is_filtered(tmp_path: Path, clock: ManualClock) -> None:
    """By person, by action, by days; each entry has all its fields."""
    async with open_database(tmp_path / "zerobot.db") as database:
        desk = Desk(database, clock, tmp_path)
        await Audit(database, clock).note(str(Identity("test", "ann")), "pair.approve", "test test:bob")
        clock.jump(2 * 86_400)
        await desk.ask("freeze", {"frozen": True})

        async def found(**params: object) -> list[object]:
            entries = (await desk.ask("audit", params))["entries"]
            assert isinstance(entries, list)
            return [entry["did"] for entry in entries]

        assert await found() == ["freeze", "pair.approve"]
        assert await found(who="test:ann") == ["pair.approve"]
        assert await found(did="pair") == ["pair.approve"]
        assert await found(days=1) == ["freeze"]
        assert await found(limit=1) == ["freeze"]
