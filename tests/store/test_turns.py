"""The journal of turns: what a conversation works on, and that each step is stored once (spec 0.2, A-model, K16)."""

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.store.rows import ANN, PLACE, envelope
from zerobot.core.admission import Admission
from zerobot.core.approvals import Approval, ApprovalState, Withdrawal
from zerobot.core.envelope import Attachment, InboundEnvelope, Quote
from zerobot.core.events import Outcome, StopReason
from zerobot.core.ids import ApprovalId, CallId, ConversationId, ReplyId, new_code
from zerobot.core.messages import AssistantMessage, RecordedCall, ResultCode, ToolResult, UserMessage
from zerobot.core.places import Identity, Place
from zerobot.core.usage import Usage
from zerobot.store.approvals import Approvals
from zerobot.store.conversations import Conversations
from zerobot.store.database import Database, open_database
from zerobot.store.inbox import Inbox
from zerobot.store.inputs import ALBUM_QUIET
from zerobot.store.outbox import Outbox
from zerobot.store.turn_rows import AttemptUsage, Ending, PauseRequest, Turn
from zerobot.store.turns import NO_DEBOUNCE, Turns
from zerobot.testing.clock import ManualClock

DONE = Ending(outcome=Outcome.REPLIED, reason=StopReason.DONE, reply="ok")


class Journal:
    """A conversation, and everything of the store that has a part in its turns."""

    def __init__(self, database: Database, clock: ManualClock) -> None:
        self.database = database
        self.clock = clock
        self.turns = Turns(database, clock)
        self.approvals = Approvals(database, clock)
        self.outbox = Outbox(database, clock)
        self.inbox = Inbox(database, clock)
        self.conversation = ConversationId(1)

    async def accept(self, *envelopes: InboundEnvelope) -> None:
        """Put inputs into the inbox, a second apart."""
        for each in envelopes:
            self.clock.jump(1)
            accepted = await self.inbox.accept(each, Admission(everyone=True), is_command=False)
            assert accepted.conversation is not None
            self.conversation = accepted.conversation

    async def next(self, *, supersedes: bool = False) -> Turn | None:
        """The next work."""
        return (await self.turns.next(self.conversation, lambda _: supersedes)).turn

    async def begins(self) -> Turn:
        """A turn on a first input."""
        await self.accept(envelope())
        turn = await self.next()
        assert turn is not None
        return turn

    async def records(self, turn: Turn, *wire_ids: str) -> list[RecordedCall]:
        """A step with calls."""
        calls = tuple(
            RecordedCall(
                id=CallId(f"ours-{turn.id}-{position}-{wire_id}"),
                wire_id=wire_id,
                name="shell",
                arguments={},
                raw_arguments="",
                position=position,
            )
            for position, wire_id in enumerate(wire_ids)
        )
        message = AssistantMessage(seq=0, turn=turn.id, text="look", calls=calls)
        stored = await self.turns.record_step(turn, message, (), 1)
        assert stored is not None
        return list(stored.calls)

    def request(self, turn: Turn, call: RecordedCall) -> PauseRequest:
        """A request for approval of a call."""
        approval = Approval(
            id=ApprovalId(f"a-{call.id}"),
            code=new_code(),
            conversation=turn.conversation,
            turn=turn.id,
            call=call.id,
            tool=call.name,
            arguments={},
            digest="d",
            rule="risk",
            why="why",
            description="what",
            asker=ANN,
            asker_name="Ann",
            place=PLACE,
            requested_at=self.clock.now(),
            expires_at=self.clock.now() + timedelta(hours=1),
        )
        return PauseRequest(approval=approval, places=(PLACE,))

    async def pauses(self) -> tuple[Turn, RecordedCall]:
        """A turn that waits for an operator who has seen the request."""
        turn = await self.begins()
        (call,) = await self.records(turn, "c1")
        await self.turns.pause(turn, [self.request(turn, call)], "look", 2)
        for prompt in await self.approvals.unshown():
            await self.approvals.prompt_sent(prompt.id, "p1")
        return turn, call

    async def rows(self, sql: str) -> list[tuple[object, ...]]:
        """What lies in the database."""
        return await self.database.read(lambda db: [tuple(row) for row in db.execute(sql)])


