"""Approvals and where they were shown. The state machine is in the WHERE: a decision counts once, and only in time."""

import sqlite3
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial

from zerobot.core.approvals import Approval, ApprovalState, Withdrawal
from zerobot.core.clock import Clock
from zerobot.core.ids import ApprovalId, CallId, ConversationId, TurnId, new_code
from zerobot.core.places import Identity, Place
from zerobot.store.columns import (
    identity_or_none,
    json_object,
    json_text,
    moment,
    moment_or_none,
    place_columns,
    place_of,
    stamp,
    storable,
)
from zerobot.store.database import Database
from zerobot.store.wrong_codes import code_locked, note_wrong_code


class PromptState(StrEnum):
    """How far one showing of an approval is."""

    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One place in which an approval is, or has to be, shown."""

    id: int
    approval: ApprovalId
    place: Place
    state: PromptState
    platform_id: str = ""
    """The platform's id of the message; set when it is `sent`."""
    settled: bool = False
    """The message shows the decision; its buttons are gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What became of an attempt to decide."""

    won: bool
    """Whether this attempt is the decision; else somebody was first, or it came too late."""
    approval: Approval
    """As it stands now. Lost and still `pending`: its time is over and `expire_due` has not seen it yet."""
    all_decided: bool
    """Whether no approval of the turn is pending any more, so that it can go on."""


_INSERT = """
    INSERT INTO approvals (id, code, conversation_id, turn_id, call_id, tool, arguments, digest, rule, why, description,
        asker, asker_name, channel, chat, thread, sandbox, grantable, covers, state, requested_at, expires_at,
        decided_by, decided_by_name, decided_at, reason)
    VALUES (:id, :code, :conversation, :turn, :call, :tool, :arguments, :digest, :rule, :why, :description,
        :asker, :asker_name, :channel, :chat, :thread, :sandbox, :grantable, :covers, :state, :requested_at,
        :expires_at, :decided_by, :decided_by_name, :decided_at, :reason)
"""
_CODE_TAKEN = "SELECT 1 FROM approvals WHERE code = :code"
_DECIDE = """
    UPDATE approvals
    SET state = :state, reason = :reason, decided_by = :by, decided_by_name = :by_name, decided_at = :now
    WHERE id = :id AND state = 'pending' AND expires_at > :now
"""
_EXPIRE = """
    UPDATE approvals SET state = 'expired', decided_at = :now
    WHERE state = 'pending' AND expires_at <= :now RETURNING id
"""
_CANCEL = """
    UPDATE approvals SET state = 'cancelled', reason = :reason, decided_at = :now
    WHERE turn_id = :turn AND state = 'pending' RETURNING id
"""
_GET = "SELECT * FROM approvals WHERE id = :id"
_BY_CODE = "SELECT * FROM approvals WHERE code = :code"
_OF_TURN = "SELECT * FROM approvals WHERE turn_id = :turn ORDER BY requested_at, rowid"
_PENDING = "SELECT * FROM approvals WHERE state = 'pending' ORDER BY requested_at, rowid"
_COUNT_PENDING = "SELECT count(*) FROM approvals WHERE state = 'pending' AND asker = :asker"
_PENDING_OF_TURN = "SELECT 1 FROM approvals WHERE turn_id = :turn AND state = 'pending' LIMIT 1"
_NEXT_EXPIRY = "SELECT min(expires_at) FROM approvals WHERE state = 'pending'"

