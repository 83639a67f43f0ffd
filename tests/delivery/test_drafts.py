"""Drafts: what a chat shows while a turn works."""

from collections.abc import Sequence
from itertools import pairwise

import pytest

from tests.delivery.house import ANN, BEN, House, Houses, final
from zerobot.core.channel import MessageBody, Pace
from zerobot.core.errors import GoneError, RefusedError, TryLaterError, UnclearError, UnreachableError
from zerobot.core.events import (
    ApprovalsRequested,
    StatusChanged,
    StepStarted,
    TextReset,
    TextShown,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from zerobot.core.ids import CallId
from zerobot.core.messages import ResultCode
from zerobot.core.places import Place
from zerobot.store.outbox import PartState, ReplyState
from zerobot.testing.channel import FakeChannel, PlainChannel, fake_kind
from zerobot.testing.clock import ManualClock

C1 = CallId("c1")


async def test_the_first_draft_goes_out_a_quarter_of_a_second_after_the_first_delta(house: House) -> None:
    """Nothing is sent before 250 ms, and what was said by then is shown."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(StepStarted(1))
        show(TextShown("Hel"))
        await house.clock.advance(0.2)
        show(TextShown("lo"))
        assert house.channel.of("send") == []
        await house.clock.advance(0.1)
        assert [(call.at, call.text, call.reply_to) for call in house.channel.of("send")] == [(0.25, "Hello", "q1")]


async def test_an_answer_that_is_complete_at_once_is_one_call(house: House) -> None:
    """A turn that ends within 250 ms sends its final only."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(TextShown("Hello."))
        await house.clock.advance(0.1)
        await house.finish(ref, show, "Hello.")
        await house.clock.advance(5)
    assert [call.text for call in house.channel.of("send", "edit")] == ["Hello."]


async def test_edits_come_at_the_interval_and_only_the_newest_text_is_shown(house: House) -> None:
    """Whatever comes between two edits is in the second; no text waits in a queue."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        for number in range(40):
            show(TextShown(f"{number} "))
            await house.clock.advance(0.1)
        calls = house.channel.of("send", "edit")
        assert [round(call.at, 2) for call in calls] == [0.25, 1.35, 2.45, 3.55]
        assert calls[1].text == " ".join(str(number) for number in range(14))


async def test_the_last_text_is_shown_although_nothing_follows(house: House) -> None:
    """A pause in the stream (a long tool) leaves no text hidden."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(TextShown("one"))
        await house.clock.advance(0.3)
        show(TextShown(" two"))
        await house.clock.advance(60)
        assert house.channel.texts(ANN) == ["one two"]
        assert len(house.channel.of("send", "edit")) == 2


class SlowChannel(FakeChannel):
    """A channel that takes its time to lay a text out."""

    def __init__(self, clock: ManualClock, seconds: float = 0.0) -> None:
        super().__init__(clock)
        self.layouts: list[str] = []
        self._work = clock.work
        self._seconds = seconds

    def render(self, markdown: str) -> Sequence[MessageBody]:
        """See `Channel`."""
        self.layouts.append(markdown)
        self._work(self._seconds)
        return super().render(markdown)


async def test_a_draft_is_laid_out_once_for_each_edit(houses: Houses, clock: ManualClock) -> None:
    """However many deltas come between two edits, the text is laid out for those that are shown."""
    channel = SlowChannel(clock)
    async with houses.open(channel) as house:
        ref = await house.turn()
        with house.delivery.view(ref) as show:
            for number in range(60):
                show(TextShown(f"{number} "))
                await clock.advance(0.1)
            # The first of all is put on record before its time.
            assert len(channel.layouts) <= len(channel.of("send", "edit")) + 1


async def test_a_draft_that_takes_long_to_lay_out_is_edited_less_often(houses: Houses, clock: ManualClock) -> None:
    """A twentieth of the time goes into it, no more: 0.2 s of work are done every 4 s, not every 1.1 s."""
    channel = SlowChannel(clock, 0.2)
    async with houses.open(channel) as house:
        ref = await house.turn()
        with house.delivery.view(ref) as show:
            for number in range(300):
                show(TextShown(f"{number} "))
                await clock.advance(0.1)
            edits = channel.of("edit")
            assert len(edits) >= 5
            assert all(later.at - earlier.at >= 3.9 for earlier, later in pairwise(edits))


async def test_a_model_that_writes_only_blanks_costs_nothing(houses: Houses, clock: ManualClock) -> None:
    """A small model that is stuck in line feeds has nothing to show, so nothing is laid out."""
    channel = SlowChannel(clock)
    async with houses.open(channel) as house:
        ref = await house.turn()
        with house.delivery.view(ref) as show:
            for _ in range(40):
                show(TextShown("\n"))
                await clock.advance(0.1)
            assert channel.layouts == []
            show(TextShown("At last."))
            await clock.advance(1)
            assert channel.texts(ANN) == ["At last."]


async def test_a_stream_of_ten_seconds_costs_at_most_eleven_calls(house: House) -> None:
    """One message, its edits, and the final form: no more than 11 visible calls, a second apart."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        for number in range(100):
            show(TextShown(f"{number} "))
            await house.clock.advance(0.1)
        await house.finish(ref, show, " ".join(str(number) for number in range(100)))
        await house.clock.advance(5)
    calls = house.channel.of("send", "edit")
    assert len(calls) <= 11
    assert all(later.at - earlier.at >= 1.0 - 1e-6 for earlier, later in pairwise(calls))
    assert house.channel.texts(ANN) == [" ".join(str(number) for number in range(100))]


async def test_twenty_streams_at_once_all_show_their_first_words_in_time(house: House) -> None:
    """With 20 turns that begin together, 19 first drafts or more go out within 300 ms after the first delta."""
    views = []
    for number in range(20):
        ref = await house.turn(f"t{number}", Place("fake", f"c{number}"))
        views.append(house.delivery.view(ref))
    await house.clock.settle()
    for show in views:
        show(TextShown("Hello"))
    await house.clock.advance(0.3)
    assert len(house.channel.of("send")) >= 19
    for show in views:
        show.close()


async def test_steps_are_joined_by_a_blank_line_and_a_reset_drops_the_step(house: House) -> None:
    """Text of an attempt that failed is replaced; that of earlier steps stays."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(StepStarted(1))
        show(TextShown("First."))
        show(StepStarted(2))
        show(TextShown("wro"))
        await house.clock.advance(1)
        assert house.channel.texts(ANN) == ["First.\n\nwro"]
        show(TextReset())
        show(TextShown("Right."))
        await house.clock.advance(2)
        assert house.channel.texts(ANN) == ["First.\n\nRight."]


async def test_a_tool_is_shown_in_italics_only_while_it_runs(house: House) -> None:
    """A tool's line, its progress, and nothing of it when it has ended."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(TextShown("Let me look."))
        show(ToolStarted(C1, "shell", "run *ls*"))
        await house.clock.advance(1)
        assert house.channel.texts(ANN) == ["Let me look.\n\n_run \\*ls\\*_"]
        show(ToolProgress(C1, "shell", "half"))
        await house.clock.advance(2)
        assert house.channel.texts(ANN) == ["Let me look.\n\n_half_"]
        show(ToolFinished(C1, "shell", ResultCode.OK))
        await house.clock.advance(2)
        assert house.channel.texts(ANN) == ["Let me look."]


async def test_a_status_is_shown_even_before_any_text(house: House) -> None:
    """Who waits for a slow provider is told; the answer takes the message over."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(StatusChanged("still trying"))
        await house.clock.advance(1)
        assert house.channel.texts(ANN) == ["_still trying_"]
        show(StatusChanged(""))
        show(TextShown("Here."))
        await house.clock.advance(2)
        assert house.channel.texts(ANN) == ["Here."]


async def test_a_long_text_rolls_over_into_a_next_message(houses: Houses, clock: ManualClock) -> None:
    """At the limit the first message is complete, and a second one grows; only the first is a visible reply."""
    async with houses.open(FakeChannel(clock, limit=10)) as house:
        ref = await house.turn()
        with house.delivery.view(ref) as show:
            show(TextShown("0123456"))
            await clock.advance(1)
            show(TextShown("789abc"))
            await clock.advance(3)
            assert house.channel.texts(ANN) == ["0123456789", "abc"]
            await house.finish(ref, show, "0123456789abcdef")
            await clock.advance(5)
        assert house.channel.texts(ANN) == ["0123456789", "abcdef"]
        assert [call.reply_to for call in house.channel.of("send")] == ["q1", ""]


async def test_a_draft_is_on_record_before_the_platform_is_called(house: House) -> None:
    """While the first call is under way its part is `sending`."""
    ref = await house.turn()
    hold = house.channel.hold("send")
    with house.delivery.view(ref) as show:
        show(TextShown("Hello"))
        await house.clock.advance(0.3)
        reply = await house.outbox.open_of_turn(ref.turn)
        assert reply is not None
        assert [(part.state, part.platform_id) for part in reply.parts] == [(PartState.SENDING, "")]
        hold.release()
        await house.clock.settle()
        reply = await house.outbox.open_of_turn(ref.turn)
        assert reply is not None
        assert [(part.state, part.platform_id) for part in reply.parts] == [(PartState.SENT, "m1")]


@pytest.mark.parametrize("error", [RefusedError("no"), GoneError("no"), UnreachableError("no"), KeyError("a bug")])
async def test_a_draft_that_fails_is_given_up_and_the_final_comes(house: House, error: Exception) -> None:
    """Whatever goes wrong with a draft is noted once; the reply is delivered as if there had been none."""
    house.channel.fail("send", error)
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        for _ in range(30):
            show(TextShown("word "))
            await house.clock.advance(0.2)
        assert len(house.channel.of("send", "edit")) == 1
        assert len(house.logged("draft.failed")) == 1
        await house.finish(ref, show, "The answer.")
        await house.clock.advance(60)
    assert [text.removeprefix("(possible repeat) ") for text in house.channel.texts(ANN)] == ["The answer."]


async def test_an_edit_that_always_fails_leaves_the_final_alone(house: House) -> None:
    """T39: every edit raises; the final is sent all the same, once, and the stale draft goes."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(TextShown("Hel"))
        await house.clock.advance(0.3)
        house.channel.fail("edit", RefusedError("no"), times=100)
        show(TextShown("lo"))
        await house.clock.advance(3)
        await house.finish(ref, show, "Hello.")
        await house.clock.advance(10)
    assert house.channel.texts(ANN) == ["Hello."]
    assert [call.text for call in house.channel.of("send")] == ["Hel", "Hello."]


async def test_a_limited_chat_gets_no_call_at_all_before_its_time(house: House) -> None:
    """429 on an edit: drafts, typing, finals wait for it; then the newest text is shown."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(TextShown("one "))
        await house.clock.advance(0.3)
        house.channel.fail("edit", TryLaterError("slow down", retry_after=6.0))
        show(TextShown("two "))
        await house.clock.advance(1.1)
        show(TextShown("three "))
        await house.clock.advance(2)
        await house.finish(ref, show, "one two three four")
        other = await house.turn("t2", ANN)
        with house.delivery.view(other):
            await house.clock.advance(20)
    limited = next(call for call in house.channel.calls if call.text == "one two")
    later = [call.at for call in house.channel.calls if call.at > limited.at]
    assert later
    assert min(later) >= limited.at + 6.0 - 1e-6
    assert house.channel.texts(ANN) == ["one two three four"]


async def test_one_chats_limit_delays_no_other(house: House) -> None:
    """While a chat is limited for a minute, another one streams as ever."""
    house.channel.fail("send", TryLaterError("slow down", retry_after=60.0), place=ANN)
    ann, ben = await house.turn("t1", ANN), await house.turn("t2", BEN)
    with house.delivery.view(ann) as show_ann, house.delivery.view(ben) as show_ben:
        show_ann(TextShown("a"))
        show_ben(TextShown("b"))
        await house.clock.advance(1)
        show_ben(TextShown("b"))
        await house.clock.advance(1)
        assert house.channel.texts(BEN) == ["bb"]
        assert house.channel.texts(ANN) == []


async def test_typing_is_shown_until_the_draft_is_and_never_after_the_end(house: House) -> None:
    """A signal soon and every interval; none once there is text, none after the turn."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        await house.clock.advance(9)
        assert [call.at for call in house.channel.of("typing")] == [0.3, 4.3, 8.3]
        show(TextShown("Hello"))
        await house.clock.advance(10)
        assert len(house.channel.of("typing")) == 3
    other = await house.turn("t2")
    with house.delivery.view(other):
        await house.clock.advance(1)
    count = len(house.channel.of("typing"))
    await house.clock.advance(60)
    assert len(house.channel.of("typing")) == count == 4


async def test_a_quick_answer_needs_no_typing_signal(house: House) -> None:
    """An answer that is there within moments costs the platform one call."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        await house.clock.advance(0.2)
        await house.finish(ref, show, "Hello.")
        await house.clock.advance(10)
    assert house.channel.of("typing") == []
    assert house.channel.texts(ANN) == ["Hello."]


async def test_a_typing_signal_that_fails_changes_nothing(house: House) -> None:
    """Every signal raises; the answer comes."""
    house.channel.fail("typing", RuntimeError("no"), times=100)
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        await house.clock.advance(9)
        await house.finish(ref, show, "Hello.")
        await house.clock.advance(1)
    assert house.channel.texts(ANN) == ["Hello."]


async def test_a_pause_ends_the_message_and_the_next_text_begins_another(house: House) -> None:
    """What was said before an approval stays as a message of its own."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(TextShown("I want to run it."))
        await house.clock.advance(1)
        await house.queue(ref, "I want to run it.\n\nWaiting.", paused=True)
        show(ApprovalsRequested(ref.turn, (C1,)))
        await house.clock.advance(30)
    assert house.channel.texts(ANN) == ["I want to run it.\n\nWaiting."]
    await house.database.write(lambda db: db.execute("UPDATE turns SET state = 'running'"))
    with house.delivery.view(ref) as show:
        show(TextShown("Done"))
        await house.clock.advance(1)
        await house.finish(ref, show, "Done.")
        await house.clock.advance(5)
    assert house.channel.texts(ANN) == ["I want to run it.\n\nWaiting.", "Done."]


async def test_without_drafts_only_the_reply_is_sent(houses: Houses) -> None:
    """`drafts = "off"`: typing signals while the turn works, then one message."""
    async with houses.open(drafts=False) as house:
        ref = await house.turn()
        with house.delivery.view(ref) as show:
            show(TextShown("Hel"))
            await house.clock.advance(9)
            assert len(house.channel.of("typing")) == 3
            await house.finish(ref, show, "Hello.")
            await house.clock.advance(5)
        assert [call.text for call in house.channel.of("send", "edit")] == ["Hello."]


async def test_a_channel_that_cannot_edit_shows_no_draft(houses: Houses, clock: ManualClock) -> None:
    """As e-mail: one message at the end."""
    async with houses.open(PlainChannel(clock), kind=fake_kind(edits=False, typing_interval=None)) as house:
        ref = await house.turn()
        with house.delivery.view(ref) as show:
            show(TextShown("Hel"))
            await clock.advance(9)
            await house.finish(ref, show, "Hello.")
            await clock.advance(5)
        assert [call.text for call in house.channel.calls] == ["Hello."]


async def test_an_edit_under_way_never_lands_after_the_final(house: House) -> None:
    """B009: the platform keeps an edit for seconds; the final waits for it."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(TextShown("Hel"))
        await house.clock.advance(0.3)
        hold = house.channel.hold("edit")
        show(TextShown("lo"))
        await house.clock.advance(2)
        reply = await house.queue(ref, "Hello, Ann.")
        house.delivery.reply_queued(reply)
        await house.clock.advance(4)
        show(final(ref, "Hello, Ann."))
        await house.clock.settle()
        assert [call.text for call in house.channel.of("edit")] == ["Hello"]
        hold.release()
        await house.clock.advance(5)
    assert [call.text for call in house.channel.of("edit")] == ["Hello", "Hello, Ann."]
    assert house.channel.texts(ANN) == ["Hello, Ann."]


async def test_a_draft_that_shows_the_final_already_is_not_edited_again(house: House) -> None:
    """The last draft and the final are the same: no call for nothing."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(TextShown("Hello."))
        await house.clock.advance(1)
        await house.finish(ref, show, "Hello.")
        await house.clock.advance(5)
    assert len(house.channel.of("send", "edit")) == 1
    (reply,) = await house.outbox.of_turn(ref.turn)
    assert (reply.state, [part.state for part in reply.parts]) == (ReplyState.DONE, [PartState.SENT])


async def test_a_draft_of_a_turn_without_any_final_text_is_taken_back(house: House) -> None:
    """A turn that ends without a word (its conversation was reset) leaves no half text in the chat."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(TextShown("Hel"))
        await house.clock.advance(1)
        show(final(ref, ""))
        await house.clock.advance(5)
    assert house.channel.texts(ANN) == []


async def test_a_turn_that_goes_on_after_a_restart_edits_the_draft_it_had(houses: Houses, clock: ManualClock) -> None:
    """The message from before the crash becomes the answer; there is no second one."""
    channel = FakeChannel(clock)
    async with houses.open(channel) as house:
        ref = await house.turn()
        house.delivery.view(ref)(TextShown("Before the cra"))
        await clock.advance(1)
    async with houses.open(channel) as house:
        with house.delivery.view(ref) as show:
            show(TextShown("After"))
            await clock.advance(1)
            assert channel.texts(ANN) == ["After"]
            await house.finish(ref, show, "After it.")
            await clock.advance(5)
    assert channel.texts(ANN) == ["After it."]


async def test_with_more_streams_than_budget_each_chat_is_edited_less_often_and_none_starves(
    houses: Houses, clock: ManualClock
) -> None:
    """Ten streams on a bot that may call twice a second: turns are shared evenly."""
    kind = fake_kind(pace=Pace(draft_interval=1.0, chat_calls=(1, 1.0), bot_calls=(2, 1.0)), typing_interval=None)
    async with houses.open(kind=kind) as house:
        views = [
            house.delivery.view(await house.turn(f"t{number}", Place("fake", f"c{number}"))) for number in range(10)
        ]
        for _ in range(60):
            for show in views:
                show(TextShown("x"))
            await clock.advance(1)
        for show in views:
            show.close()
        counts = [len(house.channel.of("send", "edit", place=Place("fake", f"c{number}"))) for number in range(10)]
        assert max(counts) - min(counts) <= 1
        assert min(counts) >= 5


async def test_an_edit_whose_answer_is_lost_is_made_again(house: House) -> None:
    """An edit that ends unclear is repeated with the newest text."""
    ref = await house.turn()
    with house.delivery.view(ref) as show:
        show(TextShown("one "))
        await house.clock.advance(0.3)
        house.channel.fail("edit", UnclearError("broken"))
        show(TextShown("two "))
        await house.clock.advance(1.2)
        show(TextShown("three"))
        await house.clock.advance(5)
        assert house.channel.texts(ANN) == ["one two three"]
