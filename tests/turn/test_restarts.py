"""What a dead process leaves behind is taken up: calls, pauses, inputs, replies (spec K16, A20, A21, A52, A87)."""

import pytest

from zerobot.core.events import Outcome, StopReason, TurnStarted
from zerobot.core.messages import ResultCode
from zerobot.core.usage import Usage
from zerobot.testing.house import House
from zerobot.testing.model import Scripted, call, calls, held, says, step
from zerobot.testing.tools import Kind
from zerobot.turn import notices


def asking() -> Scripted:
    """One call that needs an operator."""
    return step("asking", [call("sup", "c1", x="1")], usage=(1, 2))


async def test_a_started_call_is_not_run_again(house: House) -> None:
    """T45: its result is `INTERRUPTED`, the model is asked with it, and the turn ends with one answer."""
    # Seen to fail with: a tool that runs before its start is stored (W6), open turns not looked for at the start (A87).
    house.model.answers(step(calls=[call("slow", "c1")], usage=(1, 2)), says("done", usage=(3, 4)))
    await house.user.writes("hi")
    await house.tools.has_started("slow")
    await house.restart()
    assert house.tools.runs["slow"] == 1
    assert await house.history() == ["U:hi", "A:[c1]", "R c1!INTERRUPTED", "A:done"]
    assert await house.replies() == ["done"]
    final = house.finals[0]
    assert (final.reason, final.usage) == (StopReason.DONE, Usage(input_tokens=4, output_tokens=6))
    assert house.seen(TurnStarted)[-1] == TurnStarted(final.turn, resumed=True)


async def test_a_result_that_the_store_wrote_is_signed_too(house: House) -> None:
    """BAR 3b: what a crash has closed gets its receipt before a model reads it, and keeps it."""
    # Seen to fail with: results signed only where a tool ends.
    house.model.answers(calls("slow", id="c1"), says("done"), says("again"))
    await house.user.writes("hi")
    await house.tools.has_started("slow")
    await house.restart()
    receipt = house.model.last_request.result_of("c1").receipt
    assert receipt
    await house.user.says("more")
    assert house.model.last_request.result_of("c1").receipt == receipt


async def test_after_two_crashes_in_a_row_the_turn_is_let_be(house: House) -> None:
    """T45 variant: a turn that was open at two crashes is closed `restarted`, and its author is told."""
    answer, hold = held(says("never"))
    house.model.answers(calls("slow", id="c1"), answer, says("ok"))
    await house.user.writes("hi")
    await house.tools.has_started("slow")
    await house.restart(wait=False)
    await hold.reached()
    await house.restart()
    final = house.finals[0]
    assert (final.reason, final.outcome, final.text) == (StopReason.RESTARTED, Outcome.FAILED, notices.RESTARTED)
    assert await house.replies() == [notices.RESTARTED]
    assert await house.history() == ["U:hi", "A:[c1]", "R c1!INTERRUPTED", f"A:{notices.RESTARTED}"]
    await house.user.says("again")
    assert house.finals[1].text == "ok"


async def test_two_crashes_with_a_pause_between_are_not_in_a_row(house: House) -> None:
    """Decision 5: a turn that came to a pause after the first crash has shown that it is not what kills."""
    # Seen to fail with: a pause taken up while approvals are open (A14).
    answer, hold = held(says("never"))
    house.model.answers(asking(), asking(), answer, says("done"))
    house.kill_at("Turns.record_step", after=False)
    await house.user.says("hi")
    await house.restart()
    await house.operator.decides("Approve")
    await hold.reached()
    await house.restart()
    assert [final.text for final in house.finals] == ["done"]


async def test_a_pause_outlives_its_process(house: House) -> None:
    """T56, A20, A21: asked before the crash, pressed after it: the same history, one run, the reply in its chat."""
    # Seen to fail with: the open round of a pause loaded as interrupted (A21).
    house.model.answers(asking(), says("done", usage=(3, 4)))
    await house.user.says("hi")
    asked = (await house.operator.sees())[0]
    await house.restart()
    assert [each.id for each in await house.operator.sees()] == [asked.id]
    await house.operator.presses("Approve", approval=asked)
    assert await house.history() == ["U:hi", "A:asking[c1]", "R c1=did 1", "A:done"]
    assert house.tools.runs["sup"] == 1
    last = (await house.engine.outbox.unfinished())[-1]
    assert (last.text, last.place, last.reply_to) == ("done", house.user.key.place, "m1")
    assert house.finals[0].usage == Usage(input_tokens=4, output_tokens=6)


