"""Turns: what a conversation works on next, and each thing that a turn commits on its way."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from zerobot.core.approvals import Approval, Withdrawal
from zerobot.core.clock import Clock
from zerobot.core.envelope import InboundEnvelope
from zerobot.core.events import Outcome, StopReason
from zerobot.core.ids import CallId, ConversationId, InboxId, ReplyId, TurnId
from zerobot.core.messages import AssistantMessage, History, Message, ResultCode, ToolResult, UserMessage
from zerobot.core.places import Identity
from zerobot.core.usage import Usage
from zerobot.store import approvals, inputs, outbox, usage
from zerobot.store.answers import finish_calls, insert_answer
from zerobot.store.columns import OPEN_INBOX, WAITS, json_text, stamp, storable
from zerobot.store.database import Database
from zerobot.store.envelope_json import decode_envelope
from zerobot.store.history import NEVER_FINISHED, extra_of, load_history
from zerobot.store.turn_rows import (
    AttemptUsage,
    Ending,
    NextWork,
    OpenTurn,
    PauseRequest,
    Supersedes,
    Turn,
    WaitingInput,
    turn_of,
)

NO_DEBOUNCE = timedelta()

TURN = """
    SELECT t.*, c.channel, c.chat, c.thread, c.direct, c.model, c.epoch AS now_epoch
    FROM turns t JOIN conversations c ON c.id = t.conversation_id
"""
OPEN_TURN = TURN + " WHERE t.conversation_id = :conversation AND t.state <> 'finished'"
TURN_BY_ID = TURN + " WHERE t.id = :turn"
ASKED_BEFORE = """
    SELECT 1 FROM turns t JOIN inbox i ON i.turn_id = t.id
    WHERE t.conversation_id = :conversation AND t.state <> 'finished' AND i.id < :before
"""
SET_STATE = "UPDATE turns SET state = :state WHERE id = :turn AND state <> 'finished'"
# Only crashes in a row count: a turn that came this far is not what brings the process down.
SET_ASIDE = "UPDATE turns SET state = :state, crashes = 0 WHERE id = :turn AND state <> 'finished'"
UNDECIDED = "SELECT count(*) FROM approvals WHERE turn_id = :turn AND state = 'pending'"
LAST_SHOWN = "SELECT max(coalesce(shown_at, '9999')) FROM approvals WHERE turn_id = :turn AND state = 'pending'"

SET_EXTRA = "UPDATE messages SET text = :text, extra = :extra WHERE id = :seq"
SET_ARGUMENTS = "UPDATE tool_calls SET arguments = :arguments WHERE id = :call AND state = 'recorded'"
START_CALL = """
    UPDATE tool_calls SET state = 'started', started_at = :now, rule = :rule WHERE id = :call AND state = 'recorded'
"""
ADD_RECEIPT = "UPDATE tool_calls SET receipt = :receipt WHERE id = :call AND state = 'finished' AND receipt = ''"
COUNT_STEP = """
    UPDATE turns SET steps = :steps, input_tokens = input_tokens + :input, output_tokens = output_tokens + :output,
        cache_read_tokens = cache_read_tokens + :cache_read, cache_write_tokens = cache_write_tokens + :cache_write,
        failed_input_tokens = failed_input_tokens + :failed_input,
        failed_output_tokens = failed_output_tokens + :failed_output
    WHERE id = :turn
"""
SETTLED = "UPDATE turns SET settled_seq = :seq, preface = '' WHERE id = :turn"
OUTSIDE = "UPDATE turns SET outside_content = 1 WHERE id = :turn"
FINISH_TURN = """
    UPDATE turns SET state = 'finished', finished_at = :now, outcome = :outcome, reason = :reason, error_code = :error
    WHERE id = :turn AND state <> 'finished'
