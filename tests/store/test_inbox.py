"""What comes in is stored once, from whom may talk, as long as there is room."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from tests.store.rows import ANN, BOB, NOW, PLACE, envelope
from zerobot.core.admission import Admission
from zerobot.core.envelope import Acceptance, EnvelopeEdit
from zerobot.core.places import Identity, Place
from zerobot.store.database import Database, open_database
from zerobot.store.envelope_json import decode_envelope
from zerobot.store.inbox import IDS_KEPT, Inbox
from zerobot.testing.clock import ManualClock

EVERYONE = Admission(everyone=True)
ONLY_ANN = Admission(identities=frozenset({ANN}))


@pytest.fixture
def inbox(database: Database, clock: ManualClock) -> Inbox:
    return Inbox(database, clock)


async def stored(database: Database) -> list[tuple[str, str, str]]:
    """Event, state and text of each row."""
    rows = await database.read(lambda db: db.execute("SELECT * FROM inbox ORDER BY id").fetchall())
    return [
        (row["event_id"], row["state"], decode_envelope(row["envelope"]).text if row["envelope"] else "")
        for row in rows
    ]


async def test_an_accepted_envelope_is_on_disk(inbox: Inbox, database: Database) -> None:
    """Accepted means stored, in the conversation of its key, waiting for a turn."""
    accepted = await inbox.accept(envelope(), EVERYONE, is_command=False)
    assert accepted.outcome is Acceptance.ACCEPTED
    assert accepted.inbox_id is not None
    assert accepted.conversation is not None
    assert await inbox.waiting_count(accepted.conversation) == 1
    assert await stored(database) == [("e1", "waiting", "hello")]


async def test_the_same_event_is_accepted_once(inbox: Inbox, database: Database) -> None:
    """However often a platform repeats an event, also at once, it is stored once; another channel's is another."""
    async with asyncio.TaskGroup() as group:
        tries = [group.create_task(inbox.accept(envelope(), EVERYONE, is_command=False)) for _ in range(5)]
    outcomes = [each.result().outcome for each in tries]
    assert outcomes.count(Acceptance.ACCEPTED) == 1
    assert outcomes.count(Acceptance.DUPLICATE) == 4
    elsewhere = await inbox.accept(envelope(place=Place("raven", "42")), EVERYONE, is_command=False)
    assert elsewhere.outcome is Acceptance.ACCEPTED
    assert len(await stored(database)) == 2


async def test_an_event_is_known_after_a_restart(path: Path, clock: ManualClock) -> None:
    """Deduplication does not live in memory."""
    outcomes = []
    for _ in range(3):
        async with open_database(path) as database:
            outcomes.append((await Inbox(database, clock).accept(envelope(), EVERYONE, is_command=False)).outcome)
    assert outcomes == [Acceptance.ACCEPTED, Acceptance.DUPLICATE, Acceptance.DUPLICATE]


async def test_a_stranger_leaves_nothing_behind(inbox: Inbox, database: Database) -> None:
    """A refused message is not stored, and makes no conversation."""
    refused = await inbox.accept(envelope(sender=BOB, direct=False), ONLY_ANN, is_command=False)
    assert refused.outcome is Acceptance.NOT_ALLOWED
    assert refused.conversation is None
    assert await stored(database) == []
    assert await database.read(lambda db: db.execute("SELECT count(*) FROM conversations").fetchone()[0]) == 0


async def test_a_full_queue_refuses_visibly_and_remembers_the_event(inbox: Inbox, database: Database) -> None:
    """One too many is refused without its text; its repeat is a duplicate; commands and other chats find room."""
    for number in range(2):
        await inbox.accept(envelope(f"e{number}"), EVERYONE, is_command=False, queue_limit=2)
    full = await inbox.accept(envelope("e2", text="too much"), EVERYONE, is_command=False, queue_limit=2)
    assert full.outcome is Acceptance.FULL
    assert full.conversation is not None
    again = await inbox.accept(envelope("e2"), EVERYONE, is_command=False, queue_limit=2)
    assert again.outcome is Acceptance.DUPLICATE
    command = await inbox.accept(envelope("e3", text="/stop"), EVERYONE, is_command=True, queue_limit=2)
    assert command.outcome is Acceptance.ACCEPTED
    other = await inbox.accept(envelope("e4", place=Place("pigeon", "43")), EVERYONE, is_command=False, queue_limit=2)
    assert other.outcome is Acceptance.ACCEPTED
    assert await inbox.waiting_count(full.conversation) == 2
    assert (await stored(database))[2] == ("e2", "cancelled", "")


async def test_commands_wait_until_they_are_done(inbox: Inbox) -> None:
    """A command that a crash interrupted is found again, in order; a done one is not."""
    for event in ("e1", "e2"):
        await inbox.accept(envelope(event, text=f"/new {event}"), EVERYONE, is_command=True)
    first, second = await inbox.commands_waiting()
    assert [first.envelope.text, second.envelope.text] == ["/new e1", "/new e2"]
    await inbox.command_done(first.id)
    assert [each.id for each in await inbox.commands_waiting()] == [second.id]
    assert await inbox.waiting_count(first.conversation) == 0