async def test_what_was_done_before_a_pause_is_in_its_final(house: House) -> None:
    """A06, A41: the one final names the calls of all processes that worked on the turn, and what they came to."""
    house.model.answers(step(calls=[call("echo", "c1", text="a"), call("boom", "c2")]), asking(), says("done"))
    await house.user.says("hi")
    await house.restart()
    await house.operator.presses("Approve")
    (final,) = house.finals
    assert [(each.name, each.code) for each in final.calls] == [
        ("echo", ResultCode.OK),
        ("boom", ResultCode.FAILED),
        ("sup", ResultCode.OK),
    ]
    assert (final.steps, final.text) == (3, "done")


async def test_where_a_turn_has_read_is_in_its_final(house: House) -> None:
    """T85, W23: sources of before a pause and a restart are told; what failed is no source, and none stands twice."""
    work = house.tools.doubles["free"].work
    house.tools.add("web", work, Kind(destination="https://a.example/page"))
    house.tools.add("dead", house.tools.doubles["boom"].work, Kind(destination="https://b.example/"))
    reading = [call("web", "c1"), call("dead", "c2")]
    house.model.answers(step(calls=reading), asking(), calls("web", id="c4"), says("done"))
    await house.user.says("hi")
    await house.restart()
    await house.operator.presses("Approve")
    (final,) = house.finals
    assert final.sources == ("https://a.example/page",)


async def test_partial_decisions_outlive_their_process(house: House) -> None:
    """A14, A20: what was decided before the crash stays decided; the continuation waits for the rest."""
    house.model.answers(step(calls=[call("sup", "c1", x="1"), call("sup", "c2", x="2")]), says("done"))
    await house.user.says("hi")
    await house.operator.presses("Approve")
    await house.restart()
    assert house.tools.started == []
    assert len(await house.operator.sees()) == 1
    await house.operator.presses("Deny")
    assert (await house.history())[2:] == ["R c1=did 1", "R c2!DENIED", "A:done"]


async def test_an_approval_whose_process_died_runs_once(house: House) -> None:
    """A20: approved and not started is run after the start; started without a result never is."""
    # Seen to fail with: started calls neither closed at the start nor known to be started (A20).
    house.model.answers(step(calls=[call("sup", "c1", x="1"), call("supw", "c2", p="f")]), says("done"))
    await house.user.says("hi")
    await house.tools.release("sup 1")
    await house.operator.presses("Approve")
    await house.operator.decides("Approve")
    await house.tools.has_started("supw f")
    await house.settles()
    await house.restart()
    assert (await house.history())[2:] == ["R c1=did 1", "R c2!INTERRUPTED", "A:done"]
    assert sorted(house.tools.started) == ["sup 1", "supw f"]


async def test_requests_that_nobody_saw_are_shown_after_the_start(house: House) -> None:
    """A20, A01: a pause that was saved, and whose process died before anybody saw it, is shown by the next one."""
    # Seen to fail with: only failed prompts shown again (A20).
    house.model.answers(asking(), says("done"))
    house.kill_at("Turns.pause")
    await house.user.says("hi")
    await house.restart()
    assert len(await house.engine.approvals.unshown()) == 1
    await house.operator.sees()
    assert await house.engine.approvals.unshown() == []
    await house.operator.presses("Approve")
    assert await house.replies() == ["asking", "done"]


async def test_a_time_that_is_over_while_the_process_is_down_counts(house: House) -> None:
    """A22: what nobody has decided in time is expired after the start, and the turn goes on."""
    house.model.answers(asking(), says("nobody came"))
    await house.user.says("hi")
    await house.restart()
    await house.operator.lets_time_pass(600)
    assert (await house.history())[2:] == ["R c1!EXPIRED", "A:nobody came"]


