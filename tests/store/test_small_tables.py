"""Grants, usage, the audit trail, small values, and the backup."""

import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.store.rows import ANN, BOB, NOW, OPERATOR, PLACE, a_conversation
from zerobot.core.budget import Payer
from zerobot.core.errors import StorageError
from zerobot.core.ids import ConversationId, TurnId
from zerobot.core.places import Identity, Place
from zerobot.core.usage import Usage
from zerobot.store.audit import Audit
from zerobot.store.backup import backup
from zerobot.store.channel_state import channel_state
from zerobot.store.database import Database, open_database
from zerobot.store.grants import Grants
from zerobot.store.turn_rows import AttemptUsage
from zerobot.store.usage import UsageBy, UsageFilter, UsageLog, record
from zerobot.testing.clock import ManualClock

WEEK_LATER = NOW + timedelta(days=7)


async def test_a_grant_holds_in_its_conversation_until_it_ends(database: Database, clock: ManualClock) -> None:
    """Not elsewhere, not after its end, not once it is revoked."""
    grants = Grants(database, clock)
    here, there = await a_conversation(database), await a_conversation(database, Place("pigeon", "43"))
    grant = await grants.add(here, "shell", "git status", OPERATOR, NOW + timedelta(days=1))
    brief = await grants.add(here, "write_file", "", OPERATOR, NOW + timedelta(minutes=1))
    assert await grants.active(here, NOW) == [grant, brief]
    assert await grants.active(there, NOW) == []
    assert await grants.active(here, NOW + timedelta(minutes=1)) == [grant]
    assert await grants.revoke(grant.id, BOB)
    assert await grants.active(here, NOW) == [brief]
    assert not await grants.revoke(grant.id, BOB)


async def test_grants_are_listed_with_their_place_and_end(database: Database, clock: ManualClock) -> None:
    """Revoked ones too, and revoking is on record."""
    grants = Grants(database, clock)
    here = await a_conversation(database)
    grant = await grants.add(here, "shell", "git status", OPERATOR, NOW + timedelta(days=1))
    await grants.revoke(grant.id, BOB)
    (listed,) = await grants.list()
    assert (listed.grant, listed.place, listed.revoked_at) == (grant, PLACE, NOW)
    assert listed.expires_at == NOW + timedelta(days=1)
    assert await grants.list(ConversationId(99)) == []
    (entry,) = await Audit(database, clock).latest()
    assert (entry.actor, entry.action, entry.subject) == (str(BOB), "grant.revoke", f"{grant.id} shell git status")


async def spend(
    database: Database,
    tokens: int,
    *,
    day: int = 0,
    model: str = "main/small",
    asker: Identity = ANN,
    failed: bool = False,
    reported: bool = True,
) -> None:
    payer = Payer(turn=TurnId(f"t{day}"), conversation=ConversationId(1), channel="pigeon", asker=asker)
    usage = Usage(input_tokens=tokens, output_tokens=1, cache_read_tokens=2, cache_write_tokens=3)
    attempt = AttemptUsage(model=model, purpose="step", failed=failed, usage=usage if reported else None)
    await database.write(lambda db: record(db, payer, [attempt], NOW + timedelta(days=day)))


async def test_usage_is_summed_by_what_is_asked(database: Database) -> None:
    """By day, model, channel and user, in any combination, within the given time, failed calls counted too."""
    log = UsageLog(database)
    await spend(database, 10)
    await spend(database, 5, asker=BOB, failed=True)
    await spend(database, 100, day=1, model="main/big")
    await spend(database, 0, day=1, model="main/big", reported=False)
    await spend(database, 1000, day=9)

    by_day = await log.totals([UsageBy.DAY], UsageFilter(since=NOW, until=WEEK_LATER))
    assert [(total.key, total.model, total.usage.input_tokens) for total in by_day] == [
        (("2026-01-05",), "main/small", 15),
        (("2026-01-06",), "main/big", 100),
    ]
    assert [(total.calls, total.failed, total.unreported) for total in by_day] == [(2, 1, 0), (2, 0, 1)]
    assert by_day[0].usage == Usage(input_tokens=15, output_tokens=2, cache_read_tokens=4, cache_write_tokens=6)
    by_user = await log.totals([UsageBy.CHANNEL, UsageBy.USER], UsageFilter(since=NOW, until=WEEK_LATER))
    assert [(total.key, total.usage.input_tokens) for total in by_user] == [
        (("pigeon", str(ANN)), 100),
        (("pigeon", str(ANN)), 10),
        (("pigeon", str(BOB)), 5),
    ]
    assert [total.key for total in await log.totals([UsageBy.MODEL], UsageFilter(since=NOW, until=WEEK_LATER))] == [
        ("main/big",),
        ("main/small",),
    ]