async def test_a_command_is_answered_in_the_commit_that_ends_it(inbox: Inbox, database: Database) -> None:
    """With its answer queued the command is done, so a second try has nothing to say."""
    await inbox.accept(envelope("e1", text="/whoami"), EVERYONE, is_command=True)
    (command,) = await inbox.commands_waiting()
    assert await inbox.answer_command(command, "You are Ann.") is not None
    assert await inbox.answer_command(command, "You are Ann.") is None
    assert await inbox.commands_waiting() == []
    replies = await database.read(lambda db: db.execute("SELECT state, text FROM replies").fetchall())
    assert [tuple(row) for row in replies] == [("queued", "You are Ann.")]


def edit(text: str | None, *, sender: Identity | None = ANN, message: str = "m1") -> EnvelopeEdit:
    return EnvelopeEdit(place=PLACE, sender=sender, message_id=message, text=text)


async def test_a_waiting_message_is_changed_by_its_author(inbox: Inbox, database: Database) -> None:
    """The turn that takes it sees the new text."""
    await inbox.accept(envelope(), EVERYONE, is_command=False)
    assert await inbox.edit(edit("hello again"), EVERYONE)
    assert await stored(database) == [("e1", "waiting", "hello again")]


async def test_a_deleted_message_is_cancelled(inbox: Inbox, database: Database) -> None:
    """Its text is gone from the store too, and its event stays known."""
    await inbox.accept(envelope(), EVERYONE, is_command=False)
    assert await inbox.edit(edit(None), EVERYONE)
    assert await stored(database) == [("e1", "cancelled", "")]
    assert not await inbox.edit(edit("back"), EVERYONE)


async def test_a_deletion_by_nobody_in_particular_counts_and_a_change_does_not(
    inbox: Inbox, database: Database
) -> None:
    """Some platforms say only which message is gone; what a message says, its author alone decides."""
    await inbox.accept(envelope(), EVERYONE, is_command=False)
    assert not await inbox.edit(edit("x", sender=None), EVERYONE)
    assert await inbox.edit(edit(None, sender=None), EVERYONE)
    assert await stored(database) == [("e1", "cancelled", "")]


async def test_nobody_else_changes_a_message(inbox: Inbox, database: Database) -> None:
    """Another sender, another message and another chat find nothing to change."""
    await inbox.accept(envelope(), EVERYONE, is_command=False)
    elsewhere = EnvelopeEdit(place=Place("pigeon", "43"), sender=ANN, message_id="m1", text="x")
    for each in (edit("x", sender=BOB), edit("x", message="m2"), edit(None, sender=BOB), elsewhere):
        assert not await inbox.edit(each, EVERYONE)
    assert await stored(database) == [("e1", "waiting", "hello")]


async def test_a_message_without_an_id_is_never_changed(inbox: Inbox) -> None:
    """No id matches no id, not every message that has none."""
    await inbox.accept(envelope(message=""), EVERYONE, is_command=False)
    assert not await inbox.edit(edit("x", message=""), EVERYONE)


async def test_a_message_that_a_turn_has_taken_stays(inbox: Inbox, database: Database) -> None:
    """An edit of an answered message does nothing."""
    await inbox.accept(envelope(), EVERYONE, is_command=False)
    await database.write(lambda db: db.execute("UPDATE inbox SET state = 'taken'"))
    assert not await inbox.edit(edit("x"), EVERYONE)
    assert await stored(database) == [("e1", "taken", "hello")]


async def test_who_wrote_lately_is_known(inbox: Inbox, clock: ManualClock) -> None:
    """By person, place and time."""
    await inbox.accept(envelope(), EVERYONE, is_command=False)
    assert await inbox.wrote_lately(ANN, PLACE, clock.now())
    assert not await inbox.wrote_lately(ANN, PLACE, clock.now() + timedelta(seconds=1))
    assert not await inbox.wrote_lately(BOB, PLACE, clock.now())
    assert not await inbox.wrote_lately(ANN, Place("pigeon", "42", "topic"), clock.now())


async def test_old_texts_go_first_and_old_ids_later(inbox: Inbox, database: Database, clock: ManualClock) -> None:
    """What is worked off loses its text, much later its row; what waits keeps both however old it is."""
    await inbox.accept(envelope("done"), EVERYONE, is_command=False)
    await database.write(lambda db: db.execute("UPDATE inbox SET state = 'done'"))
    await inbox.accept(envelope("open"), EVERYONE, is_command=False)
    assert await inbox.forget_old(NOW) == 0
    assert (await stored(database))[0] == ("done", "done", "hello")
    clock.jump(1)
    assert await inbox.forget_old(clock.now()) == 0
    assert await stored(database) == [("done", "done", ""), ("open", "waiting", "hello")]
    again = await inbox.accept(envelope("done"), EVERYONE, is_command=False)
    assert again.outcome is Acceptance.DUPLICATE
    assert await inbox.forget_old(clock.now() + IDS_KEPT) == 1
    assert await stored(database) == [("open", "waiting", "hello")]
