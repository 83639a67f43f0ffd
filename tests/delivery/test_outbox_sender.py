"""The outbox's way out: each part once, in order, whatever the platform does."""

import asyncio

import pytest

from tests.delivery.house import ANN, BEN, House, Houses
from zerobot.core.channel import MessageBody
from zerobot.core.errors import (
    CannotTellError,
    GoneError,
    MovedError,
    RefusedError,
    TryLaterError,
    UnclearError,
    UnreachableError,
)
from zerobot.core.events import TextShown
from zerobot.core.ids import ReplyId, TurnId
from zerobot.core.places import Place
from zerobot.delivery.part_sender import REPEAT_AFTER
from zerobot.store.outbox import PartState, ReplyState, queue_notice
from zerobot.testing.channel import REPEAT_MARK, AskableChannel, FakeChannel, PlainChannel, ProbedChannel, fake_kind
from zerobot.testing.clock import START, ManualClock


async def state_of(house: House, turn: TurnId) -> tuple[ReplyState, list[PartState]]:
    """How far the reply of a turn is."""
    (reply,) = await house.outbox.of_turn(turn)
    return reply.state, [part.state for part in reply.parts]


async def test_a_reply_is_sent_once_and_done(house: House) -> None:
    """Queued, sent as the answer to its question, done, and logged without its text."""
    ref = await house.say("Hello.")
    await house.clock.advance(5)
    assert [(call.text, call.reply_to) for call in house.channel.of("send")] == [("Hello.", "q1")]
    assert await state_of(house, ref.turn) == (ReplyState.DONE, [PartState.SENT])
    (sent,) = house.logged("delivery.sent")
    assert (sent["channel"], sent["turn"], sent["parts"]) == ("fake", "t1", 1)
    assert "Hello." not in str(house.events)


async def test_a_long_reply_is_several_messages_in_order(houses: Houses, clock: ManualClock) -> None:
    """Nothing is lost at the cuts, and the parts do not overtake each other."""
    async with houses.open(FakeChannel(clock, limit=10)) as house:
        await house.say("0123456789abcdefghijKLM")
        await clock.advance(10)
        assert house.channel.texts(ANN) == ["0123456789", "abcdefghij", "KLM"]


async def test_each_message_of_a_reply_knows_what_all_of_it_answers(houses: Houses, clock: ManualClock) -> None:
    """Only the first is shown as an answer. None can have been sent before the reply was queued."""
    async with houses.open(FakeChannel(clock, limit=10)) as house:
        await house.say("0123456789abcdefghijKLM")
        await clock.advance(10)
        sent = house.channel.handed
        assert [message.reply_to for message in sent] == ["q1", "", ""]
        assert {(message.answers, message.not_before) for message in sent} == {("q1", START)}


async def test_only_the_part_that_was_refused_for_now_is_tried_again(houses: Houses, clock: ManualClock) -> None:
    """B014: part 2 of 3 is limited twice; each part appears once, in order."""
    async with houses.open(FakeChannel(clock, limit=10)) as house:
        await house.say("0123456789abcdefghijKLM")
        await house.channel.until(lambda: len(house.channel.of("send")) == 1)
        house.channel.fail("send", TryLaterError("slow down", retry_after=3.0), times=2)
        await clock.advance(30)
        assert house.channel.texts(ANN) == ["0123456789", "abcdefghij", "KLM"]
        assert len(house.channel.of("send")) == 5


async def test_a_limited_reply_waits_as_long_as_it_is_told(house: House) -> None:
    """B011: `retry_after: 7`: one delivery, not before."""
    house.channel.fail("send", TryLaterError("slow down", retry_after=7.0))
    await house.say("Hello.")
    await house.clock.advance(30)
    first, second = house.channel.of("send")
    assert second.at >= first.at + 7.0 - 1e-6
    assert house.channel.texts(ANN) == ["Hello."]


