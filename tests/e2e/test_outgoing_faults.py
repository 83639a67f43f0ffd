"""Replies while the platform is slow, limits, refuses or breaks: each shown once, whole, in the end."""

from itertools import pairwise

import pytest

from tests.e2e.stage import Stage
from tests.platforms.model_script import calls, holds, says, status


def streams_in_two_steps(stage: Stage, first: str, second: str) -> None:
    """Let the model hold after its first words, and again after the first word of its next step."""
    stage.model.answers(holds(says(first) + calls("time_now"), after=1), holds(says(second), after=1))


async def test_an_edit_that_is_late_does_not_overwrite_the_final_text(stage: Stage) -> None:
    """B009: edits of one message are in order; the last state is the final text."""
    streams_in_two_steps(stage, "First.", "Second. Third.")
    async with stage.daemon() as daemon:
        late = stage.telegram.hold_next("editMessageText")
        stage.uma.says("count")
        await stage.uma.chat.reply("First.")
        stage.model.release()
        await late.arrived.wait()
        stage.model.release()
        await daemon.until("turn.finished")
        late.release()
        await daemon.until("delivery.sent")
    assert len(stage.uma.chat.texts) == 1
    assert stage.uma.chat.texts[0].endswith("Second. Third.")


async def test_a_fault_after_streamed_text_leaves_the_text_and_adds_one_note(stage: Stage) -> None:
    """B010: neither a failing tool nor a broken model erases what was said."""
    stage.model.answers(says("I look. Then I tell you. ") + calls("read_file", path="nothing.txt"), status(500))
    async with stage.daemon():
        await stage.says(stage.uma, "look")
    text = "\n".join(stage.uma.chat.texts)
    assert text.count("I look. Then I tell you.") == 1
    assert text.count("⚠️") == 1


async def test_a_limited_chat_gets_no_call_until_its_time_is_over(stage: Stage) -> None:
    """B011, B014: the server's wait is kept, only the part that was refused is sent again, and each is there once."""
    text = "a" * 3000 + "b" * 3000
    stage.configure("channels.telegram", drafts="off")
    stage.model.answers(says(text, deltas=[text]))
    async with stage.daemon() as daemon:
        stage.uma.says("long")
        await stage.uma.chat.reply("aa")
        stage.telegram.fail_next("sendMessage", 429, retry_after=1, times=2, chat=stage.uma.chat)
        await daemon.until("delivery.sent")
    sends = stage.sends(stage.uma.chat)
    assert [call.status for call in sends] == [200, 429, 429, 200]
    assert all(later.at - earlier.at >= 1.0 for earlier, later in pairwise(sends[1:]))
    assert {call.params["text"] for call in sends[1:]} == {sends[1].params["text"]}
    assert "".join(stage.uma.chat.texts) == text


async def test_a_limit_on_a_draft_leaves_one_whole_answer(stage: Stage) -> None:
    """B013: no half draft stays behind, and no second copy is posted under it."""
    streams_in_two_steps(stage, "Half.", "The rest of it.")
    stage.telegram.fail_next("editMessageText", 429, retry_after=1)
    async with stage.daemon() as daemon:
        stage.uma.says("go")
        await stage.uma.chat.reply("Half.")
        stage.model.release()
        await stage.telegram.wait_for(lambda: [c for c in stage.telegram.of("editMessageText") if c.status == 429])
        stage.model.release()
        await daemon.until("delivery.sent")
    assert len(stage.uma.chat.texts) == 1
    assert stage.uma.chat.texts[0].endswith("The rest of it.")


async def test_a_decoration_that_fails_does_not_take_the_answer_along(stage: Stage) -> None:
    """B033: without "typing…" the answer still comes."""
    stage.telegram.fail_next("sendChatAction", 500, times=50)
    stage.model.answers(says("Here."))
    async with stage.daemon():
        assert (await stage.says(stage.uma, "hi")).text == "Here."


async def test_a_person_who_blocked_the_bot_is_given_up_and_others_go_on(stage: Stage) -> None:
    """B031: a permanent refusal is not repeated."""
    stage.model.always(says("Hello."))
    async with stage.daemon() as daemon:
        stage.uma.blocks_the_bot()
        stage.uma.says("hi")
        await daemon.until("delivery.failed")
        await stage.says(stage.vic, "hi")
    assert len(stage.sends(stage.uma.chat)) <= 2
    assert stage.vic.chat.texts == ["Hello."]


