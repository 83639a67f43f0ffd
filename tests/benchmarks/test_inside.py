"""What a long history must not cost, counted in the database's own steps and in tasks: no clock is asked."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from benchmarks.engine import ENGINE
from benchmarks.inside import Inside, daemon
from benchmarks.measures import Effort
from zerobot.core.envelope import Button, ButtonPress
from zerobot.core.places import Identity
from zerobot.store.approvals import Approvals
from zerobot.store.database import Database
from zerobot.testing.model import ScriptedModel, calls, says

OLD = 400
"""How many times as much was said before."""
# A turn that has ended, as often again as `OLD` says, with all that belongs to it.
COPIES = f"""
    CREATE TEMP TABLE numbers AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {OLD})
        SELECT i FROM n;
    INSERT INTO turns (id, conversation_id, epoch, origin, asker, asker_name, reply_to, state, started_at, outcome)
        SELECT 'copy' || i, conversation_id, epoch, origin, asker, asker_name, reply_to, state, started_at, outcome
        FROM turns, numbers WHERE turns.rowid = 1;
    INSERT INTO messages (conversation_id, turn_id, role, text, created_at)
        SELECT conversation_id, 'copy' || i, role, text, created_at FROM messages, numbers
        WHERE turn_id = (SELECT id FROM turns WHERE rowid = 1) ORDER BY i, id;
    INSERT INTO inbox (channel, event_id, conversation_id, message_id, sender, state, turn_id, envelope, accepted_at)
        SELECT channel, 'copy' || i, conversation_id, 'copy' || i, sender, state, 'copy' || i, envelope, accepted_at
        FROM inbox, numbers WHERE inbox.id = 1;
    INSERT INTO model_calls (turn_id, conversation_id, channel, asker, model, purpose, failed, reported, input_tokens,
            output_tokens, cache_read_tokens, cache_write_tokens, at)
        SELECT 'copy' || i, conversation_id, channel, asker, model, purpose, failed, reported, input_tokens,
            output_tokens, cache_read_tokens, cache_write_tokens, at FROM model_calls, numbers WHERE model_calls.id = 1;
    INSERT INTO replies (turn_id, conversation_id, channel, chat, state, created_at, finished_at)
        SELECT 'copy' || i, conversation_id, channel, chat, state, created_at, finished_at FROM replies, numbers
        WHERE replies.id = 1;
    INSERT INTO tool_calls (id, message_id, conversation_id, turn_id, position, wire_id, name, arguments, raw_arguments,
            state, code, result)
        SELECT 'copy' || i, (SELECT max(id) FROM messages WHERE turn_id = 'copy' || i), conversation_id, 'copy' || i, 0,
            'copy' || i, name, arguments, raw_arguments, 'finished', 'DENIED', 'no' FROM tool_calls, numbers
        WHERE tool_calls.rowid = 1;
    INSERT INTO approvals (id, code, conversation_id, turn_id, call_id, tool, arguments, digest, rule, why, description,
            asker, asker_name, channel, chat, sandbox, grantable, covers, state, requested_at, shown_at, expires_at)
        SELECT 'copy' || i, 'copy' || i, conversation_id, 'copy' || i, 'copy' || i, tool, arguments, digest, rule, why,
            description, asker, asker_name, channel, chat, sandbox, grantable, covers, 'denied', requested_at, shown_at,
            expires_at FROM approvals, numbers WHERE approvals.rowid = 1;
    INSERT INTO approval_prompts (approval_id, channel, chat, state, settled)
        SELECT 'copy' || i, channel, chat, 'sent', 1 FROM approval_prompts, numbers WHERE approval_prompts.id = 1;
"""


class Steps:
    """Counts what the database does, in instructions of its virtual machine."""

    def __init__(self) -> None:
        self.count = 0

    def step(self) -> int:
        """One more; 0: go on."""
        self.count += 1
        return 0

    def watch(self, db: sqlite3.Connection) -> None:
        """Count what this connection does from now on."""
        db.set_progress_handler(self.step, 1)


async def watched(database: Database) -> Steps:
    """Count what all connections do."""
    steps = Steps()
    await asyncio.gather(database.write(steps.watch), database.read(steps.watch), database.read(steps.watch))
    return steps


async def work(inside: Inside, steps: Steps) -> int:
    """The most steps that one of some turns takes, with what a start and a look at the prompts take.

    They are enough turns for the window to have moved.
    """
    parts = await inside.parts
    approvals = Approvals(parts.foundation.database, parts.foundation.clock)
    most = 0
    for _ in range(6):
        before = steps.count
        await inside.say("And what do you say to this?")
        await inside.quiet()
        await parts.books.turns.runnable()
        await parts.books.inbox.commands_waiting()
        await approvals.unshown()
        await approvals.unsettled()
        most = max(most, steps.count - before)
    return most


async def denies(inside: Inside) -> None:
    """Let the operator deny what is asked, and the turn end."""
    await inside.channel.until(lambda: bool(inside.channel.of("ask")))
    prompt = inside.channel.of("ask")[0].prompt
    assert prompt is not None
    boss = Identity("inside", "boss")
    async with inside.ends("turn.finished"):
        await inside.channel.press(
            ButtonPress(channel="inside", presser=boss, approval=prompt.approval, button=Button.DENY)
        )


async def test_a_long_history_costs_a_turn_nothing(tmp_path: Path) -> None:
    """When so much more was said, done, decided and paid for before, a turn takes the database no more steps.

    Seen to fail with each of these looked up in another way: the inbox, the prices, the prompts, the open turns.
    """
    model = ScriptedModel()
    model.answers(calls("shell", command="rm -rf build"))
    model.improvise = lambda _: says("Well.", usage=(10, 2))
    async with daemon(tmp_path, model, history=10) as inside:
        database = (await inside.parts).foundation.database
        await inside.say("Please clean up.", ends="turn.paused")
        await denies(inside)
        steps = await watched(database)
        short = await work(inside, steps)
        await database.write(lambda db: [db.execute(each) for each in COPIES.split(";")])
        await work(inside, steps)
        long = await work(inside, steps)
    assert long < 1.1 * short


@pytest.mark.slow
def test_the_engine_is_measured() -> None:
    """What is told of the engine's steps is a cost: more than nothing, less than a second."""
    rows = ENGINE["steps"](Effort(quick=True))
    assert all(0 < row.zerobot < 1000 for row in rows)


async def test_a_paused_turn_holds_no_task(tmp_path: Path) -> None:
    """Turns that wait for an operator are rows: no task is left of them, and those that a new process finds get none.

    What waits for the next of them to expire is one for all.
    """
    model = ScriptedModel()
    model.improvise = lambda _: calls("shell", command="rm -rf build")
    async with daemon(tmp_path, model) as inside:
        await inside.say("Please clean up.", ends="turn.paused")
        await inside.settle()
        tasks = inside.tasks
        await inside.say("Please clean up.", chats=30, first_chat=1, ends="turn.paused")
        await inside.quiet()
        assert len(asyncio.all_tasks()) == tasks
    async with daemon(tmp_path, model) as inside:
        await inside.settle()
        assert inside.tasks == tasks
        assert inside.logged("turn.started") == 0