@pytest.fixture
def journal(database: Database, clock: ManualClock) -> Journal:
    return Journal(database, clock)


@pytest.fixture
async def second(path: Path, journal: Journal) -> AsyncIterator[Journal]:
    """Another process on the same file."""
    async with open_database(path) as database:
        yield Journal(database, journal.clock)


async def test_the_oldest_input_begins_a_turn(journal: Journal) -> None:
    """A80: inputs are taken in the order of their arrival, one open turn at a time."""
    # Seen to fail with: a second turn beside the open one (A80).
    await journal.accept(envelope("e1", text="one", message="m1"), envelope("e2", text="two", message="m2"))
    first = await journal.next()
    assert first is not None
    assert (first.reply_to, first.asker, first.resumed) == ("m1", ANN, False)
    again = await journal.next()
    assert again is not None
    assert (again.id, again.resumed) == (first.id, True)
    await journal.turns.finish(first, DONE, None, (), 1)
    after = await journal.next()
    assert after is not None
    assert after.reply_to == "m2"
    assert await journal.rows("SELECT state FROM inbox ORDER BY id") == [("done",), ("taken",)]


async def test_nothing_waits(journal: Journal) -> None:
    """A conversation without work has none."""
    turn = await journal.begins()
    await journal.turns.finish(turn, DONE, None, (), 1)
    assert await journal.next() is None
    assert await journal.turns.runnable() == []
    assert await journal.turns.open_turn(journal.conversation) is None


async def test_an_album_is_one_input_once_it_is_quiet(journal: Journal) -> None:
    """Events of one album become one turn, a second after the last of them; another input in between stays apart."""
    pictures = [replace(envelope(f"e{n}", text=f"p{n}", message=f"m{n}"), album="al") for n in (1, 2)]
    await journal.accept(pictures[0], envelope("e9", text="other"), pictures[1])
    work = await journal.turns.next(journal.conversation, lambda _: False)
    assert (work.turn, work.look_again) == (None, journal.clock.now() + ALBUM_QUIET)
    journal.clock.jump(1)
    turn = await journal.next()
    assert turn is not None
    (message,) = (await journal.turns.history(turn)).messages
    assert message.text == "p1\np2"
    assert isinstance(message, UserMessage)
    assert [each.text for each in await journal.turns.envelopes(message)] == ["p1", "p2"]


async def test_an_input_keeps_what_it_answers_and_who_speaks(journal: Journal) -> None:
    """B154, B164: the quoted words and their author reach the model; in a group so does the speaker."""
    said = replace(envelope(direct=False, text="send it"), quote=Quote(author="The\nBot", text="draft A\nline 2"))
    await journal.accept(said)
    turn = await journal.next()
    assert turn is not None
    (message,) = (await journal.turns.history(turn)).messages
    assert isinstance(message, UserMessage)
    assert (message.text, message.speaker) == ("[In answer to The Bot:]\n> draft A\n> line 2\n\nsend it", "Ann")


async def test_a_call_starts_once(journal: Journal) -> None:
    """A10: of any number of attempts to start a call one may run it; none may when it has ended."""
    turn = await journal.begins()
    one, two = await journal.records(turn, "c1", "c2")
    assert [await journal.turns.start_call(one.id) for _ in range(2)] == [True, False]
    await journal.turns.finish_calls(turn, [(two.id, ToolResult(code=ResultCode.DENIED, text="no"))])
    assert not await journal.turns.start_call(two.id)


async def test_arguments_change_only_before_the_start(journal: Journal) -> None:
    """A24: what runs is what is on record when it starts."""
    turn = await journal.begins()
    (call,) = await journal.records(turn, "c1")
    await journal.turns.set_arguments(call.id, {"x": 1})
    await journal.turns.start_call(call.id)
    await journal.turns.set_arguments(call.id, {"x": 2})
    assert await journal.rows("SELECT arguments FROM tool_calls") == [('{"x":1}',)]


