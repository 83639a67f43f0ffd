"""Calls and hooks: what becomes of each call of a batch before and after it runs (spec K3, K4)."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from zerobot.core.events import StopReason, ToolProgress
from zerobot.core.hooks import Answer, Block, Hooks, Replace
from zerobot.core.messages import RecordedCall, ResultCode, ToolResult
from zerobot.core.tools import Execution, ToolContext, ToolOutput
from zerobot.testing.house import House
from zerobot.testing.model import call, calls, says, step
from zerobot.testing.tools import SECRET, Arguments, Kind


@dataclass
class Preparing:
    """A prepare hook that answers for some calls."""

    says: Mapping[str, Block | Answer | Replace | Exception]
    saw: list[str]

    async def prepare(self, call: RecordedCall, batch: Sequence[RecordedCall]) -> Block | Answer | Replace | None:
        """Answer for a call by its wire id."""
        self.saw.append(f"{call.wire_id} of {len(batch)}")
        said = self.says.get(call.wire_id)
        if isinstance(said, Exception):
            raise said
        return said


class Refusing:
    """An authorize hook that always fails."""

    async def authorize(self, call: RecordedCall, execution: Execution) -> Block | Answer | None:
        """Fail."""
        raise RuntimeError("the hook is broken")


class Mumbling:
    """Hooks that answer with what is no answer."""

    async def prepare(self, call: RecordedCall, batch: Sequence[RecordedCall]) -> Block | Answer | Replace | None:
        """Say something to c1."""
        return "yes" if call.wire_id == "c1" else None  # type: ignore[return-value]

    async def authorize(self, call: RecordedCall, execution: Execution) -> Block | Answer | None:
        """Say something to c2."""
        return True if call.wire_id == "c2" else None  # type: ignore[return-value]

    async def finalize(self, call: RecordedCall, result: ToolResult) -> ToolResult:
        """Return rubbish for c3."""
        return "fine" if call.wire_id == "c3" else result  # type: ignore[return-value]


@dataclass
class Keeping:
    """A finalize hook that keeps another text, or fails."""

    text: str | None

    async def finalize(self, call: RecordedCall, result: ToolResult) -> ToolResult:
        """Replace the text; fail when there is none."""
        if self.text is None:
            raise RuntimeError(f"cannot check {result.text}")
        return ToolResult(code=result.code, text=self.text)


async def test_bad_calls_become_error_results_and_the_batch_goes_on(house: House) -> None:
    """T13: a failing tool, wrong arguments and an unknown tool are results in the model's order; the loop goes on."""
    batch = [call("echo", "c1", text="ok"), call("boom", "c2"), call("num", "c3", value="x"), call("ghost", "c4")]
    house.model.answers(step(calls=batch), says("done"))
    await house.user.says("hi")
    assert (await house.history())[2:] == ["R c1=ok", "R c2!FAILED", "R c3!BAD_ARGS", "R c4!UNKNOWN_TOOL", "A:done"]
    assert "kaput" in house.model.last_request.result_of("c2").text
    assert house.tools.runs == {"echo": 1, "boom": 1}


@pytest.mark.parametrize(
    "raw",
    [
        "{bad",
        "[1]",
        '"text"',
        "{}{}",
        '{"x": NaN}',
        '{"x": -Infinity}',
        '{"x": 1e999}',
        pytest.param('{"x": ' + "[" * 500 + "]" * 500 + "}", id="nested too deep"),
        pytest.param('{"x": ' + "9" * 5000 + "}", id="a number too long"),
    ],
)
async def test_arguments_that_are_no_json_object_never_run_the_tool(house: House, raw: str) -> None:
    """T14: nothing is repaired and nothing becomes `{}` silently, not even for a tool that requires nothing."""
    house.model.answers(step(calls=[call("free", "c1", raw)]), says("ok"))
    await house.user.says("hi")
    assert house.tools.runs["free"] == 0
    assert house.model.last_request.result_of("c1").code is ResultCode.BAD_ARGS
    assert house.model.last_request.lines == ["U:hi", "A:[c1]", "R c1!BAD_ARGS"]
    message = house.model.last_request.request.messages[1]
    assert json.dumps(message.calls[0].arguments) == "{}"  # type: ignore[union-attr]