async def test_thirty_seconds_of_faults_delay_an_answer_and_keep_the_order(house: House) -> None:
    """B160: refused for 30 s, then delivered once, before the answer to the next question."""
    house.channel.fail("send", TryLaterError("500"), times=1000)
    await house.say("First.", "t1")
    await house.clock.advance(10)
    await house.say("Second.", "t2")
    await house.clock.advance(20)
    house.channel.heal()
    await house.clock.advance(90)
    assert house.channel.texts(ANN) == ["First.", "Second."]


async def test_thirty_seconds_of_broken_connections_lose_no_answer(house: House) -> None:
    """B160, the connection breaks after the request: one marked repeat, when the outage is over."""
    house.channel.fail("send", UnclearError("broken"), times=1000)
    await house.say("First.", "t1")
    await house.say("Second.", "t2")
    await house.clock.advance(30)
    house.channel.heal()
    await house.clock.advance(120)
    assert house.channel.texts(ANN) == [REPEAT_MARK + "First.", "Second."]


async def test_a_reply_is_tried_for_a_day(house: House) -> None:
    """A platform that is down for hours gets the answer in the end; after a day it is given up."""
    house.channel.fail("send", TryLaterError("500", retry_after=3600.0), times=10)
    ref = await house.say("Hello.")
    await house.clock.advance(11 * 3600)
    assert await state_of(house, ref.turn) == (ReplyState.DONE, [PartState.SENT])
    house.channel.fail("send", TryLaterError("500", retry_after=3600.0), times=10_000)
    ref = await house.say("Too late.", "t2")
    await house.clock.advance(26 * 3600)
    assert await state_of(house, ref.turn) == (ReplyState.FAILED, [PartState.FAILED])
    assert house.logged("delivery.failed")[-1]["reason"] == "given_up"


async def test_a_send_whose_answer_is_lost_is_repeated_once_with_a_mark(house: House) -> None:
    """The platform took it and the answer was lost: at most one copy more, and it says so."""
    house.channel.fail("send", UnclearError("broken"), taken=True)
    ref = await house.say("Hello.")
    await house.clock.advance(REPEAT_AFTER - 1)
    assert house.channel.texts(ANN) == ["Hello."]
    await house.clock.advance(60)
    assert house.channel.texts(ANN) == ["Hello.", REPEAT_MARK + "Hello."]
    assert await state_of(house, ref.turn) == (ReplyState.DONE, [PartState.SENT])


async def test_the_repeat_goes_out_as_soon_as_the_platform_answers_again(houses: Houses, clock: ManualClock) -> None:
    """A platform that can be probed is: the one repeat does not fall into the outage, and does not wait longer."""
    async with houses.open(ProbedChannel(clock)) as house:
        house.channel.fail("send", UnclearError("broken"))
        house.channel.fail("probe", UnclearError("broken"), times=3)
        ref = await house.say("Hello.")
        await clock.advance(30)
        assert house.channel.texts(ANN) == [REPEAT_MARK + "Hello."]
        assert len(house.channel.of("probe")) == 4
        assert await state_of(house, ref.turn) == (ReplyState.DONE, [PartState.SENT])


async def test_a_repeat_that_is_unclear_as_well_is_the_last(houses: Houses, clock: ManualClock) -> None:
    """Never a third copy: the part has failed, the next one follows, and the chat is told what may be missing."""
    async with houses.open(FakeChannel(clock, limit=100)) as house:
        house.channel.fail("send", UnclearError("broken"), times=2, taken=True)
        ref = await house.say("0" * 100 + "abc")
        await clock.advance(600)
        assert house.channel.texts(ANN) == [
            "0" * 100,
            REPEAT_MARK + "0" * 100,
            "abc",
            "⚠️ Part 1 of my answer may not have arrived; say “go on” or ask me to repeat it.",
        ]
        assert await state_of(house, ref.turn) == (ReplyState.DONE, [PartState.FAILED, PartState.SENT])
        part, whole = house.logged("delivery.failed")
        assert (part["turn"], part["part"]) == ("t1", 0)
        assert (whole["turn"], whole["reason"], whole["parts"], whole["failed"]) == ("t1", "unclear", 1, 1)
        (sent,) = house.logged("delivery.sent")
        assert sent["turn"] is None
        assert house.channel.of("send")[2].at < 2 * REPEAT_AFTER