"""
INBOX_DONE = "UPDATE inbox SET state = 'done' WHERE turn_id = :turn AND state = 'taken'"

# That they are not finished is said so that SQLite uses the index of open turns.
CRASHED = "UPDATE turns SET crashes = crashes + 1 WHERE state = 'running' AND state <> 'finished'"
INTERRUPT_STARTED = """
    UPDATE tool_calls SET state = 'finished', code = :code, result = :text, finished_at = :now
    WHERE state = 'started' AND turn_id IN (SELECT id FROM turns WHERE state <> 'finished')
"""
RUNNABLE = f"""
    SELECT conversation_id FROM turns WHERE state <> 'finished'
    UNION SELECT conversation_id FROM {OPEN_INBOX} WHERE {WAITS}
"""  # noqa: S608 - constants
ENVELOPES = "SELECT envelope FROM inbox WHERE id IN (SELECT value FROM json_each(:inputs)) ORDER BY id"
CHANNEL = "SELECT channel FROM conversations WHERE id = :conversation"


class Turns:
    """The journal of turns. Each method is one transaction; what it returned for is stored."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def recover(self) -> None:
        """Take note, once at start, of what a crash left.

        Open turns count it, started tool calls become interrupted, and model calls that were under way are recorded.
        """
        now = self._now()

        def transaction(db: sqlite3.Connection) -> None:
            db.execute(CRASHED)
            db.execute(INTERRUPT_STARTED, {"code": NEVER_FINISHED.code, "text": NEVER_FINISHED.text, "now": now})
            usage.record_left(db)

        await self._database.write(transaction)

    async def runnable(self) -> list[ConversationId]:
        """Conversations that may have something to work on."""
        rows = await self._database.read(lambda db: db.execute(RUNNABLE).fetchall())
        return [ConversationId(row[0]) for row in rows]

    async def next(
        self, conversation: ConversationId, supersedes: Supersedes, channels: Mapping[str, timedelta] | None = None
    ) -> NextWork:
        """Take the next work of a conversation, if it is on one of the channels.

        An open turn goes on (a paused one when all its approvals are decided, or it is ended when a waiting input
        supersedes it); else the oldest waiting input begins a turn.
        """
        now = self._clock.now()

        def transaction(db: sqlite3.Connection) -> NextWork:
            debounce = _debounce(db, conversation, channels)
            if debounce is None:
                return NextWork(None)
            row = db.execute(OPEN_TURN, {"conversation": conversation}).fetchone()
            if row is None:
                return _begin(db, conversation, now, debounce)
            turn = turn_of(row, resumed=True)
            if row["state"] == "paused" and db.execute(UNDECIDED, {"turn": turn.id}).fetchone()[0]:
                return _try_supersede(db, turn, supersedes, now, debounce)
            db.execute(SET_STATE, {"state": "running", "turn": turn.id})
            return NextWork(turn)

        return await self._database.write(transaction)

    async def take_paused(self, conversation: ConversationId, reason: Withdrawal) -> Turn | None:
        """Take a paused turn in order to end it: what was asked for is withdrawn. None when none is paused."""
        now = self._clock.now()

        def transaction(db: sqlite3.Connection) -> Turn | None:
            row = db.execute(OPEN_TURN, {"conversation": conversation}).fetchone()
            if row is None or row["state"] != "paused":
                return None
            turn = turn_of(row, resumed=True)
            approvals.cancel_open(db, turn.id, reason, now)
            db.execute(SET_STATE, {"state": "running", "turn": turn.id})
            return turn

        return await self._database.write(transaction)

    async def asked_before(self, conversation: ConversationId, before: InboxId) -> bool:
        """Whether the open turn of a conversation answers something that came before `before`; False also for none."""
        values = {"conversation": conversation, "before": before}
        return await self._database.read(lambda db: db.execute(ASKED_BEFORE, values).fetchone() is not None)

    async def open_turn(self, conversation: ConversationId) -> OpenTurn | None:
        """Who asked for what is under way in a conversation, and how far it is; None when it is idle."""

        def transaction(db: sqlite3.Connection) -> OpenTurn | None:
            row = db.execute(OPEN_TURN, {"conversation": conversation}).fetchone()
            if row is None:
                return None
            return OpenTurn(state=row["state"], asker=Identity.parse(row["asker"]), steps=row["steps"])

        return await self._database.read(transaction)

    async def envelopes(self, message: UserMessage) -> list[InboundEnvelope]:
        """The envelopes that a message is made of, as long as its turn is open."""
        wanted = {"inputs": json.dumps(message.inputs)}
        rows = await self._database.read(lambda db: db.execute(ENVELOPES, wanted).fetchall())
        return [decode_envelope(row[0]) for row in rows]

    async def history(self, turn: Turn) -> History:
        """The conversation in the model's view, with what this turn has committed so far.

        Of a turn that began before a reset it is only what the turn itself has committed.
        """
        return await self._database.read(lambda db: load_history(db, turn.conversation, turn.id))

    async def approvals(self, turn: TurnId) -> list[Approval]:
        """All that was asked for in a turn, oldest first."""
        return await self._database.read(lambda db: approvals.of_turn(db, turn))

    async def open_requests(self, asker: Identity) -> int:
        """How many approvals of one person's wait for operators, of all conversations."""
        return await self._database.read(lambda db: approvals.count_pending(db, asker))

    async def set_input(self, message: UserMessage) -> None:
        """Store what became of an input's attachments."""
        fields = {"text": storable(message.text), "extra": extra_of(message), "seq": message.seq}
        await self._database.write(lambda db: db.execute(SET_EXTRA, fields))

    async def record_step(
        self, turn: Turn, message: AssistantMessage | None, attempts: Sequence[AttemptUsage], steps: int
    ) -> AssistantMessage | None:
        """Store a model's answer with its calls, results that they have already, and its cost.

        Returns:
            The message as stored: with its sequence number, its wire ids, and texts that UTF-8 can hold.
        """
        now = self._clock.now()

        def transaction(db: sqlite3.Connection) -> AssistantMessage | None:
            _count(db, turn, attempts, steps, now)
            return insert_answer(db, turn, message, stamp(now)) if message else None

        return await self._database.write(transaction)

    async def join(self, turn: Turn, debounce: timedelta) -> list[UserMessage]:
        """Let the inputs join a turn that may do so now; see `inputs.joining`.

        Args:
            turn: It runs, and the model is about to be asked.
            debounce: How long an input waits for more of it.

        Returns:
            What they are in the turn, in the order of their arrival.
        """
        now = self._clock.now()
        return await self._database.write(lambda db: _join(db, turn, debounce, now))

    async def join_after(
        self,
        turn: Turn,
        debounce: timedelta,
        message: AssistantMessage | None,
        attempts: Sequence[AttemptUsage],
        steps: int,
    ) -> list[Message]:
        """Let inputs join a turn whose model is done: its answer is stored as a step's, and they after it.

        Returns:
            All of that as stored; nothing when nothing joins: then nothing is stored either, and the turn is to end.
        """
        now = self._clock.now()

        def transaction(db: sqlite3.Connection) -> list[Message]:
            if not inputs.joining(db, turn.id, turn.conversation, debounce, now):
                return []
            _count(db, turn, attempts, steps, now)
            stored = [insert_answer(db, turn, message, stamp(now))] if message else []
            return [*stored, *_join(db, turn, debounce, now)]

        return await self._database.write(transaction)

    async def set_arguments(self, call: CallId, arguments: Mapping[str, object]) -> None:
        """Replace the arguments of a call that has not started (a prepare hook did it)."""
        fields = {"call": call, "arguments": json_text(arguments)}
        await self._database.write(lambda db: db.execute(SET_ARGUMENTS, fields))

    async def start_call(self, call: CallId, rule: str = "") -> bool:
        """Commit that a call starts now; False when it had started or ended before: then it must not run.

        Args:
            call: Its id.
            rule: Which rule of the access policy let it run; for the audit.
        """
        values = {"call": call, "rule": rule, "now": self._now()}
        return await self._database.write(lambda db: db.execute(START_CALL, values).rowcount == 1)

    async def finish_calls(
        self, turn: Turn, results: Sequence[tuple[CallId, ToolResult]], *, outside_content: bool = False
    ) -> None:
        """Commit results; a result that is there already stays."""
        now = self._now()

        def transaction(db: sqlite3.Connection) -> None:
            finish_calls(db, results, now)
            if outside_content:
                db.execute(OUTSIDE, {"turn": turn.id})

        await self._database.write(transaction)

    async def add_receipts(self, receipts: Mapping[CallId, str]) -> bool:
        """Give receipts to finished calls that have none; False: all have one, or are not finished in the store."""

        def transaction(db: sqlite3.Connection) -> bool:
            changed = db.total_changes
            db.executemany(ADD_RECEIPT, [{"call": call, "receipt": receipt} for call, receipt in receipts.items()])
            return db.total_changes > changed

        return await self._database.write(transaction)

    async def pause(self, turn: Turn, requests: Sequence[PauseRequest], settled: str, last_seq: int) -> ReplyId | None:
        """Save a pause: the approvals, where they will be shown, and the text so far as a message of its own.

        Nothing of it is visible to anybody before this has returned.
        """
        now = self._clock.now()

        def transaction(db: sqlite3.Connection) -> ReplyId | None:
            for request in requests:
                approvals.insert(db, request.approval)
                for place in request.places:
                    approvals.insert_prompt(db, request.approval.id, place)
            db.execute(SET_ASIDE, {"state": "paused", "turn": turn.id})
            if not settled:
                return None
            db.execute(SETTLED, {"seq": last_seq, "turn": turn.id})
            return outbox.queue_turn_reply(db, turn.id, turn.conversation, turn.place, turn.reply_to, settled, now)

        return await self._database.write(transaction)

    async def suspend(self, turn: Turn, attempts: Sequence[AttemptUsage], steps: int) -> None:
        """Leave a turn for the next start: the daemon stops gracefully, which is no crash."""
        now = self._clock.now()

        def transaction(db: sqlite3.Connection) -> None:
            _count(db, turn, attempts, steps, now)
            db.execute(SET_ASIDE, {"state": "suspended", "turn": turn.id})

        await self._database.write(transaction)

    async def finish(
        self, turn: Turn, ending: Ending, message: AssistantMessage | None, attempts: Sequence[AttemptUsage], steps: int
    ) -> ReplyId | None:
        """End a turn: its last message, results for open calls, its reply and its state, all or nothing.

        Returns:
            The reply to deliver; None when there is nothing to say, or when the turn had ended before.
        """
        now = self._clock.now()

        def transaction(db: sqlite3.Connection) -> ReplyId | None:
            return _finish(db, turn, ending, message, attempts, steps, now)

        return await self._database.write(transaction)

    def _now(self) -> str:
        return stamp(self._clock.now())