async def test_ids_on_the_wire_are_unique_in_a_conversation(journal: Journal) -> None:
    """V1: an id that is missing or was used before is replaced by ours; elsewhere it may be used again."""
    turn = await journal.begins()
    calls = await journal.records(turn, "c1", "c1", "")
    assert [call.wire_id for call in calls] == ["c1", calls[1].id, calls[2].id]
    other = Journal(journal.database, journal.clock)
    await other.accept(envelope("e2", place=Place("pigeon", "43")))
    elsewhere = await other.next()
    assert elsewhere is not None
    assert [call.wire_id for call in await other.records(elsewhere, "c1")] == ["c1"]


async def test_usage_is_summed_over_steps_and_ends(journal: Journal) -> None:
    """A50, A52: the totals are the turn's, whoever works on it; each model call is a row of its own."""
    turn = await journal.begins()
    usage = Usage(input_tokens=5, output_tokens=3, cache_read_tokens=2, cache_write_tokens=1)
    worked = AttemptUsage(model="main/test", purpose="step", failed=False, usage=usage)
    failed = replace(worked, failed=True)
    silent = replace(worked, failed=True, usage=None)
    await journal.turns.record_step(turn, None, [failed, worked], 1)
    await journal.turns.suspend(turn, [silent], 2)
    again = await journal.next()
    assert again is not None
    assert (again.usage, again.failed_usage) == (usage + usage, Usage(input_tokens=5, output_tokens=3))
    await journal.turns.finish(again, DONE, None, [worked], 2)
    assert await journal.rows("SELECT input_tokens, steps FROM turns") == [(15, 2)]
    assert await journal.rows("SELECT failed, reported FROM model_calls") == [(1, 1), (0, 1), (1, 0), (0, 1)]


async def test_a_turn_ends_once(journal: Journal) -> None:
    """A40: a second end changes nothing and says nothing."""
    turn = await journal.begins()
    first = await journal.turns.finish(turn, DONE, AssistantMessage(seq=0, turn=turn.id, text="ok"), (), 1)
    second = await journal.turns.finish(turn, replace(DONE, reply="again"), None, (), 2)
    assert (first, second) == (ReplyId(1), None)
    assert [reply.text for reply in await journal.outbox.of_turn(turn.id)] == ["ok"]
    assert await journal.rows("SELECT reason, steps FROM turns") == [("done", 1)]


async def test_an_end_is_all_or_nothing(journal: Journal) -> None:
    """A15: when a part of an end cannot be stored, the turn is as open as before."""
    turn = await journal.begins()
    await journal.database.write(
        lambda db: db.execute("CREATE TRIGGER full BEFORE INSERT ON replies BEGIN SELECT RAISE(ABORT, 'no'); END")
    )
    with pytest.raises(sqlite3.IntegrityError):
        await journal.turns.finish(turn, DONE, AssistantMessage(seq=0, turn=turn.id, text="ok"), (), 1)
    assert await journal.rows("SELECT state FROM turns") == [("running",)]
    assert await journal.rows("SELECT role FROM messages") == [("user",)]


async def test_a_pause_waits_for_every_decision(journal: Journal) -> None:
    """A14: the turn is handed out again only when nothing of it is pending."""
    turn = await journal.begins()
    one, two = await journal.records(turn, "c1", "c2")
    requests = [journal.request(turn, one), journal.request(turn, two)]
    reply = await journal.turns.pause(turn, requests, "look", 2)
    assert reply is not None
    assert await journal.next() is None
    for request in requests:
        assert await journal.next() is None
        await journal.approvals.decide(request.approval.id, ApprovalState.APPROVED, ANN, "Ann", "", journal.clock.now())
    resumed = await journal.next()
    assert resumed is not None
    assert (resumed.id, resumed.settled_seq) == (turn.id, 2)