async def test_several_parts_that_may_be_missing_are_named_in_one_notice(houses: Houses, clock: ManualClock) -> None:
    """The holes of one answer are told at once, behind all of it and before the next answer."""
    async with houses.open(FakeChannel(clock, limit=100)) as house:
        house.channel.fail("send", UnclearError("broken"), times=4)
        await house.say("0" * 200 + "abc")
        await house.say("Next.", "t2")
        await clock.advance(600)
        notice = "⚠️ Parts 1 and 2 of my answer may not have arrived; say “go on” or ask me to repeat it."
        assert house.channel.texts(ANN) == ["abc", "Next.", notice]


async def test_a_notice_that_gets_lost_as_well_makes_no_other(house: House) -> None:
    """An answer and the notice about it both end unclear: nothing more is said, the events tell of both."""
    house.channel.fail("send", UnclearError("broken"), times=4)
    ref = await house.say("Hello.")
    await house.clock.advance(3600)
    assert house.channel.texts(ANN) == []
    assert len(house.channel.of("send")) == 4
    assert "My answer may not have arrived" in house.channel.of("send")[2].text
    ends = [fields for fields in house.logged("delivery.failed") if "reason" in fields]
    assert [(fields["turn"], fields["reason"]) for fields in ends] == [(ref.turn, "unclear"), (None, "unclear")]
    assert house.logged("delivery.sent") == []


async def test_a_repeat_that_surely_was_not_taken_is_tried_again(house: House) -> None:
    """The repeat meets a limit: it waits, and goes out once, still marked."""
    house.channel.fail("send", UnclearError("broken"), taken=True)
    house.channel.fail("send", TryLaterError("slow down", retry_after=5.0))
    await house.say("Hello.")
    await house.clock.advance(600)
    assert house.channel.texts(ANN) == ["Hello.", REPEAT_MARK + "Hello."]


@pytest.mark.parametrize("taken", [True, False])
async def test_a_platform_that_can_be_asked_is_asked(houses: Houses, clock: ManualClock, *, taken: bool) -> None:
    """Whether it took the message or not, there is one copy, without a mark, and the same key is used throughout."""
    async with houses.open(AskableChannel(clock)) as house:
        house.channel.fail("send", UnclearError("broken"), taken=taken)
        ref = await house.say("Hello.")
        await clock.advance(60)
        assert house.channel.texts(ANN) == ["Hello."]
        assert await state_of(house, ref.turn) == (ReplyState.DONE, [PartState.SENT])
        assert len({call.key for call in house.channel.of("send", "find")}) == 1


async def test_a_platform_that_cannot_tell_gets_one_marked_repeat(houses: Houses, clock: ManualClock) -> None:
    """It can be asked, but does not know: the message is sent once more with a mark, and never a third time."""
    async with houses.open(AskableChannel(clock)) as house:
        house.channel.fail("send", UnclearError("the connection broke"), times=2)
        house.channel.fail("find", CannotTellError("its history tells nothing"), times=2)
        ref = await house.say("Hello.")
        await clock.advance(REPEAT_AFTER + 60)
        assert [call.text for call in house.channel.of("send")][:2] == ["Hello.", REPEAT_MARK + "Hello."]
        failed, *_ = await house.outbox.of_turn(ref.turn)
        assert failed.parts[0].state is PartState.FAILED
        assert sum("Hello." in call.text for call in house.channel.of("send")) == 2


