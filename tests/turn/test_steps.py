"""Steps and how turns end by themselves: what the model's answers lead to (spec K2, K11, K12)."""

import pytest

from zerobot.core.errors import ProviderError
from zerobot.core.events import (
    Final,
    Outcome,
    StepFinished,
    StepReason,
    StepStarted,
    StopReason,
    TextShown,
    TurnStarted,
    UsageCounted,
)
from zerobot.core.messages import AssistantMessage, ResultCode
from zerobot.core.model import Finish
from zerobot.core.usage import Usage
from zerobot.testing.house import House
from zerobot.testing.model import call, calls, drops, fails, held, says, step
from zerobot.turn import notices
from zerobot.turn.generate import LONGEST_ANSWER
from zerobot.turn.kit import TurnLimits


async def test_one_answer_is_one_step_and_one_final(house: House) -> None:
    """T01: a plain answer is stored, shown, counted and ended once, in the order of the event contract."""
    house.model.answers(says("hello", usage=(5, 7)))
    await house.user.says("hi")
    assert await house.history() == ["U:hi", "A:hello"]
    turn = house.finals[0].turn
    assert house.events == [
        TurnStarted(turn),
        StepStarted(1),
        TextShown("hello"),
        UsageCounted(1, Usage(input_tokens=5, output_tokens=7)),
        StepFinished(1, StepReason.DONE),
        house.finals[0],
    ]
    final = house.finals[0]
    assert (final.reason, final.outcome, final.text, final.calls) == (StopReason.DONE, Outcome.REPLIED, "hello", ())
    assert (final.steps, final.usage, final.error) == (1, Usage(input_tokens=5, output_tokens=7), None)
    assert await house.replies() == ["hello"]


async def test_tools_and_answers_alternate_until_the_model_is_done(house: House) -> None:
    """T02: each round's result is the end of the next request, and the usage of all steps is summed."""
    # Seen to fail with: calls left out of the final (A41).
    house.model.answers(
        step(calls=[call("echo", "c1", text="a")], usage=(1, 2)),
        step(calls=[call("echo", "c2", text="b")], usage=(3, 4)),
        says("done", usage=(5, 6)),
    )
    await house.user.says("hi")
    assert await house.history() == ["U:hi", "A:[c1]", "R c1=a", "A:[c2]", "R c2=b", "A:done"]
    assert house.model.requests[1].lines[-1] == "R c1=a"
    assert house.model.requests[2].lines[-1] == "R c2=b"
    final = house.finals[0]
    assert (final.steps, final.usage) == (3, Usage(input_tokens=9, output_tokens=12))
    assert [(each.name, each.code) for each in final.calls] == [("echo", ResultCode.OK)] * 2


async def test_an_empty_answer_is_a_failed_attempt(house: House) -> None:
    """T05, A50: nothing said is tried again within the step; what it cost is counted, and counted as failed."""
    house.settings.max_retries = 1
    house.model.answers(step(usage=(10, 0)), says("ok", usage=(4, 1)))
    await house.user.writes("hi")
    await house.settles()
    await house.clock.advance_until(lambda: bool(house.finals))
    await house.idle()
    final = house.finals[0]
    assert (final.steps, len(house.model.requests)) == (1, 2)
    assert (final.usage, final.failed_usage) == (Usage(input_tokens=14, output_tokens=1), Usage(input_tokens=10))
    assert await house.history() == ["U:hi", "A:ok"]


async def test_a_filtered_answer_leaves_only_its_notice(house: House) -> None:
    """T06: of a flagged answer nothing is kept, run, or sent again; the notice stands in its place."""
    house.model.answers(
        step("bad stuff", [call("echo", "c1", text="a")], finish=Finish.FILTER),
        says("fine"),
    )
    await house.user.says("hi")
    assert house.tools.runs["echo"] == 0
    assert await house.history() == ["U:hi", f"A:{notices.FILTERED}"]
    final = house.finals[0]
    assert (final.reason, final.text, final.calls) == (StopReason.FILTERED, notices.FILTERED, ())
    assert final.error is not None
    assert final.error.code == "filtered"
    assert len(house.model.requests) == 1
    await house.user.says("again")
    assert "bad stuff" not in str(house.model.last_request)
    assert house.finals[1].reason is StopReason.DONE


