"""Conversations: one turn at a time, nothing lost, and a fresh start that is one."""

import asyncio

from tests.e2e.stage import Stage
from tests.platforms.model_script import calls, holds, says


async def test_one_turn_at_a_time_in_a_chat_and_chats_beside_each_other(stage: Stage) -> None:
    """B152, A80, A81, T74: a second message sees the first one's answer; another chat does not wait."""
    stage.model.when("first", holds(says("One."), after=0))
    stage.model.when("second", says("Two."))
    stage.model.when("elsewhere", says("Three."))
    async with stage.daemon() as daemon:
        stage.uma.says("first")
        await stage.model.until_holding()
        stage.uma.says("second")
        stage.vic.says("elsewhere")
        await stage.vic.chat.reply("Three.")
        assert len(stage.model.requests) == 2
        stage.model.release()
        await daemon.until("delivery.sent", count=3)
    assert [text for _, text in stage.model.last_request.messages] == ["first", "One.", "second"]
    assert stage.uma.chat.texts == ["One.", "Two."]


async def test_every_message_of_a_burst_is_answered_in_order(stage: Stage) -> None:
    """B153: none of two people's quick messages is dropped."""
    group = stage.telegram.group("Team")
    stage.configure("channels.telegram", drafts="off")
    stage.model.always(says("ok"))
    async with stage.daemon() as daemon:
        for number in range(14):
            (stage.uma, stage.vic)[number % 2].says(f"@zero_bot message {number}", chat=group)
        await daemon.until("turn.finished", count=14)
        await daemon.kill()
    asked = [request.newest_text.rpartition("message ")[2] for request in stage.model.requests]
    assert asked == [str(number) for number in range(14)]
    last = str(stage.model.last_request.messages)
    assert all(f"message {number}" in last for number in range(14))


async def test_a_crash_in_a_turn_loses_no_finished_step(stage: Stage) -> None:
    """B157: after it the model is asked with all that was done, and the person gets one answer."""
    stage.model.answers(calls("time_now", id="c1"), calls("list_files", id="c2"), holds(says("never"), after=0))
    async with stage.daemon() as daemon:
        stage.uma.says("three steps")
        await stage.model.until_holding()
        await daemon.kill()
    stage.model.answers(says("Done."))
    async with stage.daemon() as daemon:
        await stage.uma.chat.reply("Done.")
    request = stage.model.last_request
    assert request.result_of("c1").code == "OK"
    assert request.result_of("c2").code == "OK"
    assert request.messages[0] == ("user", "three steps")
    assert [one for one in stage.uma.chat.texts if "Done." in one] == ["Done."]
    assert daemon.named("turn.started")[0]["resumed"] is True


async def test_a_fresh_start_during_a_turn_leaves_nothing_of_before(stage: Stage) -> None:
    """B163, A86: after /new no request has earlier text, neither of the turn that ran nor of what waited."""
    stage.model.answers(holds(says("Old answer, streamed."), after=1), says("New."))
    async with stage.daemon() as daemon:
        stage.uma.says("old question")
        await stage.model.until_holding()
        stage.uma.says("waiting question")
        await daemon.until("envelope.accepted", count=2)
        stage.uma.says("/new")
        confirmation = await stage.uma.chat.reply("start afresh")
        await daemon.until("turn.finished")
        stage.uma.says("new question")
        await stage.uma.chat.reply("New.")
    assert [text for _, text in stage.model.last_request.messages] == ["new question"]
    assert "(1)" in confirmation.text
    assert len(stage.model.requests) == 2


async def test_a_stop_acts_at_once_though_all_turns_are_taken(stage: Stage) -> None:
    """A84: with one turn at most, /stop is not queued behind the turn that it is to stop; what waits comes next."""
    # Seen to fail with: a stop that waits for a place (A84).
    stage.configure("daemon", max_turns=1)
    stage.model.answers(holds(says("Streamed words and more."), after=1))
    async with stage.daemon() as daemon:
        stage.uma.says("long one")
        await stage.model.until_holding()
        stage.vic.says("waits")
        await daemon.until("envelope.accepted", count=2)
        stage.model.answers(says("Vic's."))
        stage.uma.says("/stop")
        await stage.vic.chat.reply("Vic's.")
        await stage.uma.chat.reply("(Stopped.)")
        stage.model.answers(says("On we go."))
        stage.uma.says("go on")
        await stage.uma.chat.reply("On we go.")
    assert daemon.named("turn.finished")[0]["outcome"] == "stopped"
    assert "Streamed" in str(stage.model.last_request.messages)


async def test_a_stop_in_a_group_is_for_whoever_asked_and_for_operators(stage: Stage) -> None:
    """Others cannot take away what somebody asked for."""
    group = stage.telegram.group("Team")
    stage.model.answers(holds(says("Never said."), after=0))
    async with stage.daemon() as daemon:
        stage.uma.says("@zero_bot long one", chat=group)
        await stage.model.until_holding()
        stage.vic.says("/stop@zero_bot", chat=group)
        await group.reply("Only who asked")
        assert daemon.named("turn.finished") == []
        stage.olga.says("/stop@zero_bot", chat=group)
        await daemon.until("turn.finished")
        await daemon.kill()
    assert daemon.named("turn.finished")[0]["outcome"] == "stopped"


async def test_words_for_the_model_are_never_shown_to_people(stage: Stage) -> None:
    """B166, T20: what the engine tells the model about a denied call stays with the model."""
    stage.model.answers(calls("shell", id="c1", command="touch made"), says("Understood."))
    async with stage.daemon():
        stage.olga.says("do it")
        prompt = await stage.prompt(stage.olga.chat)
        await stage.press(stage.olga, prompt, "Deny")
        await stage.olga.chat.reply("Understood.")
    assert "Do not ask for the same again" in stage.model.last_request.result_of("c1").text
    assert not any("Do not ask" in text or "[DENIED]" in text for text in stage.olga.chat.texts)


