"""Pairing: strangers ask by a code, an operator approves it. Names of an allow-list are bound to ids here too."""

import hmac
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from zerobot.core.admission import Admission, Answer, Judgement, Standing, judge
from zerobot.core.clock import Clock
from zerobot.core.envelope import InboundEnvelope
from zerobot.core.ids import new_code, new_pairing_id
from zerobot.core.places import Identity, Place
from zerobot.store import audit
from zerobot.store.columns import identity_or_none, moment, moment_or_none, place_columns, place_of, stamp, storable
from zerobot.store.database import Database
from zerobot.store.wrong_codes import code_locked, note_wrong_code

CODE_LENGTH = 8
CODE_TTL = timedelta(hours=1)
TOLD_AGAIN = timedelta(minutes=10)
"""How long after a stranger was told his code he is told it again."""
OPEN_REQUESTS = 10
"""Of all channels together: however many strangers come, so many codes are open, and so many of them are answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingRequest:
    """What a stranger is told: every ten minutes at most, however much he writes."""

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
    request: str
    """The id by which buttons name the request; empty for who never asked."""
    expires_at: datetime | None
    decided_by: Identity | None
    decided_at: datetime | None

    def open_until(self, now: datetime) -> datetime | None:
        """Until when it can be decided, UTC; None: it is decided, or its time is over."""
        is_open = self.state == "pending" and self.expires_at is not None and self.expires_at > now
        return self.expires_at if is_open else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingPrompt:
    """A message in which an operator was asked whether to let somebody in."""

    id: int
    request: str
    identity: Identity
    name: str
    on_channel: str
    """Where the person wrote."""
    place: Place
    platform_id: str


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
    INSERT INTO pairings (channel, identity, name, chat, state, code, request, expires_at, told_at)
    VALUES (:channel, :identity, :name, :chat, 'pending', :code, :request, :expires_at, :now)
"""
_TOLD = "UPDATE pairings SET told_at = :now WHERE channel = :channel AND identity = :identity"
_WAITING = "SELECT * FROM pairings WHERE state = 'pending' AND expires_at > :now"
_DECIDE = """
    UPDATE pairings SET state = :state, code = '', expires_at = '', decided_by = :by, decided_at = :now
    WHERE channel = :channel AND identity = :identity AND state = 'pending' AND expires_at > :now RETURNING *
"""
_OF_REQUEST = "SELECT * FROM pairings WHERE request = :request"
_REVOKE = """
    INSERT INTO pairings (channel, identity, name, chat, state, decided_by, decided_at)
    SELECT channel, :identity, '', '', 'revoked', :by, :now FROM (
        SELECT channel FROM pairings WHERE identity = :identity AND state <> 'revoked'
        UNION SELECT channel FROM handles WHERE identity = :identity
    ) WHERE true
    ON CONFLICT DO UPDATE SET state = 'revoked', code = '', expires_at = '', decided_by = :by, decided_at = :now
    RETURNING channel
"""
_SHUT_OUT_OF = "SELECT channel FROM pairings WHERE identity = :identity AND state = 'revoked' ORDER BY channel"
_UNASKED = """
    SELECT * FROM pairings WHERE state = 'pending' AND expires_at > :now AND asked_at = '' AND request <> ''
    ORDER BY told_at, channel, identity LIMIT :limit
"""
_ASKED_LATELY = "SELECT count(*) FROM pairings WHERE asked_at > :since"
_ASKED = "UPDATE pairings SET asked_at = :now WHERE request = :request"
_ASK_AGAIN = """
    UPDATE pairings SET asked_at = '' WHERE state = 'pending'
        AND NOT EXISTS (SELECT 1 FROM pairing_prompts p WHERE p.request = pairings.request)
"""
_NEXT_END = "SELECT min(expires_at) FROM pairings WHERE state = 'pending' AND asked_at <> '' AND expires_at > :now"
_SHOWN = """
    INSERT INTO pairing_prompts (request, identity, name, on_channel, channel, chat, thread, platform_id)
    SELECT :request, :identity, :name, :on_channel, :channel, :chat, :thread, :platform_id WHERE NOT EXISTS (
        SELECT 1 FROM pairing_prompts WHERE request = :request
            AND channel = :channel AND chat = :chat AND thread = :thread AND platform_id = :platform_id
    )
"""
_UNSETTLED = """
    SELECT p.* FROM pairing_prompts p
    WHERE p.settled = 0 AND NOT EXISTS (
        SELECT 1 FROM pairings r WHERE r.request = p.request AND r.state = 'pending' AND r.expires_at > :now
    ) ORDER BY p.id
"""
_SETTLED = "UPDATE pairing_prompts SET settled = 1 WHERE id = :id"
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
    judgement = _judge(
        db, envelope.sender, channel, admission, row, handles=envelope.sender_handles, direct=envelope.direct
    )
    for handle in judgement.bind:
        db.execute(_BIND, {"channel": channel, "handle": handle, "identity": sender, "now": stamp(now)})
    if judgement.answer is not Answer.PAIRING:
        return judgement.answer, None
    return judgement.answer, _request(db, envelope, now)