async def test_a_cut_answer_says_so_and_runs_nothing(house: House) -> None:
    """T07: what came before the length limit is the reply, visibly cut; its calls are closed unrun."""
    # Seen to fail with: a notice in the chat that is not on record (A44).
    cut = step("part", [call("echo", "c1", '{"text":"un')], finish=Finish.LENGTH)
    house.model.answers(cut, says("next"))
    await house.user.says("hi")
    assert await house.history() == ["U:hi", "A:part[c1]", "R c1!CUT_OFF"]
    assert house.tools.runs["echo"] == 0
    assert await house.replies() == [f"part\n\n{notices.CUT}"]
    assert house.finals[0].reason is StopReason.LENGTH
    stored = (await house.messages()).messages[1]
    assert isinstance(stored, AssistantMessage)
    assert (stored.text, stored.notice, stored.calls[0].arguments) == ("part", notices.CUT, {})
    await house.user.says("go on")
    assert house.model.last_request.lines[1:3] == ["A:part[c1]", "R c1!CUT_OFF"]


async def test_at_the_step_limit_the_model_sums_up_without_tools(house: House) -> None:
    """T10: after the last allowed step there is one closing request; its text is the reply."""
    house.settings.limits = TurnLimits(max_steps=2)
    house.model.answers(calls("echo", id="c1", text="1"), calls("echo", id="c2", text="2"), says("sum up"))
    await house.user.says("hi")
    assert [bool(request.tools) for request in house.model.requests] == [True, True, False]
    assert house.tools.runs["echo"] == 2
    final = house.finals[0]
    assert (final.reason, final.outcome, final.error) == (StopReason.STEP_LIMIT, Outcome.LIMITED, None)
    assert final.text == f"sum up\n\n{notices.STEP_LIMIT.format(steps=2)}"
    assert (await house.history())[-1] == "A:sum up"


@pytest.mark.parametrize(
    "closing",
    [
        pytest.param(fails(ProviderError("no", code="server_error", status=400)), id="it fails"),
        pytest.param(step("bad stuff", finish=Finish.FILTER), id="it is filtered"),
    ],
)
async def test_without_a_closing_answer_a_notice_ends_the_turn(house: House, closing: object) -> None:
    """T10 variant: when the closing request gives nothing usable the fixed notice is the reply, and no error."""
    house.settings.limits = TurnLimits(max_steps=1)
    house.model.answers(calls("echo", id="c1", text="1"), closing)  # type: ignore[arg-type]
    await house.user.says("hi")
    final = house.finals[0]
    notice = notices.STEP_LIMIT_SILENT.format(steps=1)
    assert (final.reason, final.text, final.error) == (StopReason.STEP_LIMIT, notice, None)
    assert await house.history() == ["U:hi", "A:[c1]", "R c1=1", f"A:{notice}"]


async def test_the_closing_request_is_metered_under_its_own_name(house: House) -> None:
    """A53: what the closing request costs is in the total, and told apart in the store."""
    # Seen to fail with: the closing request metered as a step (A53).
    house.settings.limits = TurnLimits(max_steps=1)
    house.model.answers(step(calls=[call("echo", "c1", text="1")], usage=(2, 3)), says("sum", usage=(10, 20)))
    await house.user.says("hi")
    assert house.finals[0].usage == Usage(input_tokens=12, output_tokens=23)
    rows = await house.engine.database.read(
        lambda db: db.execute("SELECT purpose, input_tokens FROM model_calls ORDER BY id").fetchall()
    )
    assert [tuple(row) for row in rows] == [("step", 2), ("closing", 10)]


async def test_a_pause_of_the_provider_runs_no_tools_and_is_continued_once(house: House) -> None:
    """K2: calls of a paused answer are closed unrun; the model is asked to go on once, a second pause ends the turn."""
    paused = step("thinking", [call("echo", "c1", text="a")], finish=Finish.PAUSE)
    house.model.answers(paused, says("still", finish=Finish.PAUSE))
    await house.user.says("hi")
    assert house.tools.runs["echo"] == 0
    assert await house.history() == ["U:hi", "A:thinking[c1]", "R c1!CUT_OFF", "A:still"]
    final = house.finals[0]
    assert final.reason is StopReason.PROVIDER_PAUSE
    assert final.text == f"thinking\n\nstill\n\n{notices.PROVIDER_PAUSED}"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(says("text", finish=Finish.NONE), StopReason.DONE, id="no label"),
        pytest.param(says("text", finish=Finish.TOOL), StopReason.UNKNOWN, id="tool label, no call"),
        pytest.param(says("text", finish=Finish.OTHER), StopReason.UNKNOWN, id="other label"),
    ],
)
async def test_the_label_of_an_answer_without_calls(house: House, answer: object, reason: StopReason) -> None:
    """K2: the text is delivered whatever the provider calls its end."""
    house.model.answers(answer)  # type: ignore[arg-type]
    await house.user.says("hi")
    assert (house.finals[0].reason, house.finals[0].text) == (reason, "text")


