"""What comes from the model, sound or not: people read the right thing, and the history stays valid.

The model's double refuses what the real APIs refuse, so each next question also checks the history.
"""

import json
from dataclasses import replace

import pytest

from tests.e2e.stage import Stage
from tests.platforms.model_script import Answer, Plays, calls, calls_raw, drops, holds, says, status, stays_open


@pytest.fixture
def stage(stage: Stage) -> Stage:
    """In a group, where the platform's pace is no hindrance, all that is said is for the bot."""
    stage.configure("channels.telegram", require_mention=False)
    return stage


def frames(*deltas: dict[str, object], finish: str = "stop", done: bool = True, usage: object = None) -> Plays:
    """A stream of Chat Completions, written out."""
    chunks: list[dict[str, object]] = [
        {"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    chunks.append({"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage is not None:
        for chunk in chunks:
            chunk["usage"] = usage
    pieces = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]
    return Plays(pieces=(*pieces, b"data: [DONE]\n\n") if done else tuple(pieces))


def call_delta(ident: str, path: str) -> dict[str, object]:
    """A whole call, at index 0 like all others: some servers send them so."""
    function = {"name": "read_file", "arguments": json.dumps({"path": path})}
    return {"tool_calls": [{"index": 0, "id": ident, "type": "function", "function": function}]}


async def goes_on(stage: Stage, word: str = "Still here.") -> None:
    """Ask once more: the history that the fault left must be one that the model's API takes."""
    stage.model.answers(says(word))
    stage.uma.says("and now?", chat=stage.team)
    await stage.team.reply(word)


async def test_parallel_calls_at_one_index_are_calls_of_their_own(stage: Stage) -> None:
    """B110: a new id at the same index begins a new call."""
    stage.model.answers(
        frames(*(call_delta(f"c{number}", f"{number}.txt") for number in (1, 2, 3)), finish="tool_calls"),
        says("Three files."),
    )
    async with stage.daemon() as daemon:
        for number in (1, 2, 3):
            (stage.workspace / f"{number}.txt").write_text(f"content {number}", encoding="utf-8")
        await stage.says(stage.uma, "read", chat=stage.team)
    assert len(daemon.named("tool.finished")) == 3
    for number in (1, 2, 3):
        assert f"content {number}" in stage.model.last_request.result_of(f"c{number}").text


@pytest.mark.parametrize("finish", ["length", "tool"])
async def test_a_call_whose_arguments_are_cut_never_runs(stage: Stage, finish: str) -> None:
    """B114: no file appears, and the person gets a clear end."""
    stage.configure("security", auto_approve=["write_file"])
    cut = calls_raw("write_file", '{"path":"a.txt","content":"abc', id="c1", finish=finish)
    stage.model.answers(says("I write it. ") + cut)
    if finish == "tool":
        stage.model.answers(says("It did not work."))
    async with stage.daemon():
        reply = await stage.says(stage.uma, "write", chat=stage.team)
        assert ("cut off" if finish == "length" else "It did not work.") in reply.text
        await goes_on(stage)
    assert not (stage.workspace / "a.txt").exists()
    assert stage.model.last_request.result_of("c1").code == ("CUT_OFF" if finish == "length" else "BAD_ARGS")


async def test_an_answer_that_breaks_off_is_never_taken_for_a_whole_one(stage: Stage) -> None:
    """B116: what was shown stays, one plain sentence says that it broke, and the history has it as it was shown."""
    stage.model.answers(drops(deltas=["The answer ", "is "]))
    async with stage.daemon() as daemon:
        reply = await stage.says(stage.uma, "what is it?", chat=stage.team)
        assert "The answer is" in reply.text
        assert "⚠️" in reply.text
        assert daemon.named("turn.finished")[0]["outcome"] == "failed"
        await goes_on(stage)
    assert "The answer is" in str(stage.model.last_request.messages)


async def test_an_answer_that_breaks_off_is_asked_for_again(stage: Stage) -> None:
    """B116, T34: with tries left the next attempt replaces what was shown; the whole text is there once."""
    stage.configure("providers.main", max_retries=2)
    stage.model.answers(drops(deltas=["The ans"]), drops(deltas=[]), says("The answer is 42."))
    async with stage.daemon():
        await stage.says(stage.uma, "what is it?", chat=stage.team)
    assert stage.team.texts == ["The answer is 42."]


async def test_a_finish_without_the_last_marker_is_an_end(stage: Stage) -> None:
    """B116: some servers never send [DONE]."""
    stage.model.answers(frames({"role": "assistant", "content": None}, {"content": "Fine."}, done=False))
    async with stage.daemon() as daemon:
        assert (await stage.says(stage.uma, "hi", chat=stage.team)).text == "Fine."
    assert daemon.named("turn.finished")[0]["outcome"] == "replied"


async def test_the_end_of_an_answer_does_not_wait_for_the_connection(stage: Stage) -> None:
    """B118: what comes after the end is not part of the answer."""
    stage.model.answers(stays_open(says("That is all.")))
    async with stage.daemon():
        assert (await stage.says(stage.uma, "hi", chat=stage.team)).text == "That is all."


async def test_a_stream_that_falls_silent_is_given_up_after_the_configured_time(stage: Stage) -> None:
    """B119: the idle limit of the configuration counts, and the person is told."""
    stage.configure("providers.main", idle_timeout=0.5)
    stage.model.answers(holds(says("One two three."), after=1))
    async with stage.daemon() as daemon:
        reply = await stage.says(stage.uma, "count", chat=stage.team)
    assert "One" in reply.text
    assert "⚠️" in reply.text
    assert daemon.named("turn.finished")[0]["reason"] == "error"


async def test_reasoning_is_neither_shown_nor_an_answer(stage: Stage) -> None:
    """B122: with real text after it that text is the reply; alone it counts as nothing said."""
    stage.model.answers(
        frames({"content": None, "reasoning_content": "secret plan"}, {"content": "Hello."}),
        frames({"content": None, "reasoning_content": "secret plan"}),
    )
    async with stage.daemon():
        assert (await stage.says(stage.uma, "hi", chat=stage.team)).text == "Hello."
        assert "⚠️" in (await stage.says(stage.uma, "again", chat=stage.team)).text
    assert not any("secret plan" in text for one in stage.team.replies for text in one.history)


async def test_thinking_in_the_text_is_hidden_unless_it_is_code(stage: Stage) -> None:
    """B124: in drafts and finals, for tags in pieces, nested and in capitals."""
    cases = {
        "pieces": (["<thi", "nk>secret plan", "</th", "ink>Hi"], "Hi"),
        "nested": (["<THINK>secret <think>deep</think> plan<final>Hi</final>"], "Hi"),
        "code": (["Use `<think>` for ", "that."], "Use <think> for that."),
    }
    stage.configure("channels.telegram", allowed_users=["*"])
    people = {word: stage.telegram.user(str(3000 + number)) for number, word in enumerate(cases)}
    async with stage.daemon() as daemon:
        for word, (deltas, _) in cases.items():
            stage.model.when(word, says("".join(deltas), deltas=deltas))
            people[word].says(word)
        await daemon.until("delivery.sent", count=len(cases))
    for word, (_, shown) in cases.items():
        assert people[word].chat.texts == [shown]
        assert not any("secret" in text for one in people[word].chat.replies for text in one.history)


async def test_tokens_are_counted_once_for_each_request(stage: Stage) -> None:
    """B126: a running total counts once, the steps of a turn are summed, and what was not reported is not zero."""
    running = {"prompt_tokens": 100, "completion_tokens": 7}
    stage.model.answers(
        replace(calls("time_now", id="c1"), usage=(12, 5)),
        frames({"content": "It is "}, {"content": "noon."}, usage=running),
        says("No count.", usage=None),
    )
    async with stage.daemon() as daemon:
        await stage.says(stage.uma, "what time?", chat=stage.team)
        await stage.says(stage.uma, "again", chat=stage.team)
        stage.uma.says("/usage", chat=stage.team)
        usage = await stage.team.reply("Your last 30 days")
    finished = daemon.named("turn.finished")
    assert (finished[0]["input_tokens"], finished[0]["output_tokens"]) == (112, 12)
    assert "112 tokens in" in usage.text
    assert "12 out" in usage.text
    assert "3 calls" in usage.text


async def test_a_short_window_never_cuts_between_a_call_and_its_result(stage: Stage) -> None:
    """B128: rounds go whole, and the newest message is always there; the double checks every request."""
    stage.configure("agent", history_messages=10)
    stage.configure("channels.telegram", drafts="off")
    async with stage.daemon() as daemon:
        for number in range(8):
            three = calls("time_now", id=f"a{number}")
            three += calls("time_now", id=f"b{number}", timezone="Asia/Tokyo")
            three += calls("list_files", id=f"c{number}")
            stage.model.answers(three, says(f"Answer {number}."))
            stage.uma.says(f"question {number}", chat=stage.team)
            await daemon.until("turn.finished", count=number + 1)
        await daemon.kill()
    assert stage.model.requests[-2].newest_text.endswith("question 7")
    assert "question 0" not in str(stage.model.last_request.messages)


async def test_a_model_that_calls_the_same_for_ever_is_stopped_and_answers(stage: Stage) -> None:
    """B134, T10: at the step limit one closing request without tools; the reply says why it ends."""
    stage.configure("agent", max_steps=3)
    for number in range(3):
        stage.model.answers(calls("time_now", id=f"c{number}"))
    stage.model.answers(says("So far: noon."))
    async with stage.daemon() as daemon:
        reply = await stage.says(stage.uma, "loop", chat=stage.team)
        await goes_on(stage)
    assert "So far: noon." in reply.text
    assert "limit of 3 steps" in reply.text
    assert stage.model.requests[3].tool_names == []
    assert daemon.named("turn.finished")[0]["reason"] == "step_limit"
    assert daemon.named("turn.finished")[0]["outcome"] == "limited"


async def test_a_turn_that_takes_too_long_is_ended_with_a_word(stage: Stage) -> None:
    """B134: wall time is limited too."""
    stage.configure("agent", turn_timeout=0.5)
    stage.model.answers(holds(says("One two."), after=1))
    async with stage.daemon() as daemon:
        reply = await stage.says(stage.uma, "slowly", chat=stage.team)
        await goes_on(stage)
    assert "took too long" in reply.text
    assert daemon.named("turn.finished")[0]["outcome"] == "limited"


async def test_a_fault_of_the_model_is_told_in_a_plain_sentence(stage: Stage) -> None:
    """A42, B181: what to do next, and nothing of the provider's own words; the conversation goes on."""
    faults: dict[str, tuple[Answer, str]] = {
        "auth": (status(401, message="Incorrect API key provided: sk-CANARY."), "refuses my key"),
        "quota": (status(429, kind="insufficient_quota", message="You exceeded your quota CANARY"), "limits us"),
        "html": (status(500, body="<html>CANARY nginx/1.2</html>"), "does not answer"),
        "window": (status(400, message="context_length_exceeded: CANARY maximum context length is 10 tokens"), "/new"),
    }
    stage.configure("channels.telegram", allowed_users=["*"])
    people = {word: stage.telegram.user(str(3000 + number)) for number, word in enumerate(faults)}
    async with stage.daemon() as daemon:
        for word, (answer, _) in faults.items():
            stage.model.when(word, answer)
            people[word].says(word)
        await daemon.until("delivery.sent", count=len(faults))
        stage.model.always(says("Still here."))
        for word, (_, words) in faults.items():
            assert words in people[word].chat.texts[0]
            people[word].says("and now?")
        await daemon.until("delivery.sent", count=2 * len(faults))
    said = "\n".join(text for person in people.values() for text in person.chat.texts)
    assert said.count("Still here.") == len(faults)
    for secret in ("CANARY", "127.0.0.1", stage.model.key, str(stage.folder)):
        assert secret not in said
    assert {each["level"] for each in daemon.named("model.failed")} == {"warning"}


async def test_an_answer_that_the_provider_filters_is_taken_back_whole(stage: Stage) -> None:
    """T06: neither the chat nor the next request has anything of it."""
    stage.model.answers(says("bad stuff here", finish="filter"))
    async with stage.daemon():
        reply = await stage.says(stage.uma, "say it", chat=stage.team)
        assert "content filter" in reply.text
        await goes_on(stage)
    assert "bad stuff" not in str(stage.team.texts)
    assert "bad stuff" not in str(stage.model.last_request.messages)


async def test_the_next_model_is_asked_when_the_first_does_not_answer(stage: Stage) -> None:
    """`fallback_models`: the person reads one whole answer and no fault."""
    stage.configure("agent", fallback_models=["main/m-2"])
    stage.model.answers(status(503), says("From the second."))
    async with stage.daemon():
        await stage.says(stage.uma, "hi", chat=stage.team)
    assert [request.model for request in stage.model.requests] == ["m-1", "m-2"]
    assert stage.team.texts == ["From the second."]


async def test_each_provider_is_tried_as_often_as_its_own_table_says(stage: Stage) -> None:
    """`max_retries` of a provider counts for its models also when they are only asked after others."""
    stage.configure("providers.main", max_retries=0)
    stage.configure("providers.second", **{**stage.tables["providers.main"], "max_retries": 2})
    stage.configure("agent", fallback_models=["second/m-2"])
    stage.model.answers(status(503), status(503), status(503), says("At the third try."))
    async with stage.daemon():
        await stage.says(stage.uma, "hi", chat=stage.team)
    assert [request.model for request in stage.model.requests] == ["m-1", "m-2", "m-2", "m-2"]


async def test_people_hear_that_the_model_is_still_being_tried(stage: Stage) -> None:
    """W7: after the second failure a status is shown; the answer takes its place."""
    stage.configure("providers.main", max_retries=3)
    stage.model.answers(status(503), status(503, retry_after=2), says("At last."))
    async with stage.daemon():
        stage.uma.says("hi", chat=stage.team)
        status_line = await stage.team.reply("still trying")
        await stage.team.reply("At last.")
    assert stage.team.texts == ["At last."]
    assert status_line.text == "At last."


async def test_an_operator_chooses_the_model_of_a_chat(stage: Stage) -> None:
    """/model: for this chat, by operators only, and only a model of a configured provider."""
    stage.model.always(says("Yes."))
    async with stage.daemon():
        stage.olga.says("/model nowhere/m-2")
        await stage.olga.chat.reply("I know no such provider")
        stage.olga.says("/model main/m-2")
        await stage.olga.chat.reply("Model: main/m-2")
        await stage.says(stage.olga, "hi")
        await stage.says(stage.vic, "hi")
        stage.uma.says("/model main/m-2")
        await stage.uma.chat.reply("Only an operator")
    assert [request.model for request in stage.model.requests] == ["m-2", "m-1"]