def may_talk(db: sqlite3.Connection, sender: Identity, channel: str, admission: Admission) -> bool:
    """The same judgement for somebody who is known: nothing is bound and nothing is asked by it."""
    row = db.execute(_STATE, {"channel": channel, "identity": str(sender)}).fetchone()
    return _judge(db, sender, channel, admission, row).answer is Answer.ADMITTED


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
        typed = storable(code.strip().upper()).encode()

        def transaction(db: sqlite3.Connection) -> Pairing | None:
            if code_locked(db, str(by), now):
                return None
            waiting = db.execute(_WAITING, {"now": stamp(now)}).fetchall()
            # All are compared, each in constant time: how long it takes tells nothing of any code.
            found = [row for row in waiting if hmac.compare_digest(row["code"].encode(), typed)]
            if not found:
                note_wrong_code(db, str(by), now)
                return None
            return _decide(db, found[0], by, now, let_in=True)

        return await self._database.write(transaction)

    async def decide(self, request: str, by: Identity, now: datetime, *, let_in: bool) -> tuple[Pairing | None, bool]:
        """Decide a request that operators were asked about by buttons. The first decision counts.

        Args:
            request: As in `Pairing.request`.
            by: The operator; that he is one was checked before.
            now: UTC.
            let_in: False shuts the person out, as `revoke` does.

        Returns:
            How the person stands now, None: the request is forgotten; and whether this decision is the one.
        """

        def transaction(db: sqlite3.Connection) -> tuple[Pairing | None, bool]:
            row = db.execute(_OF_REQUEST, {"request": request}).fetchone()
            if row is None:
                return None, False
            decided = _decide(db, row, by, now, let_in=let_in)
            return (decided, True) if decided is not None else (_pairing(row), False)

        return await self._database.write(transaction)

    async def revoke(self, identity: Identity, by: Identity) -> list[str]:
        """Shut somebody out of each channel into which pairing or a name let him, and free those names.

        Returns:
            The channels, also those out of which he was shut before. Empty: he was let in by none, or by the settings'
            list of ids, which only the settings change.
        """
        now = self._clock.now()
        values = {"identity": str(identity), "by": str(by), "now": stamp(now)}

        def transaction(db: sqlite3.Connection) -> list[str]:
            for channel in sorted(row["channel"] for row in db.execute(_REVOKE, values).fetchall()):
                audit.note(db, str(by), "pair.revoke", f"{channel} {identity}", now)
            db.execute(_UNBIND, values)
            return [row["channel"] for row in db.execute(_SHUT_OUT_OF, values)]

        return await self._database.write(transaction)

    async def may_talk(self, sender: Identity, channel: str, admission: Admission) -> bool:
        """Whether somebody whose message was accepted before may still talk on a channel."""
        return await self._database.read(lambda db: may_talk(db, sender, channel, admission))

    async def to_ask(self, now: datetime, most: int, within: timedelta) -> "list[Pairing]":
        """Take the requests that operators are to be asked about now, oldest first; each is given once.

        Args:
            now: UTC.
            most: So many in a time of `within`: strangers must not flood operators. The others are in the list.
            within: See `most`.
        """

        def transaction(db: sqlite3.Connection) -> list[Pairing]:
            asked = db.execute(_ASKED_LATELY, {"since": stamp(now - within)}).fetchone()[0]
            rows = db.execute(_UNASKED, {"now": stamp(now), "limit": max(most - asked, 0)}).fetchall()
            for row in rows:
                db.execute(_ASKED, {"now": stamp(now), "request": row["request"]})
            return [_pairing(row) for row in rows]

        return await self._database.write(transaction)

    async def ask_again(self) -> None:
        """Forget, at a start, that operators were asked where no message is on record: a crash may have cut it off."""

        def transaction(db: sqlite3.Connection) -> None:
            db.execute(_ASK_AGAIN)

        await self._database.write(transaction)

    async def of_request(self, request: str) -> Pairing | None:
        """The request that a button names; None: there is none, or it is over and forgotten."""

        def read(db: sqlite3.Connection) -> Pairing | None:
            row = db.execute(_OF_REQUEST, {"request": request}).fetchone()
            return None if row is None else _pairing(row)

        return await self._database.read(read)

    async def shown(self, pairing: Pairing, place: Place, platform_id: str) -> None:
        """An operator was asked about a request by this message; it may be on record already."""
        values = place_columns(place) | {
            "request": pairing.request,
            "identity": str(pairing.identity),
            "name": storable(pairing.name),
            "on_channel": pairing.channel,
            "platform_id": platform_id,
        }

        def transaction(db: sqlite3.Connection) -> None:
            db.execute(_SHOWN, values)

        await self._database.write(transaction)

    async def unsettled(self, now: datetime) -> "list[PairingPrompt]":
        """Messages with buttons for a request that is decided or over."""
        return await self._database.read(
            lambda db: [_prompt(row) for row in db.execute(_UNSETTLED, {"now": stamp(now)})]
        )

    async def settled(self, prompt: int) -> None:
        """A message shows what became of its request, or cannot be changed any more."""

        def transaction(db: sqlite3.Connection) -> None:
            db.execute(_SETTLED, {"id": prompt})

        await self._database.write(transaction)

    async def next_end(self, now: datetime) -> datetime | None:
        """When the next request ends that operators were asked about, UTC; None: there is none."""
        return await self._database.read(
            lambda db: moment_or_none(db.execute(_NEXT_END, {"now": stamp(now)}).fetchone()[0])
        )

    async def handles(self) -> list[BoundHandle]:
        """The names that are bound, and to whom."""
        return await self._database.read(lambda db: _bound(db.execute(_HANDLES)))

    async def list(self) -> "list[Pairing]":
        """Open requests and everybody about whom was decided."""
        values = {"now": stamp(self._clock.now())}
        return await self._database.read(lambda db: [_pairing(row) for row in db.execute(_LIST, values)])