@pytest.mark.parametrize("raw", ["", "  ", "null", "{}"])
async def test_no_arguments_are_an_empty_object(house: House, raw: str) -> None:
    """K4: a call without arguments is sound when its tool requires none."""
    house.model.answers(step(calls=[call("free", "c1", raw)]), says("ok"))
    await house.user.says("hi")
    assert house.model.last_request.lines[-1] == "R c1=did"


async def test_a_prepare_hook_blocks_one_call_only(house: House) -> None:
    """T16: the blocked call carries the hook's reason; its neighbours run, and the order stays."""
    hook = Preparing({"c2": Block("forbidden")}, [])
    house.settings.hooks = Hooks(prepare=(hook,))
    house.model.answers(step(calls=[call("echo", f"c{n}", text=str(n)) for n in (1, 2, 3)]), says("ok"))
    await house.user.says("hi")
    assert (await house.history())[2:5] == ["R c1=1", "R c2!BLOCKED", "R c3=3"]
    assert "forbidden" in house.model.last_request.result_of("c2").text
    assert await house.operator.sees() == []
    assert hook.saw == ["c1 of 3", "c2 of 3", "c3 of 3"]


async def test_arguments_from_a_hook_are_what_runs_and_what_the_model_reads(house: House) -> None:
    """K3: replaced arguments are checked again, shown, recorded and run; wrong ones are an error result."""
    house.settings.hooks = Hooks(prepare=(Preparing({"c1": Replace({"text": "new"}), "c2": Replace({"text": 7})}, []),))
    house.model.answers(step(calls=[call("echo", "c1", text="old"), call("echo", "c2", text="old")]), says("ok"))
    await house.user.says("hi")
    assert (await house.history())[2:4] == ["R c1=new", "R c2!BAD_ARGS"]
    said = house.model.last_request.request.messages[1]
    stored = (await house.messages()).messages[1]
    assert [c.arguments for c in said.calls] == [{"text": "new"}, {"text": 7}]  # type: ignore[union-attr]
    assert [c.arguments for c in stored.calls] == [{"text": "new"}, {"text": 7}]  # type: ignore[union-attr]


async def test_an_operator_is_shown_the_arguments_of_the_hook(house: House) -> None:
    """A03: what is asked for is what will run, also after a hook has changed it, and it is asked once."""
    hook = Preparing({"c1": Replace({"x": "shown"})}, [])
    house.settings.hooks = Hooks(prepare=(hook,))
    house.model.answers(calls("sup", id="c1", x="said"), says("ok"))
    await house.user.says("hi")
    asked = await house.operator.sees()
    assert [dict(approval.arguments) for approval in asked] == [{"x": "shown"}]
    await house.operator.presses("Approve")
    assert house.tools.started == ["sup shown"]
    assert hook.saw == ["c1 of 1"]


async def test_a_hook_may_answer_itself(house: House) -> None:
    """K3, K4: an answer of a hook is the result; one that stops the turn skips the rest of the batch."""
    answer = Answer(ToolResult(code=ResultCode.OK, text="from the hook"), stop_turn=True)
    house.settings.hooks = Hooks(prepare=(Preparing({"c1": answer}, []),))
    house.model.answers(step("Look.", [call("echo", "c1", text="a"), call("echo", "c2", text="b")]))
    await house.user.says("hi")
    assert await house.history() == ["U:hi", "A:Look.[c1 c2]", "R c1=from the hook", "R c2!SKIPPED"]
    assert (house.finals[0].reason, house.finals[0].text) == (StopReason.STOPPED_BY_TOOL, "Look.")


async def test_a_failing_hook_fails_closed(house: House) -> None:
    """K3, A25: whatever a hook raises, its call does not run, and its words reach neither model nor chat."""
    # Seen to fail with: a failing gate passed over (A25).
    house.settings.hooks = Hooks(prepare=(Preparing({"c1": RuntimeError("oops")}, []),), authorize=(Refusing(),))
    house.model.answers(step(calls=[call("echo", "c1", text="a"), call("echo", "c2", text="b")]), says("ok"))
    await house.user.says("hi")
    assert (await house.history())[2:4] == ["R c1!BLOCKED", "R c2!BLOCKED"]
    assert house.tools.runs["echo"] == 0
    assert "oops" not in str(house.model.last_request)
    assert "broken" not in str(house.model.last_request)


