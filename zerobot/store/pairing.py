"""Pairing: strangers ask by a code, an operator approves it. Names of an allow-list are bound to ids here too."""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from zerobot.core.admission import Admission, Answer, Judgement, Standing, judge
from zerobot.core.clock import Clock
from zerobot.core.envelope import InboundEnvelope
from zerobot.core.ids import new_code
from zerobot.core.places import Identity, Place
from zerobot.store import audit
from zerobot.store.columns import identity_or_none, moment, moment_or_none, stamp, storable
from zerobot.store.database import Database
from zerobot.store.wrong_codes import code_locked, note_wrong_code

CODE_LENGTH = 8
CODE_TTL = timedelta(hours=1)
TOLD_AGAIN = timedelta(hours=1)
OPEN_REQUESTS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingRequest:
    """What a stranger is told: once an hour, however much he writes."""

    identity: Identity
    place: Place
    code: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Somebody who asked to be let in, or was."""

    channel: str
    identity: Identity
    name: str
    """For people to read."""
    chat: str
    """Where the person is told; empty when it is not known."""
    state: str
    """`pending`, `allowed` or `revoked`."""
    code: str
    """Set while it is pending."""
    expires_at: datetime | None
    decided_by: Identity | None
    decided_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundHandle:
    """A name of an allow-list and the one person who comes in by it."""

    channel: str
    handle: str
    identity: Identity
    bound_at: datetime


_STATE = "SELECT * FROM pairings WHERE channel = :channel AND identity = :identity"
_BOUND = "SELECT handle, identity FROM handles WHERE channel = :channel"
_BIND = "INSERT INTO handles (channel, handle, identity, bound_at) VALUES (:channel, :handle, :identity, :now)"
_FORGET_EXPIRED = "DELETE FROM pairings WHERE state = 'pending' AND expires_at <= :now AND told_at <= :told_before"
_OPEN = "SELECT count(*) FROM pairings WHERE state = 'pending'"
_CODE_TAKEN = "SELECT 1 FROM pairings WHERE code = :code AND state = 'pending'"
_REQUEST = """
    INSERT INTO pairings (channel, identity, name, chat, state, code, expires_at, told_at)
    VALUES (:channel, :identity, :name, :chat, 'pending', :code, :expires_at, :now)
"""
_APPROVE = """
    UPDATE pairings SET state = 'allowed', code = '', expires_at = '', decided_by = :by, decided_at = :now
    WHERE code = :code AND state = 'pending' AND expires_at > :now RETURNING *
"""
_REVOKE = """
    INSERT INTO pairings (channel, identity, name, chat, state, decided_by, decided_at)
    SELECT channel, :identity, '', '', 'revoked', :by, :now FROM (
        SELECT channel FROM pairings WHERE identity = :identity AND state <> 'revoked'
        UNION SELECT channel FROM handles WHERE identity = :identity
    ) WHERE true
    ON CONFLICT DO UPDATE SET state = 'revoked', code = '', expires_at = '', decided_by = :by, decided_at = :now
    RETURNING channel