async def test_an_answer_waits_out_an_outage_and_comes_before_the_next_one(stage: Stage) -> None:
    """B160: what the model has answered is delivered once, in order, however the platform fails meanwhile."""
    stage.configure("channels.telegram", drafts="off")
    stage.model.answers(says("One."), says("Two."))
    stage.telegram.fail_next("sendMessage", 500, times=2)
    async with stage.daemon() as daemon:
        stage.uma.says("first")
        stage.uma.says("second")
        await daemon.until("delivery.sent", count=2)
    assert stage.uma.chat.texts == ["One.", "Two."]


async def test_a_group_that_got_a_new_id_is_answered_there_and_keeps_its_history(stage: Stage) -> None:
    """B024: a send that is refused with the new id is repeated there once; what follows there sees the history."""
    group = stage.telegram.group("Team")
    stage.model.answers(holds(says("The reply."), after=0), says("I remember."))
    async with stage.daemon() as daemon:
        stage.uma.says("@zero_bot remember: heron", chat=group)
        await stage.model.until_holding()
        new = stage.telegram.migrates(group, stage.uma)
        stage.model.release()
        await new.reply("The reply.")
        stage.uma.says("@zero_bot what was it?", chat=new)
        await new.reply("I remember.")
        assert "heron" in str(stage.model.last_request.messages)
        await daemon.until("delivery.sent", count=2)
    assert group.texts == []
    assert len(new.texts) == 2


async def test_topics_are_conversations_of_their_own_and_keep_their_calls_apart(stage: Stage) -> None:
    """B021: every call of a turn names the topic of its question: reply, typing, approval prompt."""
    forum = stage.telegram.group("Forum", forum=True, topics=(11, 22))
    stage.model.when("eleven", calls("shell", id="c1", command="touch made"))
    stage.model.when("twenty-two", says("To twenty-two."))
    async with stage.daemon() as daemon:
        stage.olga.says("@zero_bot eleven", chat=forum, topic=11)
        stage.uma.says("@zero_bot twenty-two", chat=forum, topic=22)
        prompt = await stage.prompt(forum)
        await daemon.until("delivery.sent")
        stage.model.answers(says("To eleven."))
        await stage.press(stage.olga, prompt, "Approve")
        await forum.reply("To eleven.")
        await daemon.until("delivery.sent", count=2)
    assert prompt.thread == 11
    assert {(one.text, one.thread) for one in forum.replies if one is not prompt} == {
        ("To eleven.", 11),
        ("To twenty-two.", 22),
    }
    threads = {str(call.params.get("message_thread_id")) for call in stage.telegram.of("sendChatAction", chat=forum)}
    assert threads <= {"11", "22"}
    assert "twenty-two" not in str(stage.model.last_request.messages)


@pytest.mark.slow
async def test_nothing_is_typing_after_a_turn_ended_in_whatever_way(stage: Stage) -> None:
    """B035: after an answer, a fault, a stop and a denial no typing call follows."""
    stage.model.when("answer", says("Here."))
    stage.model.when("fault", status(500))
    stage.model.when("stop", holds(says("never"), after=0))
    stage.model.when("deny", calls("shell", id="c1", command="touch made"))
    stage.model.when("still", holds(says("At last."), after=0))
    people = [stage.telegram.user(str(3000 + number)) for number in range(4)]
    stage.configure("channels.telegram", allowed_users=["*"])
    async with stage.daemon() as daemon:
        for person, word in zip((*people[:2], stage.olga), ("answer", "fault", "deny"), strict=True):
            person.says(word)
        people[2].says("stop")
        await stage.model.until_holding()
        people[2].says("/stop")
        prompt = await stage.prompt(stage.olga.chat)
        stage.model.answers(says("Then not."))
        await stage.press(stage.olga, prompt, "Deny")
        await stage.olga.chat.reply("Then not.")
        await daemon.until("turn.finished", count=4)
        people[3].says("still")
        # Typing is repeated every four seconds: whoever still did it would have done it by the second one.
        await people[3].chat.wait_for(lambda chat: len(chat.actions) >= 3)
        stage.model.release()
        await people[3].chat.reply("At last.")
    began = people[3].chat.actions[0][2]
    for person in (*people[:3], stage.olga):
        assert [action for action in person.chat.actions if action[2] > began] == []
    assert all(later[2] - earlier[2] > 3 for earlier, later in pairwise(people[3].chat.actions))