async def test_an_answer_of_a_hook_that_is_none_fails_closed(house: House) -> None:
    """A25: what is not a clear answer is no yes: the call does not run, its result is not kept, the turn goes on."""
    mumbling = Mumbling()
    house.settings.hooks = Hooks(prepare=(mumbling,), authorize=(mumbling,), finalize=(mumbling,))
    house.model.answers(step(calls=[call("echo", f"c{n}", text=str(n)) for n in (1, 2, 3, 4)]), says("ok"))
    await house.user.says("hi")
    assert (await house.history())[2:6] == ["R c1!BLOCKED", "R c2!BLOCKED", "R c3!WITHHELD", "R c4=4"]


async def test_a_result_that_cannot_be_checked_is_withheld(house: House) -> None:
    """T20: when the last hook fails, the raw output is nowhere: history, events, requests, replies, database."""
    house.settings.hooks = Hooks(finalize=(Keeping(None),))
    house.model.answers(calls("vault", id="c1"), says("ok"))
    await house.user.says("hi")
    assert house.model.last_request.result_of("c1").code is ResultCode.WITHHELD
    dump = await house.engine.database.read(
        lambda db: [
            tuple(row)
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for row in db.execute(f"SELECT * FROM {table}")
        ]
    )
    said = [str(dump), str(house.events), str([r.request for r in house.model.requests]), str(house.finals)]
    assert not any(SECRET in text for text in said)


async def test_a_refusal_that_cannot_be_checked_still_says_that_nothing_ran(house: House) -> None:
    """0.4: whatever a hook does, no result claims that a tool ran that did not."""
    house.settings.hooks = Hooks(finalize=(Keeping(None),))
    house.model.answers(calls("ghost", id="c1"), says("ok"))
    await house.user.says("hi")
    refused = house.model.last_request.result_of("c1")
    assert refused.code is ResultCode.BLOCKED
    assert "did not run" in refused.text


async def test_replaced_arguments_that_are_no_json_block_the_call(house: House) -> None:
    """K3: a hook that replaces arguments with what cannot be recorded has failed, and its call does not run."""
    hook = Preparing({"c1": Replace({"text": float("nan")}), "c2": Replace({"text": object()})}, [])
    house.settings.hooks = Hooks(prepare=(hook,))
    house.model.answers(step(calls=[call("free", "c1"), call("free", "c2")]), says("ok"))
    await house.user.says("hi")
    assert (await house.history())[2:4] == ["R c1!BLOCKED", "R c2!BLOCKED"]


async def test_a_result_is_kept_as_the_hook_left_it(house: House) -> None:
    """T20 variant: what the hook returns is what is stored and sent."""
    house.settings.hooks = Hooks(finalize=(Keeping("redacted"),))
    house.model.answers(calls("vault", id="c1"), says("ok"))
    await house.user.says("hi")
    assert house.model.last_request.lines[-1] == "R c1=redacted"
    assert (await house.history())[2] == "R c1=redacted"


async def test_every_result_is_signed(house: House) -> None:
    """Each result that the model reads carries a receipt, whoever wrote it."""
    house.model.answers(step(calls=[call("echo", "c1", text="a"), call("ghost", "c2")]), says("ok"))
    await house.user.says("hi")
    assert all(house.model.last_request.result_of(each).receipt for each in ("c1", "c2"))


async def test_no_result_is_empty_and_none_is_longer_than_allowed(house: House) -> None:
    """K4, K7: an empty output is said in words; a long one keeps its head and its tail."""
    house.model.answers(step(calls=[call("echo", "c1", text=" "), call("echo", "c2", text="x" * 60_000)]), says("ok"))
    await house.user.says("hi")
    assert house.model.last_request.result_of("c1").text == "(no output)"
    long = house.model.last_request.result_of("c2").text
    assert "10000 characters left out" in long
    assert len(long) < 50_100


async def test_whatever_a_tool_does_wrong_stays_with_its_call(house: House) -> None:
    """K4: a tool that returns rubbish, raises before it awaits, or fails to resolve spoils nothing else."""

    async def rubbish(_: str, __: Arguments, ___: ToolContext) -> ToolOutput:
        return "text"  # type: ignore[return-value]

    def early(_: str, __: Arguments, ___: ToolContext) -> ToolOutput:
        raise RuntimeError("too early")

    def unresolvable(_: Arguments) -> object:
        raise KeyError("no such path")

    house.tools.add("rubbish", rubbish)
    house.tools.add("early", early)  # type: ignore[arg-type]
    house.tools.add("odd", rubbish, Kind(accesses=unresolvable))  # type: ignore[arg-type]
    batch = [call("rubbish", "c1"), call("early", "c2"), call("odd", "c3"), call("echo", "c4", text="a")]
    house.model.answers(step(calls=batch), says("ok"))
    await house.user.says("hi")
    assert (await house.history())[2:6] == ["R c1!BAD_RESULT", "R c2!FAILED", "R c3!BLOCKED", "R c4=a"]