_ADD_PROMPT = """
    INSERT INTO approval_prompts (approval_id, channel, chat, thread, state)
    VALUES (:approval, :channel, :chat, :thread, 'queued') ON CONFLICT DO NOTHING
"""
_PROMPT_AT = """
    SELECT * FROM approval_prompts
    WHERE approval_id = :approval AND channel = :channel AND chat = :chat AND thread = :thread
"""
_PROMPTS_OF = "SELECT * FROM approval_prompts WHERE approval_id = :approval ORDER BY id"
_KNOWN_PROMPT = """
    SELECT 1 FROM approval_prompts
    WHERE approval_id = :approval AND channel = :channel AND chat = :chat AND platform_id = :message
"""
_PROMPT_PRESSED = """
    UPDATE approval_prompts SET state = 'sent', platform_id = :message, settled = 0
    WHERE approval_id = :approval AND channel = :channel AND chat = :chat AND thread = :thread AND platform_id = ''
"""
_PROMPT_ID = "SELECT platform_id FROM approval_prompts WHERE id = :id"
_PROMPT_SENDING = "UPDATE approval_prompts SET state = 'sending' WHERE id = :id"
_PROMPT_SENT = "UPDATE approval_prompts SET state = 'sent', platform_id = :platform_id WHERE id = :id"
_SHOWN = """
    UPDATE approvals SET shown_at = :now
    WHERE id = (SELECT approval_id FROM approval_prompts WHERE id = :id) AND shown_at IS NULL
"""
_PROMPT_FAILED = "UPDATE approval_prompts SET state = 'failed' WHERE id = :id"
_PROMPT_SETTLED = "UPDATE approval_prompts SET settled = 1 WHERE id = :id"
# `+` keeps SQLite from going through all prompts that there ever were in this order, instead of those in the index.
_UNSHOWN = """
    SELECT p.* FROM approval_prompts p JOIN approvals a ON a.id = p.approval_id
    WHERE p.settled = 0 AND p.state <> 'sent' AND a.state = 'pending' ORDER BY +p.id
"""
_UNSETTLED = """
    SELECT p.* FROM approval_prompts p JOIN approvals a ON a.id = p.approval_id
    WHERE p.settled = 0 AND p.state = 'sent' AND a.state <> 'pending' ORDER BY +p.id
"""


def insert(db: sqlite3.Connection, approval: Approval) -> Approval:
    """Store an approval and return it as stored: should its code be taken, it has got another one."""
    code = approval.code
    while db.execute(_CODE_TAKEN, {"code": code}).fetchone() is not None:
        code = new_code(len(code))
    stored = replace(approval, code=code)
    db.execute(_INSERT, _columns(stored))
    return stored


def insert_prompt(db: sqlite3.Connection, approval: ApprovalId, place: Place) -> Prompt:
    """Note that an approval has to be shown in a place, and return that prompt; asked again, it is the same one."""
    values = place_columns(place) | {"approval": approval}
    db.execute(_ADD_PROMPT, values)
    return _prompt(db.execute(_PROMPT_AT, values).fetchone())


def note_pressed(db: sqlite3.Connection, approval: ApprovalId, place: Place, message: str) -> bool:
    """Learn from a pressed button that a prompt is shown by this message, if its sending was not recorded.

    Returns:
        Whether the message is a prompt that has no row to stand in: it has to be settled by itself.
    """
    values = place_columns(place) | {"approval": approval, "message": message}
    if db.execute(_KNOWN_PROMPT, values).fetchone() is not None:
        return False
    return db.execute(_PROMPT_PRESSED, values).rowcount == 0


def decide(
    db: sqlite3.Connection,
    approval: ApprovalId,
    state: ApprovalState,
    by: Identity,
    by_name: str,
    reason: str,
    now: datetime,
) -> Decided | None:
    """Decide an approval if it is pending and in time; None: there is none with this id.

    Args:
        db: In a write transaction.
        approval: Its id.
        state: `APPROVED` or `DENIED`; the other ends have functions of their own.
        by: The operator; that he is one was checked before.
        by_name: For people to read.
        reason: What he said about it; may be empty.
        now: UTC; compared with the stored expiry.
    """
    assert state in (ApprovalState.APPROVED, ApprovalState.DENIED), f"nobody decides {state}"
    values = {
        "id": approval,
        "state": state,
        "reason": storable(reason),
        "by": str(by),
        "by_name": storable(by_name),
        "now": stamp(now),
    }
    won = db.execute(_DECIDE, values).rowcount == 1
    row = db.execute(_GET, {"id": approval}).fetchone()
    if row is None:
        return None
    pending = db.execute(_PENDING_OF_TURN, {"turn": row["turn_id"]}).fetchone()
    return Decided(won=won, approval=_approval(row), all_decided=pending is None)