async def test_two_stops_of_the_process_end_it_at_once(stage: Stage) -> None:
    """B189: a turn that never ends does not hold the daemon up for long, and goes on at the next start."""
    stage.configure("daemon", shutdown_grace=0.2)
    stage.model.answers(holds(says("never"), after=0))
    async with stage.daemon() as daemon:
        stage.uma.says("hi")
        await stage.model.until_holding()
        async with asyncio.timeout(10):
            assert await daemon.stop() == 0
    stage.model.answers(says("Here I am."))
    async with stage.daemon() as daemon:
        await stage.uma.chat.reply("Here I am.")
    assert stage.uma.chat.texts == ["Here I am."]
    assert [text for _, text in stage.model.last_request.messages] == ["hi"]


async def test_a_newer_message_stops_the_turn_where_that_is_wanted(stage: Stage) -> None:
    """`on_message_during_turn = "interrupt"`: what was said so far stays, and the newer message is answered."""
    stage.configure("agent", on_message_during_turn="interrupt")
    stage.model.answers(holds(says("Once upon a time there was a cat."), after=1), says("Here I am."))
    async with stage.daemon():
        stage.olga.says("tell me a long story")
        await stage.model.until_holding(1)
        stage.olga.says("stop that, are you there?")
        await stage.olga.chat.reply("Here I am.")
    assert any("(Stopped.)" in text for text in stage.shown(stage.olga.chat))


async def test_a_message_joins_the_turn_where_that_is_wanted(stage: Stage) -> None:
    """`on_message_during_turn = "steer"`: what comes meanwhile is in the next request, and one reply answers all."""
    stage.configure("agent", on_message_during_turn="steer")
    stage.model.answers(holds(calls("time_now", id="c1"), after=0), says("Both, gladly."))
    async with stage.daemon() as daemon:
        stage.olga.says("what time is it?")
        await stage.model.until_holding()
        stage.olga.says("and is it late?")
        await daemon.until("envelope.accepted", count=2)
        stage.model.release()
        await stage.olga.chat.reply("Both, gladly.")
        await daemon.until("turn.finished")
    assert stage.model.last_request.newest_text == "and is it late?"
    assert stage.model.last_request.result_of("c1").code == "OK"
    assert len(daemon.named("turn.started")) == len(daemon.named("turn.finished")) == 1
    assert daemon.named("inputs.joined")[0]["inputs"] == 1


async def test_in_a_group_nobody_joins_another_persons_turn(stage: Stage) -> None:
    """`steer`: a turn has the rights of its asker, so what somebody else writes waits for a turn of its own."""
    group = stage.telegram.group("Team")
    stage.configure("agent", on_message_during_turn="steer")
    stage.model.answers(holds(calls("time_now", id="c1"), after=0), says("Uma's."), says("Vic's."))
    async with stage.daemon() as daemon:
        stage.uma.says("@zero_bot what time is it?", chat=group)
        await stage.model.until_holding()
        stage.vic.says("@zero_bot and is it late?", chat=group)
        await daemon.until("envelope.accepted", count=2)
        stage.model.release()
        await group.reply("Vic's.")
        await daemon.kill()
    assert len(daemon.named("turn.started")) == 2
    assert daemon.named("inputs.joined") == []
    assert stage.shown(group) == ["Uma's.", "Vic's."]


async def test_a_burst_is_answered_as_one_where_that_is_wanted(stage: Stage) -> None:
    """`debounce`: two messages in quick succession are one question."""
    stage.configure("agent", debounce="1s")
    stage.model.answers(says("Both, gladly."))
    async with stage.daemon():
        stage.olga.says("tea")
        stage.olga.says("and cake")
        await stage.olga.chat.reply("Both, gladly.")
    assert "tea\nand cake" in stage.model.last_request.newest_text


async def test_a_burst_keeps_all_that_is_attached(stage: Stage) -> None:
    """BAR 7d: the files of each of its messages are fetched and told."""
    stage.configure("agent", debounce="1s")
    stage.model.answers(says("Both read."))
    async with stage.daemon():
        stage.olga.sends_file("a.txt", b"first", caption="this")
        stage.olga.sends_file("b.txt", b"second", caption="and this")
        await stage.olga.chat.reply("Both read.")
    seen = stage.model.last_request.newest_text
    assert all(word in seen for word in ("this\nand this", "a.txt", "b.txt"))
    kept = sorted(path.name for path in stage.workspace.glob("attachments/*/*"))
    assert kept == ["a.txt", "b.txt"]


async def test_a_press_acts_at_once_though_all_turns_are_taken(stage: Stage) -> None:
    """BAR 7b: it is decided, and its prompt says so, while the one turn that may run is another chat's."""
    stage.configure("daemon", max_turns=1)
    async with stage.daemon() as daemon:
        prompt = await stage.asks(stage.olga, chat=stage.olga.chat)
        stage.model.answers(holds(says("Uma's."), after=0))
        stage.uma.says("long one")
        await stage.model.until_holding()
        told = await stage.press(stage.olga, prompt, "Approve")
        assert told.text == "Approved."
        await stage.olga.chat.wait_for(lambda _: not prompt.buttons)
        assert daemon.named("turn.finished") == []
        stage.model.answers(says("Done."))
        stage.model.release()
        await stage.olga.chat.reply("Done.")
    assert stage.made()