async def test_a_tool_that_cancels_itself_has_failed(house: House) -> None:
    """K4: a tool's own cancellation is its failure, not the turn's end."""

    async def gives_up(_: str, __: Arguments, ___: ToolContext) -> ToolOutput:
        raise asyncio.CancelledError

    house.tools.add("quitter", gives_up)
    house.model.answers(calls("quitter", id="c1"), says("ok"))
    await house.user.says("hi")
    assert house.model.last_request.lines[-1] == "R c1!FAILED"


async def test_a_tool_that_takes_too_long_is_ended(house: House) -> None:
    """K4: beyond its time limit a call is TIMEOUT, and the turn goes on."""
    house.tools.add("late", house.tools.doubles["slow"].work, Kind(timeout=0.01))
    house.model.answers(calls("late", id="c1"), says("ok"))
    await house.user.says("hi")
    assert house.model.last_request.result_of("c1").code is ResultCode.TIMEOUT


async def test_progress_after_the_result_is_not_shown(house: House) -> None:
    """W3: the progress callback is dead once the call has its result."""
    # Seen to fail with: a callback that lives on (A85).
    shown = []

    async def chatty(_: str, __: Arguments, context: ToolContext) -> ToolOutput:
        context.progress("half")
        shown.append(context)
        return ToolOutput(text="done")

    house.tools.add("chatty", chatty)
    house.model.answers(calls("chatty", id="c1"), says("ok"))
    await house.user.says("hi")
    shown[0].progress("late")
    assert [event.text for event in house.seen(ToolProgress)] == ["half"]  # type: ignore[union-attr]


async def test_a_tool_may_end_the_turn(house: House) -> None:
    """K4: stop-batch ends the turn when it succeeds; later calls are on record as skipped, and never run."""
    house.model.answers(
        step("Bye.", [call("echo", "c1", text="a"), call("stopper", "c2"), call("echo", "c3", text="b")])
    )
    await house.user.says("hi")
    assert await house.history() == ["U:hi", "A:Bye.[c1 c2 c3]", "R c1=a", "R c2=that is all", "R c3!SKIPPED"]
    assert house.finals[0].reason is StopReason.STOPPED_BY_TOOL
    assert house.tools.started == ["echo a", "stopper"]


async def test_a_failing_tool_ends_the_batch_but_not_the_turn(house: House) -> None:
    """K4, W5: when the call that would end the turn fails, the rest is skipped and the model may react."""
    house.tools.add("ender", house.tools.doubles["boom"].work, Kind(stop_batch=True))
    house.model.answers(step(calls=[call("ender", "c1"), call("echo", "c2", text="b")]), says("I see."))
    await house.user.says("hi")
    assert await house.history() == ["U:hi", "A:[c1 c2]", "R c1!FAILED", "R c2!SKIPPED", "A:I see."]


async def test_repeated_and_missing_ids_get_one_of_ours(house: House) -> None:
    """W4: two calls under one id, or none, are two calls with a result each, in this step and the next."""
    house.model.answers(
        step(calls=[call("echo", "c1", text="a"), call("echo", "c1", text="b"), call("echo", "", text="c")]),
        calls("echo", id="c1", text="d"),
        says("ok"),
    )
    await house.user.says("hi")
    results = [line.split("=")[1] for line in await house.history() if line.startswith("R ")]
    assert results == ["a", "b", "c", "d"]
    assert house.tools.started == ["echo a", "echo b", "echo c", "echo d"]


async def test_a_denied_tool_never_runs(house: House) -> None:
    """A26: a rule that blocks is a result with its reason, and nobody is asked."""
    house.settings.denied_tools = ("sup",)
    house.model.answers(calls("sup", id="c1", x="1"), says("ok"))
    await house.user.says("hi")
    assert house.model.last_request.result_of("c1").code is ResultCode.BLOCKED
    assert await house.operator.sees() == []