def _debounce(
    db: sqlite3.Connection, conversation: ConversationId, channels: Mapping[str, timedelta] | None
) -> timedelta | None:
    """How long an input of a conversation waits for more of it; None: its channel is not open."""
    if channels is None:
        return NO_DEBOUNCE
    return channels.get(db.execute(CHANNEL, {"conversation": conversation}).fetchone()["channel"])


def _begin(
    db: sqlite3.Connection, conversation: ConversationId, now: datetime, debounce: timedelta, preface: str = ""
) -> NextWork:
    rows = inputs.next_input(db, conversation, debounce)
    if not rows:
        return NextWork(None)
    complete_at = inputs.complete_at(rows, debounce)
    if complete_at is not None and complete_at > now:
        return NextWork(None, look_again=complete_at)
    turn = inputs.begin(db, conversation, rows, preface, now)
    return NextWork(turn_of(db.execute(TURN_BY_ID, {"turn": turn}).fetchone(), resumed=False))


def _join(db: sqlite3.Connection, turn: Turn, debounce: timedelta, now: datetime) -> list[UserMessage]:
    joining = inputs.joining(db, turn.id, turn.conversation, debounce, now)
    return [inputs.take(db, turn.conversation, turn.id, rows, now) for rows in joining]


def _try_supersede(
    db: sqlite3.Connection, turn: Turn, supersedes: Supersedes, now: datetime, debounce: timedelta
) -> NextWork:
    """End a paused turn in favour of a waiting input, if the policy says so and the request had been seen before."""
    rows = inputs.next_input(db, turn.conversation, debounce)
    if not rows:
        return NextWork(None)
    shown = db.execute(LAST_SHOWN, {"turn": turn.id}).fetchone()[0]
    envelope = decode_envelope(rows[0]["envelope"])
    if rows[0]["accepted_at"] <= shown or not supersedes(WaitingInput(envelope=envelope, asker=turn.asker)):
        return NextWork(None, waits_for=turn)
    complete_at = inputs.complete_at(rows, debounce)
    if complete_at is not None and complete_at > now:
        return NextWork(None, look_again=complete_at)
    tools = _close_open_calls(
        db, turn, ResultCode.NOT_RUN, "This call did not run: a new message came before anybody decided.", now
    )
    approvals.cancel_open(db, turn.id, Withdrawal.SUPERSEDED, now)
    ending = Ending(outcome=Outcome.SUPERSEDED, reason=StopReason.SUPERSEDED, reply="")
    _finish(db, turn, ending, None, (), turn.steps, now)
    preface = f"(The earlier request, {', '.join(tools)}, did not run.)"
    begun = _begin(db, turn.conversation, now, debounce, preface)
    return NextWork(begun.turn, superseded=turn)