def of_turn(db: sqlite3.Connection, turn: TurnId) -> list[Approval]:
    """All approvals of a turn, in the order in which they were asked."""
    return _approvals(db, _OF_TURN, turn=turn)


def count_pending(db: sqlite3.Connection, asker: Identity) -> int:
    """How many approvals of one person's wait for operators."""
    return int(db.execute(_COUNT_PENDING, {"asker": str(asker)}).fetchone()[0])


def cancel_open(db: sqlite3.Connection, turn: TurnId, reason: Withdrawal, now: datetime) -> list[ApprovalId]:
    """Withdraw what a turn still waits for, and return what that was; `reason` is shown to operators."""
    values = {"turn": turn, "reason": reason, "now": stamp(now)}
    return [ApprovalId(row["id"]) for row in db.execute(_CANCEL, values).fetchall()]


class Approvals:
    """Approvals and their prompts, a transaction a method."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def decide(
        self, approval: ApprovalId, state: ApprovalState, by: Identity, by_name: str, reason: str, now: datetime
    ) -> Decided | None:
        """See `decide` in this module."""
        return await self._database.write(lambda db: decide(db, approval, state, by, by_name, reason, now))

    async def expire_due(self, now: datetime) -> list[Approval]:
        """End the pending approvals whose time is over, and return them, oldest first."""

        def transaction(db: sqlite3.Connection) -> list[Approval]:
            ids = [row["id"] for row in db.execute(_EXPIRE, {"now": stamp(now)}).fetchall()]
            expired = [_approval(db.execute(_GET, {"id": each}).fetchone()) for each in ids]
            return sorted(expired, key=lambda approval: approval.requested_at)

        return await self._database.write(transaction)

    async def get(self, approval: ApprovalId) -> Approval | None:
        """An approval by its id."""
        return await self._database.read(partial(_first, sql=_GET, id=approval))

    async def by_code(self, code: str) -> Approval | None:
        """An approval by the code that people type, in any case; also one that is decided."""
        return await self._database.read(partial(_first, sql=_BY_CODE, code=storable(code.strip().upper())))

    async def pending(self) -> list[Approval]:
        """What waits for an operator, oldest first; also what is over but not expired yet."""
        return await self._database.read(partial(_approvals, sql=_PENDING))

    async def next_expiry(self) -> datetime | None:
        """When the next pending approval ends, UTC; None when none is pending."""
        return await self._database.read(lambda db: moment_or_none(db.execute(_NEXT_EXPIRY).fetchone()[0]))

    async def add_prompt(self, approval: ApprovalId, place: Place) -> Prompt:
        """See `insert_prompt`."""
        return await self._database.write(lambda db: insert_prompt(db, approval, place))

    async def prompts_of(self, approval: ApprovalId) -> list[Prompt]:
        """Every place in which an approval is shown, or should be."""
        return await self._database.read(partial(_prompts, sql=_PROMPTS_OF, approval=approval))

    async def prompt_sending(self, prompt: int) -> None:
        """A prompt is about to be sent: committed before the platform is called."""
        await self._execute(_PROMPT_SENDING, id=prompt)

    async def prompt_sent(self, prompt: int, platform_id: str) -> str:
        """The platform took the prompt, under this id; with the first one, its approval counts as shown.

        Returns:
            The id of another message that was on record for it, which nothing stands for any more; empty: none was.
        """
        now = stamp(self._clock.now())

        def transaction(db: sqlite3.Connection) -> str:
            row = db.execute(_PROMPT_ID, {"id": prompt}).fetchone()
            db.execute(_PROMPT_SENT, {"id": prompt, "platform_id": platform_id})
            db.execute(_SHOWN, {"id": prompt, "now": now})
            before = "" if row is None else str(row["platform_id"])
            return before if before != platform_id else ""

        return await self._database.write(transaction)

    async def prompt_failed(self, prompt: int) -> None:
        """The prompt could not be shown; `unshown` names it again, while its approval is pending."""
        await self._execute(_PROMPT_FAILED, id=prompt)

    async def prompt_settled(self, prompt: int) -> None:
        """The prompt's message shows the decision now, or can't be changed any more."""
        await self._execute(_PROMPT_SETTLED, id=prompt)

    async def unshown(self) -> list[Prompt]:
        """Prompts of pending approvals that are not known to be shown: to be sent after a restart."""
        return await self._database.read(partial(_prompts, sql=_UNSHOWN))

    async def unsettled(self) -> list[Prompt]:
        """Prompts that still show buttons although their approval is decided."""
        return await self._database.read(partial(_prompts, sql=_UNSETTLED))

    async def wrong_code(self, subject: Identity, now: datetime) -> None:
        """Count a code that fits nothing; see `wrong_codes`."""
        await self._database.write(lambda db: note_wrong_code(db, str(subject), now))

    async def code_locked(self, subject: Identity, now: datetime) -> bool:
        """Whether this person's codes are not looked at for now, right or wrong; see `wrong_codes`."""
        return await self._database.read(lambda db: code_locked(db, str(subject), now))

    async def _execute(self, sql: str, **values: object) -> None:
        def transaction(db: sqlite3.Connection) -> None:
            db.execute(sql, values)

        await self._database.write(transaction)