@pytest.mark.parametrize(
    ("point", "after"),
    [
        ("Turns.next", False),
        ("Turns.next", True),
        ("Turns.record_step", False),
        ("Turns.record_step", True),
        ("Turns.start_call", False),
        ("Turns.start_call", True),
        ("Turns.finish_calls", False),
        ("Turns.finish_calls", True),
        ("Turns.finish", False),
        ("Turns.finish", True),
    ],
)
async def test_wherever_the_process_dies_there_is_one_answer(house: House, point: str, *, after: bool) -> None:
    """Design 3: no input is lost or worked on twice, no tool runs twice, one reply is queued, whatever the moment."""
    # Seen to fail with: waiting inputs not looked for at the start (A87).
    house.model.answers(calls("echo", id="c1", text="a"), to="hi")
    house.model.answers(says("done"), to="hi")
    if point == "Turns.record_step" and not after:
        house.model._script.insert(0, house.model._script[0])
    if point == "Turns.finish" and not after:
        house.model.answers(says("done"), to="hi")
    house.kill_at(point, after=after)
    await house.user.says("hi")
    await house.restart()
    history = await house.history()
    interrupted = (point, after) in {("Turns.start_call", True), ("Turns.finish_calls", False)}
    assert history == ["U:hi", "A:[c1]", "R c1!INTERRUPTED" if interrupted else "R c1=a", "A:done"]
    assert house.tools.runs["echo"] == (0 if (point, after) == ("Turns.start_call", True) else 1)
    assert await house.replies() == ["done"]
    assert house.model.unused == 0


async def test_inputs_that_waited_run_after_the_start(house: House) -> None:
    """A87: every accepted input is answered, in order, also when the process has died meanwhile."""
    answer, hold = held(says("never"))
    house.model.answers(answer, says("one"), says("two"))
    await house.user.writes("1")
    await hold.reached()
    await house.user.writes("2")
    await house.restart()
    assert await house.history() == ["U:1", "A:one", "U:2", "A:two"]


async def test_a_repeated_event_is_known_after_the_start(house: House) -> None:
    """A88: the same platform event is one turn, however often and to which process it comes."""
    # Seen to fail with: the event not looked up (A88).
    house.model.answers(says("ok"))
    await house.user.says("hi", event="e-1")
    await house.user.says("hi", event="e-1")
    await house.restart()
    await house.user.says("hi", event="e-1")
    assert await house.history() == ["U:hi", "A:ok"]
    assert len(house.finals) == 1


async def test_a_message_that_ended_a_pause_keeps_its_word_after_a_crash(house: House) -> None:
    """A30: superseding is one transaction; the line about it opens the reply also when the process died right after."""
    house.model.answers(asking(), says("fine"))
    await house.user.says("hi")
    house.kill_at("Turns.next")
    await house.user.says("never mind")
    await house.restart()
    assert await house.history() == ["U:hi", "A:asking[c1]", "R c1!NOT_RUN", "U:never mind", "A:fine"]
    assert await house.replies() == ["asking", "(The earlier request, `sup`, did not run.)\n\nfine"]


async def test_a_graceful_stop_between_crashes_resets_the_count(house: House) -> None:
    """Decision 5: only crashes count, and only in a row."""
    first, one = held(says("never"))
    second, two = held(says("never"))
    house.model.answers(first, second, second, says("done"))
    await house.user.writes("hi")
    await one.reached()
    await house.restart(wait=False)
    await two.reached()
    house.engine.shut_down()
    await house.idle()
    await house.restart(wait=False)
    await house.settles()
    await house.restart()
    assert [final.text for final in house.finals] == ["done"]


async def test_a_call_interrupted_by_a_crash_says_that_nobody_knows(house: House) -> None:
    """0.4: the model reads that the effect is not known."""
    house.model.answers(calls("slow", id="c1"), says("done"))
    await house.user.writes("hi")
    await house.tools.has_started("slow")
    await house.restart()
    result = house.model.last_request.result_of("c1")
    assert result.code is ResultCode.INTERRUPTED
    assert "not known" in result.text