async def test_an_album_ends_a_pause_only_when_it_is_whole(journal: Journal) -> None:
    """A30: a pause is ended together with the begin of the turn that ends it, never before."""
    _, call = await journal.pauses()
    await journal.accept(replace(envelope("e2", text="p1"), album="al"))
    work = await journal.turns.next(journal.conversation, lambda _: True)
    assert (work.turn, work.superseded) == (None, None)
    assert work.look_again is not None
    assert await journal.rows("SELECT state FROM approvals") == [("pending",)]
    journal.clock.jump(1)
    work = await journal.turns.next(journal.conversation, lambda _: True)
    assert work.turn is not None
    assert work.turn.preface == "(The earlier request, `shell`, did not run.)"
    assert work.superseded is not None
    withdrawn = await journal.turns.approvals(work.superseded.id)
    assert [(each.call, each.reason) for each in withdrawn] == [(call.id, "superseded")]


async def test_a_paused_turn_can_be_taken_to_end_it(journal: Journal) -> None:
    """A23: what it asked for is withdrawn; a conversation that is not paused gives nothing."""
    assert await journal.turns.take_paused(journal.conversation, Withdrawal.STOPPED) is None
    turn, _ = await journal.pauses()
    taken = await journal.turns.take_paused(journal.conversation, Withdrawal.STOPPED)
    assert taken is not None
    withdrawn = await journal.turns.approvals(turn.id)
    assert (taken.id, [each.reason for each in withdrawn]) == (turn.id, ["stopped"])
    assert await journal.turns.take_paused(journal.conversation, Withdrawal.STOPPED) is None


async def test_a_crash_is_counted_for_running_turns_only(journal: Journal, second: Journal) -> None:
    """Decision 5: paused and suspended turns were not what was going on; counts start anew when one is set aside."""
    turn = await journal.begins()
    for _ in range(2):
        await second.turns.recover()
    assert await journal.rows("SELECT crashes FROM turns") == [(2,)]
    await second.turns.suspend(turn, (), 0)
    await second.turns.recover()
    assert await journal.rows("SELECT crashes FROM turns") == [(0,)]


async def test_started_calls_of_a_dead_process_are_interrupted(journal: Journal, second: Journal) -> None:
    """T45, A20: started without a result is closed, recorded only stays open, finished stays."""
    turn = await journal.begins()
    one, two, three = await journal.records(turn, "c1", "c2", "c3")
    await journal.turns.start_call(one.id)
    await journal.turns.start_call(two.id)
    await journal.turns.finish_calls(turn, [(two.id, ToolResult(code=ResultCode.OK, text="done"))])
    await second.turns.recover()
    await second.turns.recover()
    assert await journal.rows("SELECT state, code FROM tool_calls ORDER BY position") == [
        ("finished", "INTERRUPTED"),
        ("finished", "OK"),
        ("recorded", None),
    ]
    assert await second.turns.start_call(three.id)


async def test_what_may_have_work(journal: Journal) -> None:
    """After a start every conversation with an open turn or a waiting input is looked at, and no other."""
    turn = await journal.begins()
    other = Journal(journal.database, journal.clock)
    await other.accept(envelope("e2", place=Place("pigeon", "43")))
    assert sorted(await journal.turns.runnable()) == [journal.conversation, other.conversation]
    await journal.turns.finish(turn, DONE, None, (), 1)
    assert await journal.turns.runnable() == [other.conversation]


async def test_what_is_under_way_can_be_asked(journal: Journal) -> None:
    """Who asked and how far it is, for commands that need to know."""
    await journal.pauses()
    opened = await journal.turns.open_turn(journal.conversation)
    assert opened is not None
    assert (opened.state, opened.asker) == ("paused", ANN)


async def test_a_result_from_outside_marks_its_turn(journal: Journal) -> None:
    """Design 5: once a turn has read what somebody else wrote, it is known of the turn, also after a restart."""
    turn = await journal.begins()
    (call,) = await journal.records(turn, "c1")
    assert not turn.outside_content
    result = ToolResult(code=ResultCode.OK, text="a web page")
    await journal.turns.finish_calls(turn, [(call.id, result)], outside_content=True)
    again = await journal.next()
    assert again is not None
    assert again.outside_content