async def test_usage_of_one_person_or_turn(database: Database) -> None:
    """What a budget asks: how much has this person, this turn cost."""
    log = UsageLog(database)
    await spend(database, 10)
    await spend(database, 5, asker=BOB)
    await spend(database, 7, day=1)
    week = UsageFilter(since=NOW, until=WEEK_LATER)
    (anns,) = await log.totals([], replace(week, asker=ANN))
    assert anns.usage.input_tokens == 17
    (one_turn,) = await log.totals([], replace(week, turn=TurnId("t1")))
    assert one_turn.usage.input_tokens == 7
    assert await log.totals([], replace(week, asker=OPERATOR)) == []


async def test_the_audit_trail_is_newest_first(database: Database, clock: ManualClock) -> None:
    """Who, what, when."""
    audit = Audit(database, clock)
    await audit.note(str(OPERATOR), "freeze", "")
    clock.jump(5)
    await audit.note("daemon", "unfreeze", "by hand")
    entries = await audit.latest()
    assert [(entry.actor, entry.action) for entry in entries] == [("daemon", "unfreeze"), (str(OPERATOR), "freeze")]
    assert entries[0].at == NOW + timedelta(seconds=5)
    assert await audit.latest(limit=1) == entries[:1]


async def test_a_channel_keeps_small_values_over_a_restart(path: Path) -> None:
    """Each channel its own; the last one set counts."""
    async with open_database(path) as database:
        await channel_state(database, "one").set("offset", "5")
        await channel_state(database, "one").set("offset", "6")
        await channel_state(database, "two").set("offset", "9")
    async with open_database(path) as database:
        assert await channel_state(database, "one").get("offset") == "6"
        assert await channel_state(database, "two").get("offset") == "9"
        assert await channel_state(database, "two").get("cursor") is None


def values_in(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as db:
        return [row[0] for row in db.execute("SELECT value FROM channel_state ORDER BY value")]


def mode_of(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


async def test_a_backup_is_a_database_of_its_own(database: Database, tmp_path: Path) -> None:
    """Complete with what only the log file had, private, one file; a second backup replaces the first."""
    target = tmp_path / "copies" / "copy.db"
    make_directory(target.parent)
    for value in ("a", "b"):
        await channel_state(database, "one").set(value, value)
        assert await backup(database, target) > 0
    await channel_state(database, "one").set("c", "c")
    assert values_in(target) == ["a", "b"]
    assert mode_of(target) == 0o600
    assert names_in(target.parent) == ["copy.db"]
    async with open_database(target) as restored:
        assert await channel_state(restored, "one").get("b") == "b"


def make_directory(path: Path) -> None:
    path.mkdir()


def names_in(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


def write(path: Path, text: str) -> None:
    path.write_text(text)


def read(path: Path) -> str:
    return path.read_text()


async def test_a_backup_never_replaces_something_else(database: Database, tmp_path: Path) -> None:
    """A mistyped path costs nothing."""
    thesis = tmp_path / "thesis.txt"
    write(thesis, "ten years of work")
    with pytest.raises(StorageError, match="no database"):
        await backup(database, thesis)
    assert read(thesis) == "ten years of work"


@pytest.mark.parametrize("name", ["zerobot.db", "zerobot.db-wal", "copy.db"])
async def test_a_backup_never_lands_beside_the_database(database: Database, tmp_path: Path, name: str) -> None:
    """The live database looks like an earlier backup; it is not replaced under the daemon that writes to it."""
    before = names_in(tmp_path)
    with pytest.raises(StorageError, match="no database" if name.endswith("wal") else "folder of the database"):
        await backup(database, tmp_path / name)
    assert names_in(tmp_path) == before
    await channel_state(database, "one").set("still", "works")


async def test_a_backup_to_nowhere_is_a_storage_error(database: Database, tmp_path: Path) -> None:
    """The error names the path."""
    with pytest.raises(StorageError, match="nowhere"):
        await backup(database, tmp_path / "nowhere" / "copy.db")