def _close_open_calls(db: sqlite3.Connection, turn: Turn, code: ResultCode, text: str, now: datetime) -> list[str]:
    """Give every open call of a turn the same result; returns the names of their tools."""
    rows = db.execute(
        "SELECT id, name FROM tool_calls WHERE turn_id = ? AND state <> 'finished' ORDER BY position", (turn.id,)
    ).fetchall()
    finish_calls(db, [(CallId(row["id"]), ToolResult(code=code, text=text)) for row in rows], stamp(now))
    return [f"`{row['name']}`" for row in rows]


def _count(db: sqlite3.Connection, turn: Turn, attempts: Sequence[AttemptUsage], steps: int, now: datetime) -> None:
    total = sum((a.usage for a in attempts if a.usage), start=Usage())
    failed = sum((a.usage for a in attempts if a.usage and a.failed), start=Usage())
    fields = {
        "turn": turn.id,
        "steps": steps,
        "input": total.input_tokens,
        "output": total.output_tokens,
        "cache_read": total.cache_read_tokens,
        "cache_write": total.cache_write_tokens,
        "failed_input": failed.input_tokens,
        "failed_output": failed.output_tokens,
    }
    db.execute(COUNT_STEP, fields)
    usage.record(db, turn.payer, attempts, now)


def _finish(
    db: sqlite3.Connection,
    turn: Turn,
    ending: Ending,
    message: AssistantMessage | None,
    attempts: Sequence[AttemptUsage],
    steps: int,
    now: datetime,
) -> ReplyId | None:
    at = stamp(now)
    fields = {
        "turn": turn.id,
        "outcome": ending.outcome,
        "reason": ending.reason,
        "error": ending.error_code,
        "now": at,
    }
    if db.execute(FINISH_TURN, fields).rowcount == 0:
        return None
    _count(db, turn, attempts, steps, now)
    if message is not None:
        insert_answer(db, turn, message, at)
    finish_calls(db, ending.results, at)
    db.execute(INBOX_DONE, {"turn": turn.id})
    if not ending.reply:
        return outbox.drop_open_reply(db, turn.id)
    return outbox.queue_turn_reply(db, turn.id, turn.conversation, turn.place, turn.reply_to, ending.reply, now)