async def test_asking_waits_for_the_platform_too(houses: Houses, clock: ManualClock) -> None:
    """The question itself fails for a while: it is asked again, nothing is sent meanwhile."""
    async with houses.open(AskableChannel(clock)) as house:
        house.channel.fail("send", UnclearError("broken"), taken=True)
        house.channel.fail("find", UnclearError("broken"), times=3)
        await house.say("Hello.")
        await clock.advance(60)
        assert house.channel.texts(ANN) == ["Hello."]
        assert len(house.channel.of("send")) == 1


async def test_a_refused_message_is_sent_without_formatting(house: House) -> None:
    """Markup that the platform does not take is left away; the text arrives."""
    house.channel.fail("send", RefusedError("bad markup"))
    await house.say("Hello.")
    await house.clock.advance(5)
    assert list(house.channel.messages[ANN].values()) == [MessageBody("Hello.")]


async def test_a_message_refused_in_its_plain_form_too_is_shortened(house: House) -> None:
    """People see its beginning, and that something is missing."""
    house.channel.fail("send", RefusedError("too long"), times=2)
    await house.say("x" * 3000)
    await house.clock.advance(5)
    (text,) = house.channel.texts(ANN)
    assert text.startswith("x" * 500 + "…")
    assert text.endswith("(The rest of this message was refused here.)")


async def test_a_message_refused_in_every_form_fails_and_is_logged(house: House) -> None:
    """After three forms nothing is left to try."""
    house.channel.fail("send", RefusedError("never"), times=100)
    ref = await house.say("Hello.")
    await house.clock.advance(600)
    assert len(house.channel.of("send")) == 3
    assert await state_of(house, ref.turn) == (ReplyState.DONE, [PartState.FAILED])
    assert len(house.logged("delivery.failed")) == 1


async def test_a_fault_of_an_adapter_silences_no_chat(house: House) -> None:
    """An exception that no channel may raise is treated as a refusal of the form."""
    house.channel.fail("send", KeyError("a bug"))
    await house.say("Hello.")
    await house.clock.advance(5)
    assert house.channel.texts(ANN) == ["Hello."]


async def test_a_place_that_takes_nothing_is_given_up_at_once_and_others_go_on(house: House) -> None:
    """B031: blocked: one send, the reply has failed; another chat gets its own."""
    house.channel.fail("send", UnreachableError("blocked"), times=100, place=ANN)
    ref = await house.say("Hello.", "t1", ANN)
    await house.say("Hi.", "t2", BEN)
    await house.clock.advance(600)
    assert len(house.channel.of("send", place=ANN)) == 1
    assert await state_of(house, ref.turn) == (ReplyState.FAILED, [PartState.FAILED])
    assert house.logged("delivery.failed")[0]["reason"] == "unreachable"
    assert house.channel.texts(BEN) == ["Hi."]


async def test_a_chat_that_moved_is_followed_once(house: House) -> None:
    """B024: the move is told before anything is sent there, then the message goes to the new chat."""
    house.channel.fail("send", MovedError("moved", chat="77"), place=ANN)
    ref = await house.say("Hello.")
    await house.clock.advance(5)
    assert house.moves == [(ANN, "77")]
    assert house.channel.texts(Place("fake", "77")) == ["Hello."]
    assert await state_of(house, ref.turn) == (ReplyState.DONE, [PartState.SENT])


async def test_a_chat_that_moves_again_and_again_is_given_up(house: House) -> None:
    """The second move is the last that is looked at."""
    house.channel.fail("send", MovedError("moved", chat="77"), times=100)
    ref = await house.say("Hello.")
    await house.clock.advance(60)
    assert len(house.channel.of("send")) == 2
    assert (await state_of(house, ref.turn))[0] is ReplyState.FAILED


