"""Conversations by key; resets; exports; and a chat that moves to a new id."""

import sqlite3
from datetime import timedelta

import pytest

from tests.store.rows import ANN, NOW, PLACE, a_conversation, a_turn, an_approval, envelope
from zerobot.core.admission import Admission
from zerobot.core.ids import ConversationId
from zerobot.core.places import ConversationKey, Place
from zerobot.store.approvals import Approvals
from zerobot.store.conversations import Conversations, ensure
from zerobot.store.database import Database
from zerobot.store.envelope_json import decode_envelope
from zerobot.store.inbox import Inbox
from zerobot.store.moving import move_chat
from zerobot.store.outbox import Outbox
from zerobot.testing.clock import ManualClock

NEW = Place("pigeon", "-10042")
EVERYONE = Admission(everyone=True)


@pytest.fixture
def conversations(database: Database) -> Conversations:
    return Conversations(database)


async def said_in(database: Database, conversation: ConversationId) -> list[str]:
    """What the model's view has: the messages of the epoch from the window on."""
    sql = """
        SELECT m.text FROM messages m JOIN turns t ON t.id = m.turn_id JOIN conversations c ON c.id = m.conversation_id
        WHERE c.id = ? AND m.id >= c.window_seq AND t.epoch = c.epoch ORDER BY m.id
    """
    return await database.read(lambda db: [row["text"] for row in db.execute(sql, (conversation,))])


async def finish(database: Database, turn: str) -> None:
    await database.write(lambda db: db.execute("UPDATE turns SET state = 'finished' WHERE id = ?", (turn,)))


async def test_no_two_keys_are_one_conversation(database: Database, conversations: Conversations) -> None:
    """Each part of a key counts, and no separator inside one confuses them."""
    keys = [
        ConversationKey(Place("pigeon", "42")),
        ConversationKey(Place("pigeon", "42", "7")),
        ConversationKey(Place("pigeon", "42"), "pigeon:7"),
        ConversationKey(Place("pigeon", "42/7")),
        ConversationKey(Place("pigeon:42", "7")),
    ]

    def make(db: sqlite3.Connection) -> list[ConversationId]:
        return [ensure(db, key, direct=True, now=NOW) for key in keys]

    ids = await database.write(make)
    assert len(set(ids)) == len(keys)
    assert await database.write(make) == ids
    for key, each in zip(keys, ids, strict=True):
        found = await conversations.find(key)
        assert found is not None
        assert (found.id, found.key) == (each, key)
        assert await conversations.get(each) == found
    assert [found.id for found in await conversations.at(Place("pigeon", "42"))] == [ids[0], ids[2]]


async def test_what_is_not_there_is_none(conversations: Conversations) -> None:
    """Unknown ids change nothing and say so."""
    assert await conversations.get(ConversationId(5)) is None
    assert await conversations.find(ConversationKey(PLACE)) is None
    assert await conversations.reset(ConversationId(5)) is None
    assert not await conversations.set_model(ConversationId(5), "main/x")


async def test_a_reset_hides_what_was_said(database: Database, conversations: Conversations) -> None:
    """After it the model's view is empty, also of what a running turn adds; the export still has it all."""
    await a_turn(database, "t1", said="old")
    conversation = await a_conversation(database)
    assert await said_in(database, conversation) == ["old"]
    (old,) = await conversations.export(conversation)
    assert await conversations.reset(conversation) == 0
    found = await conversations.get(conversation)
    assert found is not None
    assert (found.epoch, found.window_seq) == (1, int(str(old["seq"])) + 1)
    late = (
        "INSERT INTO messages (conversation_id, turn_id, role, text, created_at) VALUES (?, 't1', 'assistant', 'x', '')"
    )
    await database.write(lambda db: db.execute(late, (conversation,)))
    assert await said_in(database, conversation) == []
    await finish(database, "t1")
    await a_turn(database, "t2", said="new")
    assert await said_in(database, conversation) == ["new"]
    assert [message["text"] for message in await conversations.export(conversation)] == ["old", "x", "new"]


async def test_a_conversation_has_a_model_of_its_own(database: Database, conversations: Conversations) -> None:
    """Chosen, and given back to the agent."""
    conversation = await a_conversation(database)
    for model in ("main/big", ""):
        assert await conversations.set_model(conversation, model)
        found = await conversations.get(conversation)
        assert found is not None
        assert found.model == model


async def test_the_list_begins_with_the_last_active(
    database: Database, conversations: Conversations, clock: ManualClock
) -> None:
    """With counts, what waits, and what the open turn does."""
    quiet = await a_conversation(database, NEW)
    await a_turn(database, "t1", state="paused")
    clock.jump(60)
    await Inbox(database, clock).accept(envelope(), EVERYONE, is_command=False)
    first, second = await conversations.list()
    assert first.conversation.key == ConversationKey(PLACE)
    assert (first.messages, first.waiting, first.state) == (1, 1, "paused")
    assert first.last_activity == NOW + timedelta(seconds=60)
    assert (second.conversation.id, second.state, second.last_activity) == (quiet, "idle", NOW)


async def test_an_export_has_each_call_with_its_result(database: Database, conversations: Conversations) -> None:
    """Plain values: a message and its calls."""
    await a_turn(database, "t1", said="I run it")
    await database.write(lambda db: db.execute("UPDATE tool_calls SET code = 'OK', result = 'done'"))
    (message,) = await conversations.export(await a_conversation(database))
    assert (message["role"], message["text"], message["turn"]) == ("assistant", "I run it", "t1")
    (call,) = message["calls"] if isinstance(message["calls"], list) else []
    assert (call["name"], call["arguments"], call["code"], call["result"]) == ("shell", {}, "OK", "done")