async def test_calls_run_whatever_a_normal_label_says(house: House) -> None:
    """K2: structure beats labels, so calls under `stop` run like any others; under `other` they never do."""
    house.model.answers(
        step(calls=[call("echo", "c1", text="a")], finish=Finish.STOP),
        step("end", calls=[call("echo", "c2", text="b")], finish=Finish.OTHER),
    )
    await house.user.says("hi")
    assert await house.history() == ["U:hi", "A:[c1]", "R c1=a", "A:end[c2]", "R c2!CUT_OFF"]


async def test_the_final_text_is_all_that_was_said_since_the_last_settled_message(house: House) -> None:
    """A41, A44: what the model said between its rounds is part of the reply, as the chat shows it."""
    house.model.answers(step("First I look.", [call("echo", "c1", text="a")]), says("Here it is."))
    await house.user.says("hi")
    assert house.finals[0].text == "First I look.\n\nHere it is."
    assert await house.replies() == [house.finals[0].text]
    assert await house.history() == ["U:hi", "A:First I look.[c1]", "R c1=a", "A:Here it is."]


async def test_text_of_a_failed_turn_that_people_saw_is_kept(house: House) -> None:
    """A42, A44: partial text stays in the history, marked, and the reply is that text with the notice."""
    house.settings.max_retries = 0
    house.model.answers(drops("Hel"))
    await house.user.says("hi")
    stored = (await house.messages()).messages[1]
    assert isinstance(stored, AssistantMessage)
    assert (stored.text, stored.partial) == ("Hel", True)
    assert stored.notice == notices.failure(ProviderError.user_text, stored.turn)
    assert await house.replies() == [f"Hel\n\n{stored.notice}"]


async def test_halves_of_characters_do_no_harm(house: House) -> None:
    """Lone surrogates in a model's text, names, arguments and results are stored as something, and end no turn."""
    house.model.answers(
        step("\ud83d", [call("echo", "c\ud83d", r'{"text": "\ud83d"}'), call("no\ud83d", "c2")]),
        says("x\ude00"),
    )
    await house.user.says("hi")
    assert house.finals[0].reason is StopReason.DONE
    assert [each.code for each in house.finals[0].calls] == [ResultCode.OK, ResultCode.UNKNOWN_TOOL]


async def test_an_answer_that_streams_no_text_is_shown_whole(house: House) -> None:
    """The events hold the whole text even when a provider sends none of it as deltas."""
    hold_free = step("whole", deltas=[])
    house.model.answers(hold_free)
    await house.user.says("hi")
    assert house.seen(TextShown) == [TextShown("whole")]
    assert len(house.seen(Final)) == 1


async def test_what_an_answer_shows_grows_with_its_stream(house: House) -> None:
    """K8: deltas are told as they come, not when the answer is whole."""
    answer, hold = held(says("Hello", deltas=["Hel", "lo"]), after=1)
    house.model.answers(answer)
    await house.user.writes("hi")
    await hold.reached()
    assert house.seen(TextShown) == [TextShown("Hel")]
    hold.release()
    await house.idle()
    assert house.seen(TextShown) == [TextShown("Hel"), TextShown("lo")]


async def test_a_model_that_writes_without_end_is_cut_off(house: House) -> None:
    """What people get stays within bounds and says that it was cut; the next turn works."""
    house.model.answers(says("word " * 30_000, deltas=["word " * 100] * 300), says("ok"))
    await house.user.says("hi")
    (final,) = house.finals
    assert (final.reason, final.outcome) == (StopReason.LENGTH, Outcome.LIMITED)
    assert LONGEST_ANSWER < len(final.text) < LONGEST_ANSWER + 1000
    await house.user.says("again")
    assert house.finals[1].text == "ok"