async def test_an_answer_to_a_deleted_question_is_sent_all_the_same(house: House) -> None:
    """What it answers no longer exists: it stands on its own."""
    house.channel.fail("send", GoneError("no such message"))
    await house.say("Hello.")
    await house.clock.advance(5)
    assert [call.reply_to for call in house.channel.of("send")] == ["q1", ""]
    assert house.channel.texts(ANN) == ["Hello."]


async def test_a_draft_that_somebody_deleted_is_sent_anew(house: House) -> None:
    """The final finds nothing to edit: it is a new message."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(TextShown("Hel"))
        await house.clock.advance(1)
        house.channel.messages[ANN].clear()
        house.channel.fail("edit", GoneError("deleted"))
        await house.finish(ref, show, "Hello.")
        await house.clock.advance(5)
    assert house.channel.texts(ANN) == ["Hello."]


async def test_a_final_that_cannot_be_edited_replaces_its_draft(house: House) -> None:
    """Refused with and without formatting: a new message first, then the draft is taken back."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(TextShown("Hel"))
        await house.clock.advance(1)
        house.channel.fail("edit", RefusedError("too old"), times=100)
        await house.finish(ref, show, "Hello.")
        await house.clock.advance(5)
    assert house.channel.texts(ANN) == ["Hello."]
    assert [call.kind for call in house.channel.of("send", "edit", "delete")] == [
        "send",
        "edit",
        "edit",
        "send",
        "delete",
    ]


async def test_an_edit_of_the_final_is_repeated_until_it_is_answered(house: House) -> None:
    """B013: a broken connection or a limit at the last edit leaves one message with the whole answer."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(TextShown("Hel"))
        await house.clock.advance(1)
        house.channel.fail("edit", UnclearError("broken"), times=2)
        house.channel.fail("edit", TryLaterError("slow down", retry_after=6.0), times=1)
        await house.finish(ref, show, "Hello.")
        await house.clock.advance(60)
    assert house.channel.texts(ANN) == ["Hello."]
    assert len(house.channel.of("send")) == 1


async def test_messages_of_a_draft_that_the_answer_does_not_need_are_deleted(
    houses: Houses, clock: ManualClock
) -> None:
    """The draft had two messages, the answer has one."""
    async with houses.open(FakeChannel(clock, limit=10)) as house:
        ref = await house.turn()
        with house.delivery.view(ref) as show:
            show(TextShown("0123456789abc"))
            await clock.advance(3)
            assert house.channel.texts(ANN) == ["0123456789", "abc"]
            await house.finish(ref, show, "Short.")
            await clock.advance(5)
        assert house.channel.texts(ANN) == ["Short."]


async def test_an_answer_back_at_its_first_draft_is_edited_back(house: House) -> None:
    """The text that was sent first is the final again after other text was shown: the chat shows the final."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(TextShown("Yes"))
        await house.clock.advance(1)
        show(TextShown(" and no"))
        await house.clock.advance(2)
        assert house.channel.texts(ANN) == ["Yes and no"]
        await house.finish(ref, show, "Yes")
    await house.clock.advance(5)
    assert house.channel.texts(ANN) == ["Yes"]


async def test_a_text_that_shows_nothing_is_a_notice(house: House) -> None:
    """A chat never stays silent."""
    await house.say(" \n ")
    await house.clock.advance(5)
    assert house.channel.texts(ANN) == ["(The answer has no text that can be shown.)"]


async def test_a_notice_is_stored_then_sent(house: House) -> None:
    """Something that belongs to no turn."""
    reply = await house.delivery.notice(ANN, "Your code is ABC.")
    assert (await house.outbox.get(reply)).state is ReplyState.QUEUED
    await house.clock.advance(1)
    assert house.channel.texts(ANN) == ["Your code is ABC."]
    assert (await house.outbox.get(reply)).state is ReplyState.DONE