"""
_UNBIND = "DELETE FROM handles WHERE identity = :identity"
_LIST = "SELECT * FROM pairings WHERE state <> 'pending' OR expires_at > :now ORDER BY state, channel, identity"
_HANDLES = "SELECT * FROM handles ORDER BY channel, handle"


def pair_check(
    db: sqlite3.Connection, envelope: InboundEnvelope, admission: Admission, now: datetime
) -> tuple[Answer, PairingRequest | None]:
    """Judge a sender, bind the names that let him in, and open a request for a stranger who may have one.

    Returns:
        The answer, and what the stranger is to be told; None when there is nothing to tell (again).
    """
    channel, sender = envelope.place.channel, str(envelope.sender)
    row = db.execute(_STATE, {"channel": channel, "identity": sender}).fetchone()
    judgement = _judge(db, envelope, admission, row)
    for handle in judgement.bind:
        db.execute(_BIND, {"channel": channel, "handle": handle, "identity": sender, "now": stamp(now)})
    if judgement.answer is not Answer.PAIRING:
        return judgement.answer, None
    return judgement.answer, _request(db, envelope, now)


class Pairings:
    """Pairing as operators see it, a transaction a method."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def approve(self, code: str, by: Identity, now: datetime) -> Pairing | None:
        """Let in whoever was given this code; it works once.

        Returns:
            None: the code is wrong, used or too old, or `by` typed too many wrong ones. All look alike.
        """
        values = {"code": storable(code.strip().upper()), "by": str(by), "now": stamp(now)}

        def transaction(db: sqlite3.Connection) -> Pairing | None:
            if code_locked(db, str(by), now):
                return None
            row = db.execute(_APPROVE, values).fetchone()
            if row is None:
                note_wrong_code(db, str(by), now)
                return None
            audit.note(db, str(by), "pair.approve", f"{row['channel']} {row['identity']}", now)
            return _pairing(row)

        return await self._database.write(transaction)

    async def revoke(self, identity: Identity, by: Identity) -> list[str]:
        """Shut somebody out of each channel into which pairing or a name let him, and free those names.

        Returns:
            The channels. Empty: he was let in by none, or by the settings' list of ids, which only the settings change.
        """
        now = self._clock.now()
        values = {"identity": str(identity), "by": str(by), "now": stamp(now)}

        def transaction(db: sqlite3.Connection) -> list[str]:
            channels = sorted(row["channel"] for row in db.execute(_REVOKE, values).fetchall())
            db.execute(_UNBIND, values)
            for channel in channels:
                audit.note(db, str(by), "pair.revoke", f"{channel} {identity}", now)
            return channels

        return await self._database.write(transaction)

    async def handles(self) -> list[BoundHandle]:
        """The names that are bound, and to whom."""
        return await self._database.read(lambda db: _bound(db.execute(_HANDLES)))

    async def list(self) -> "list[Pairing]":
        """Open requests and everybody about whom was decided."""
        values = {"now": stamp(self._clock.now())}
        return await self._database.read(lambda db: [_pairing(row) for row in db.execute(_LIST, values)])


def _judge(
    db: sqlite3.Connection, envelope: InboundEnvelope, admission: Admission, row: sqlite3.Row | None
) -> Judgement:
    bound: dict[str, str] = {}
    if admission.handles:
        found = db.execute(_BOUND, {"channel": envelope.place.channel})
        bound = {each["handle"]: each["identity"] for each in found}
    standing = Standing.UNKNOWN if row is None or row["state"] == "pending" else Standing(row["state"])
    handles = envelope.sender_handles
    return judge(admission, envelope.sender, handles, direct=envelope.direct, standing=standing, bound=bound)


def _request(db: sqlite3.Connection, envelope: InboundEnvelope, now: datetime) -> PairingRequest | None:
    """Open a request, unless the sender was told within the hour or too many are open."""
    # What is over makes room first; after it, a row of this sender means that he was told a short time ago.
    db.execute(_FORGET_EXPIRED, {"now": stamp(now), "told_before": stamp(now - TOLD_AGAIN)})
    place, identity = envelope.place, str(envelope.sender)
    if db.execute(_STATE, {"channel": place.channel, "identity": identity}).fetchone() is not None:
        return None
    if db.execute(_OPEN).fetchone()[0] >= OPEN_REQUESTS:
        return None
    code = new_code(CODE_LENGTH)
    while db.execute(_CODE_TAKEN, {"code": code}).fetchone() is not None:
        code = new_code(CODE_LENGTH)
    expires_at = now + CODE_TTL
    values = {
        "channel": place.channel,
        "identity": identity,
        "name": storable(envelope.sender_name),
        "chat": place.chat,
        "code": code,
        "expires_at": stamp(expires_at),
        "now": stamp(now),
    }
    db.execute(_REQUEST, values)
    return PairingRequest(identity=envelope.sender, place=place, code=code, expires_at=expires_at)


def _pairing(row: sqlite3.Row) -> Pairing:
    return Pairing(
        channel=row["channel"],
        identity=Identity.parse(row["identity"]),
        name=row["name"],
        chat=row["chat"],
        state=row["state"],
        code=row["code"],
        expires_at=moment_or_none(row["expires_at"]),
        decided_by=identity_or_none(row["decided_by"]),
        decided_at=moment_or_none(row["decided_at"]),
    )


def _bound(rows: Iterable[sqlite3.Row]) -> list[BoundHandle]:
    return [
        BoundHandle(
            channel=row["channel"],
            handle=row["handle"],
            identity=Identity.parse(row["identity"]),
            bound_at=moment(row["bound_at"]),
        )
        for row in rows
    ]