def _judge(
    db: sqlite3.Connection,
    sender: Identity,
    channel: str,
    admission: Admission,
    row: sqlite3.Row | None,
    *,
    handles: tuple[str, ...] = (),
    direct: bool = False,
) -> Judgement:
    bound: dict[str, str] = {}
    if admission.handles:
        bound = {each["handle"]: each["identity"] for each in db.execute(_BOUND, {"channel": channel})}
    standing = Standing.UNKNOWN if row is None or row["state"] == "pending" else Standing(row["state"])
    return judge(admission, sender, handles, direct=direct, standing=standing, bound=bound)


def _decide(db: sqlite3.Connection, row: sqlite3.Row, by: Identity, now: datetime, *, let_in: bool) -> "Pairing | None":
    values = {
        "channel": row["channel"],
        "identity": row["identity"],
        "state": "allowed" if let_in else "revoked",
        "by": str(by),
        "now": stamp(now),
    }
    decided = db.execute(_DECIDE, values).fetchone()
    if decided is None:
        return None
    action = "pair.approve" if let_in else "pair.deny"
    audit.note(db, str(by), action, f"{row['channel']} {row['identity']}", now)
    return _pairing(decided)


def _request(db: sqlite3.Connection, envelope: InboundEnvelope, now: datetime) -> PairingRequest | None:
    """Open a request, or tell the code of the open one again; None: he was told lately, or too many are open."""
    # What is over makes room first.
    db.execute(_FORGET_EXPIRED, {"now": stamp(now), "told_before": stamp(now - TOLD_AGAIN)})
    place, identity = envelope.place, str(envelope.sender)
    row = db.execute(_STATE, {"channel": place.channel, "identity": identity}).fetchone()
    if row is not None:
        return _tell_again(db, row, envelope, now)
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
        "request": new_pairing_id(),
        "expires_at": stamp(expires_at),
        "now": stamp(now),
    }
    db.execute(_REQUEST, values)
    return PairingRequest(identity=envelope.sender, place=place, code=code, expires_at=expires_at)


def _tell_again(
    db: sqlite3.Connection, row: sqlite3.Row, envelope: InboundEnvelope, now: datetime
) -> PairingRequest | None:
    if moment(row["told_at"]) > now - TOLD_AGAIN or moment(row["expires_at"]) <= now:
        return None
    db.execute(_TOLD, {"channel": row["channel"], "identity": row["identity"], "now": stamp(now)})
    ends = moment(row["expires_at"])
    return PairingRequest(identity=envelope.sender, place=envelope.place, code=row["code"], expires_at=ends)


def _pairing(row: sqlite3.Row) -> Pairing:
    return Pairing(
        channel=row["channel"],
        identity=Identity.parse(row["identity"]),
        name=row["name"],
        chat=row["chat"],
        state=row["state"],
        code=row["code"],
        request=row["request"],
        expires_at=moment_or_none(row["expires_at"]),
        decided_by=identity_or_none(row["decided_by"]),
        decided_at=moment_or_none(row["decided_at"]),
    )


def _prompt(row: sqlite3.Row) -> PairingPrompt:
    return PairingPrompt(
        id=row["id"],
        request=row["request"],
        identity=Identity.parse(row["identity"]),
        name=row["name"],
        on_channel=row["on_channel"],
        place=place_of(row),
        platform_id=row["platform_id"],
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