async def test_a_notice_of_a_turn_leaves_its_draft_alone(house: House) -> None:
    """Something is said beside a turn that streams: both go on."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(TextShown("Hel"))
        await house.clock.advance(1)
        now = house.clock.now()
        notice = await house.database.write(lambda db: queue_notice(db, ANN, "By the way.", now, turn=ref.turn))
        house.delivery.reply_queued(notice)
        await house.clock.advance(2)
        show(TextShown("lo"))
        await house.clock.advance(2)
        assert house.channel.texts(ANN) == ["Hello", "By the way."]


async def test_a_reply_whose_draft_began_before_a_notice_waits_for_its_end(house: House) -> None:
    """The notice is being sent when the older reply gets its final text: both come, each once."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(TextShown("Hel"))
        await house.clock.advance(1)
        hold = house.channel.hold("send")
        await house.delivery.notice(ANN, "By the way.")
        await house.clock.advance(2)
        await house.finish(ref, show, "Hello.")
        await house.clock.advance(2)
        hold.release()
        await house.clock.advance(5)
    assert house.channel.texts(ANN) == ["Hello.", "By the way."]
    assert len(house.channel.of("send", "edit")) == 3
    assert await house.outbox.unfinished() == []


async def test_nothing_of_a_place_is_kept_when_it_is_idle(house: House) -> None:
    """A bot in thousands of chats does not grow: a place's lane ends with its last reply."""
    for number in range(50):
        await house.say("Hello.", f"t{number}", Place("fake", f"c{number}"))
    await house.clock.advance(60)
    assert len(house.channel.of("send")) == 50
    assert await house.delivery.drain(0.0)


async def test_draining_lets_what_is_queued_go_out(house: House) -> None:
    """A graceful stop ends drafts and waits for finals, within its time."""
    ref = await house.turn("t1", BEN)
    house.delivery.view(ref)(TextShown("Hel"))
    await house.say("Hello.", "t2")
    assert await house.delivery.drain(20.0)
    assert house.channel.texts(ANN) == ["Hello."]


async def test_draining_gives_up_in_time(house: House, clock: ManualClock) -> None:
    """A platform that hangs does not keep the daemon from ending."""
    house.channel.hold("send")
    await house.say("Hello.")
    await clock.settle()
    drained = asyncio.create_task(house.delivery.drain(20.0))
    await clock.advance(21)
    assert await drained is False


async def test_a_reply_for_a_channel_that_is_not_open_stays_for_a_later_start(houses: Houses) -> None:
    """The channel was disabled: nothing is lost, and the log says why it does not go out."""
    async with houses.open() as house:
        reply = await house.delivery.notice(Place("closed", "1"), "Hello.")
        await house.clock.advance(5)
        assert (await house.outbox.get(reply)).state is ReplyState.QUEUED
        assert house.logged("delivery.failed")[0]["reason"] == "channel_not_open"


async def test_a_channel_that_can_only_send_delivers_and_repeats(houses: Houses, clock: ManualClock) -> None:
    """E-mail without edits: sent, or repeated once."""
    async with houses.open(PlainChannel(clock), kind=fake_kind(edits=False)) as house:
        house.channel.fail("send", UnclearError("broken"), taken=True)
        await house.say("Hello.")
        await clock.advance(60)
        assert house.channel.texts(ANN) == ["Hello.", REPEAT_MARK + "Hello."]


async def test_keys_are_short_and_differ(houses: Houses, clock: ManualClock) -> None:
    """A key names one message, is the same at each try, and fits a nonce of 25 characters."""
    async with houses.open(FakeChannel(clock, limit=10)) as house:
        house.channel.fail("send", TryLaterError("500"))
        await house.say("0123456789abc", "t0123456789")
        await house.delivery.notice(ANN, "Hello.")
        await clock.advance(60)
        keys = [call.key for call in house.channel.of("send")]
        assert len(keys) == 4
        assert len(set(keys)) == 3
        assert max(len(key) for key in keys) <= 25
        assert ReplyId(1) == 1