async def test_starting_afresh_leaves_alone_what_came_after_the_wish(journal: Journal) -> None:
    """A message may follow /new so closely that its turn has begun already: it is neither dropped nor forgotten."""
    old = await journal.begins()
    await journal.turns.finish(old, DONE, None, (), 1)
    await journal.accept(envelope("e2", text="dropped"))
    command = await journal.inbox.accept(envelope("e3", text="/new"), Admission(everyone=True), is_command=True)
    assert command.inbox_id is not None
    await journal.accept(envelope("e4", text="kept"))
    assert await journal.inbox.cancel_next(journal.conversation, before=command.inbox_id)
    assert not await journal.inbox.cancel_next(journal.conversation, before=command.inbox_id)
    later = await journal.next()
    assert later is not None
    assert not await journal.turns.asked_before(journal.conversation, command.inbox_id)
    assert await Conversations(journal.database).reset(journal.conversation, before=command.inbox_id) == 0
    assert [message.text for message in (await journal.turns.history(later)).messages] == ["kept"]


async def test_a_burst_is_one_input_where_that_is_wanted(journal: Journal) -> None:
    """BAR 7d: what one person sends in quick succession is answered as one, with every file, once he is quiet."""
    channels = {PLACE.channel: timedelta(seconds=3)}
    bob = Identity("test", "bob")
    sent = [
        replace(envelope(f"e{n}", text=text, message=f"m{n}"), attachments=(Attachment(kind="file", name=f"{n}.pdf"),))
        for n, text in enumerate(["one", "two"], 1)
    ]
    await journal.accept(*sent, envelope("e3", sender=bob, text="three"))
    last = journal.clock.now() - timedelta(seconds=1)  # the second one
    work = await journal.turns.next(journal.conversation, lambda _: False, channels)
    assert (work.turn, work.look_again) == (None, last + timedelta(seconds=3))
    journal.clock.jump(5)
    work = await journal.turns.next(journal.conversation, lambda _: False, channels)
    assert work.turn is not None
    (message,) = (await journal.turns.history(work.turn)).messages
    assert isinstance(message, UserMessage)
    assert message.text == "one\ntwo"
    assert await journal.turns.envelopes(message) == sent


async def test_inputs_join_a_running_turn_in_order(journal: Journal) -> None:
    """K11: each becomes a message of the turn, in one transaction with its row; the turn answers them all."""
    turn = await journal.begins()
    await journal.accept(envelope("e2", text="two"), envelope("e3", text="three"))
    joined = await journal.turns.join(turn, NO_DEBOUNCE)
    assert [message.text for message in joined] == ["two", "three"]
    assert list((await journal.turns.history(turn)).messages)[1:] == joined
    assert await journal.rows("SELECT state, turn_id FROM inbox") == [("taken", turn.id)] * 3
    assert await journal.turns.join(turn, NO_DEBOUNCE) == []
    await journal.turns.finish(turn, DONE, None, (), 1)
    assert await journal.rows("SELECT DISTINCT state FROM inbox") == [("done",)]


async def test_what_somebody_else_wrote_never_joins_and_is_not_passed(journal: Journal) -> None:
    """A turn has the rights of its asker: another person's input waits for its own, and all that came after it, too."""
    # Seen to fail with: whoever writes joins; whoever else's input is skipped.
    turn = await journal.begins()
    bob = Identity("test", "bob")
    await journal.accept(envelope("e2", text="two"), envelope("e3", sender=bob, text="bob's"), envelope("e4"))
    assert [message.text for message in await journal.turns.join(turn, NO_DEBOUNCE)] == ["two"]
    await journal.turns.finish(turn, DONE, None, (), 1)
    following = await journal.next()
    assert following is not None
    assert following.asker == bob


@pytest.mark.parametrize("state", ["paused", "suspended", "finished"])
async def test_only_a_running_turn_is_joined(journal: Journal, state: str) -> None:
    """A paused turn follows its own rule, and one that another process has ended takes nothing in."""
    turn = await journal.begins()
    await journal.database.write(lambda db: db.execute("UPDATE turns SET state = ?", (state,)))
    await journal.accept(envelope("e2"))
    assert await journal.turns.join(turn, NO_DEBOUNCE) == []