def _columns(approval: Approval) -> dict[str, object]:
    return place_columns(approval.place) | {
        "id": approval.id,
        "code": approval.code,
        "conversation": approval.conversation,
        "turn": approval.turn,
        "call": approval.call,
        "tool": storable(approval.tool),
        "arguments": json_text(approval.arguments),
        "digest": approval.digest,
        "rule": approval.rule,
        "why": storable(approval.why),
        "description": storable(approval.description),
        "asker": str(approval.asker),
        "asker_name": storable(approval.asker_name),
        "sandbox": approval.sandbox,
        "grantable": approval.grantable,
        "covers": storable(approval.covers),
        "state": approval.state,
        "requested_at": stamp(approval.requested_at),
        "expires_at": stamp(approval.expires_at),
        "decided_by": None if approval.decided_by is None else str(approval.decided_by),
        "decided_by_name": storable(approval.decided_by_name),
        "decided_at": None if approval.decided_at is None else stamp(approval.decided_at),
        "reason": storable(approval.reason),
    }


def _approval(row: sqlite3.Row) -> Approval:
    return Approval(
        id=ApprovalId(row["id"]),
        code=row["code"],
        conversation=ConversationId(row["conversation_id"]),
        turn=TurnId(row["turn_id"]),
        call=CallId(row["call_id"]),
        tool=row["tool"],
        arguments=json_object(row["arguments"]),
        digest=row["digest"],
        rule=row["rule"],
        why=row["why"],
        description=row["description"],
        asker=Identity.parse(row["asker"]),
        asker_name=row["asker_name"],
        place=place_of(row),
        sandbox=row["sandbox"],
        grantable=bool(row["grantable"]),
        covers=row["covers"],
        state=ApprovalState(row["state"]),
        requested_at=moment(row["requested_at"]),
        expires_at=moment(row["expires_at"]),
        decided_by=identity_or_none(row["decided_by"]),
        decided_by_name=row["decided_by_name"],
        decided_at=moment_or_none(row["decided_at"]),
        reason=row["reason"],
    )


def _approvals(db: sqlite3.Connection, sql: str, **values: object) -> list[Approval]:
    return [_approval(row) for row in db.execute(sql, values)]


def _first(db: sqlite3.Connection, sql: str, **values: object) -> Approval | None:
    row = db.execute(sql, values).fetchone()
    return None if row is None else _approval(row)


def _prompts(db: sqlite3.Connection, sql: str, **values: object) -> list[Prompt]:
    return [_prompt(row) for row in db.execute(sql, values)]


def _prompt(row: sqlite3.Row) -> Prompt:
    return Prompt(
        id=row["id"],
        approval=ApprovalId(row["approval_id"]),
        place=place_of(row),
        state=PromptState(row["state"]),
        platform_id=row["platform_id"],
        settled=bool(row["settled"]),
    )