async def test_a_moved_chat_takes_everything_along(
    database: Database, conversations: Conversations, clock: ManualClock
) -> None:
    """History, waiting inputs, replies, approvals and prompts go on under the new id; other chats stay."""
    turn = await a_turn(database, "t1", state="paused")
    conversation = await a_conversation(database)
    await a_conversation(database, Place("raven", "42"))
    approval = await an_approval(database, turn)
    approvals, outbox, inbox = Approvals(database, clock), Outbox(database, clock), Inbox(database, clock)
    await approvals.add_prompt(approval.id, PLACE)
    reply = await outbox.notice(PLACE, "hello")
    elsewhere = await outbox.notice(Place("raven", "42"), "hello")
    await inbox.accept(envelope(), EVERYONE, is_command=True)
    for _ in range(2):
        await move_chat(database, "pigeon", "42", NEW.chat)
    found = await conversations.get(conversation)
    assert found is not None
    assert found.key == ConversationKey(NEW)
    moved = await approvals.get(approval.id)
    assert moved is not None
    assert moved.place == NEW
    assert [prompt.place for prompt in await approvals.prompts_of(approval.id)] == [NEW]
    assert (await outbox.get(reply)).place == NEW
    assert (await outbox.get(elsewhere)).place == Place("raven", "42")
    (command,) = await inbox.commands_waiting()
    assert command.envelope.place == NEW
    assert await conversations.find(ConversationKey(Place("raven", "42"))) is not None


async def test_every_topic_of_a_chat_moves(database: Database) -> None:
    """The chat's threads keep their names."""
    ids = [await a_conversation(database, Place("pigeon", "42", thread)) for thread in (None, "7", "8")]
    assert await move_chat(database, "pigeon", "42", NEW.chat) == ids
    assert await a_conversation(database, Place("pigeon", NEW.chat, "8")) == ids[2]


async def test_two_conversations_of_one_chat_become_one(database: Database, conversations: Conversations) -> None:
    """A message that came from the new id first is in the old history then, and what was reset stays out of it."""
    await a_turn(database, "t0", said="forgotten")
    old = await a_conversation(database)
    await finish(database, "t0")
    await conversations.reset(old)
    await a_turn(database, "t1", said="old", wire_id="w1")
    await finish(database, "t1")
    await a_turn(database, "t2", place=NEW, said="new", wire_id="w1")
    await finish(database, "t2")
    await Inbox(database, ManualClock()).accept(envelope(place=NEW), EVERYONE, is_command=False)
    assert await move_chat(database, "pigeon", "42", NEW.chat) == [old]
    assert await said_in(database, old) == ["old", "new"]
    assert [summary.waiting for summary in await conversations.list()] == [1]
    sql = "SELECT count(DISTINCT wire_id) FROM tool_calls WHERE conversation_id = ?"
    assert await database.read(lambda db: db.execute(sql, (old,)).fetchone()[0]) == 3


async def test_what_was_reset_in_the_new_chat_stays_hidden(database: Database, conversations: Conversations) -> None:
    """Joining two histories brings nothing back."""
    await a_turn(database, "t1", said="old")
    old = await a_conversation(database)
    await finish(database, "t1")
    await a_turn(database, "t2", place=NEW, said="forgotten")
    await finish(database, "t2")
    await conversations.reset(await a_conversation(database, NEW))
    await a_turn(database, "t3", place=NEW, said="new")
    await finish(database, "t3")
    await move_chat(database, "pigeon", "42", NEW.chat)
    assert await said_in(database, old) == ["old", "new"]


async def test_a_running_turn_keeps_its_conversation(database: Database) -> None:
    """Of two conversations the one with an open turn stays, so that nothing under way loses its ground."""
    await a_turn(database, "t1", said="old")
    await finish(database, "t1")
    await a_turn(database, "t2", place=NEW, said="new")
    running = await a_conversation(database, NEW)
    assert await move_chat(database, "pigeon", "42", NEW.chat) == [running]
    assert await said_in(database, running) == ["old", "new"]


async def test_two_running_turns_stay_apart(database: Database, clock: ManualClock) -> None:
    """Neither is disturbed; what is said goes to the new id; once one has ended, asking again joins them."""
    await a_turn(database, "t1", said="old")
    old = await a_conversation(database)
    await a_turn(database, "t2", place=NEW, said="new")
    new = await a_conversation(database, NEW)
    reply = await Outbox(database, clock).notice(PLACE, "hello")
    assert await move_chat(database, "pigeon", "42", NEW.chat) == []
    assert (await Outbox(database, clock).get(reply)).place == NEW
    assert await said_in(database, old) == ["old"]
    await finish(database, "t1")
    assert await move_chat(database, "pigeon", "42", NEW.chat) == [new]
    assert await said_in(database, new) == ["old", "new"]


async def test_a_waiting_input_is_readdressed(database: Database, clock: ManualClock) -> None:
    """The envelope that a turn will read names the new chat, its sender unchanged."""
    await Inbox(database, clock).accept(envelope(), EVERYONE, is_command=False)
    await move_chat(database, "pigeon", "42", NEW.chat)
    text = await database.read(lambda db: str(db.execute("SELECT envelope FROM inbox").fetchone()[0]))
    assert decode_envelope(text).place == NEW
    assert decode_envelope(text).sender == ANN