async def test_nothing_joins_while_calls_are_open(journal: Journal) -> None:
    """K11, V2: whoever asks, a message never comes between a call and its result."""
    turn = await journal.begins()
    (call,) = await journal.records(turn, "c1")
    await journal.accept(envelope("e2"))
    assert await journal.turns.join(turn, NO_DEBOUNCE) == []
    await journal.turns.finish_calls(turn, [(call.id, ToolResult(code=ResultCode.OK, text="ok"))])
    assert len(await journal.turns.join(turn, NO_DEBOUNCE)) == 1


async def test_what_came_after_a_command_joins_when_that_is_carried_out(journal: Journal) -> None:
    """A84: a stop that is on its way ends the turn without what was written after it."""
    turn = await journal.begins()
    await journal.accept(envelope("e2", text="before"))
    stop = await journal.inbox.accept(envelope("e3", text="/stop"), Admission(everyone=True), is_command=True)
    await journal.accept(envelope("e4", text="after"))
    assert [message.text for message in await journal.turns.join(turn, NO_DEBOUNCE)] == ["before"]
    assert stop.inbox_id is not None
    await journal.inbox.command_done(stop.inbox_id)
    assert [message.text for message in await journal.turns.join(turn, NO_DEBOUNCE)] == ["after"]


async def test_an_input_joins_when_it_is_complete(journal: Journal) -> None:
    """An album keeps its pictures together, a burst its messages; what comes after them waits with them."""
    turn = await journal.begins()
    pictures = [replace(envelope(f"e{n}", text=f"p{n}"), album="al") for n in (2, 3)]
    await journal.accept(pictures[0], envelope("e9", text="burst"), pictures[1])
    assert await journal.turns.join(turn, NO_DEBOUNCE) == []
    journal.clock.jump(1)
    assert [message.text for message in await journal.turns.join(turn, timedelta(seconds=5))] == ["p2\np3"]
    journal.clock.jump(5)
    assert [message.text for message in await journal.turns.join(turn, timedelta(seconds=5))] == ["burst"]


async def test_an_answer_is_stored_with_what_follows_it_or_not_at_all(journal: Journal) -> None:
    """The last answer of a turn becomes a step's only when something joins: then both are stored, and its cost."""
    turn = await journal.begins()
    answer = AssistantMessage(seq=0, turn=turn.id, text="One.")
    attempts = [AttemptUsage(model="m", purpose="step", failed=False, usage=Usage(input_tokens=3))]
    assert await journal.turns.join_after(turn, NO_DEBOUNCE, answer, attempts, 1) == []
    assert await journal.rows("SELECT steps, input_tokens FROM turns") == [(0, 0)]
    await journal.accept(envelope("e2", text="two"))
    stored = await journal.turns.join_after(turn, NO_DEBOUNCE, answer, attempts, 1)
    assert [message.text for message in stored] == ["One.", "two"]
    assert list((await journal.turns.history(turn)).messages)[1:] == stored
    assert await journal.rows("SELECT steps, input_tokens FROM turns") == [(1, 3)]


async def test_what_was_said_on_a_channel_that_is_closed_waits(journal: Journal) -> None:
    """A process that opened other channels leaves it alone."""
    await journal.accept(envelope())
    assert (await journal.turns.next(journal.conversation, lambda _: False, {"other": timedelta()})).turn is None
    assert (await journal.turns.next(journal.conversation, lambda _: False, {PLACE.channel: timedelta()})).turn


async def test_an_id_that_not_every_protocol_takes_is_replaced_on_the_wire(journal: Journal) -> None:
    """Too long, or of characters that another provider refuses: ours is sent instead, for the call and its result."""
    turn = await journal.begins()
    kept, long, odd = await journal.records(turn, "toolu_01", "x" * 41, "a:b")
    assert kept.wire_id == "toolu_01"
    assert (long.wire_id, odd.wire_id) == (long.id, odd.id)
