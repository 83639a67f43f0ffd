"""What keeps a turn within bounds: few questions, the emergency stop, own secrets, no way past a verdict."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.security.worlds import ask
from zerobot.core.access import Verdict, VerdictKind
from zerobot.core.approvals import ApprovalState
from zerobot.core.events import ToolStarted, TurnEvent
from zerobot.core.hooks import Hooks, Replace
from zerobot.core.ids import CallId
from zerobot.core.messages import RecordedCall, ResultCode
from zerobot.security.bounds import Bounds
from zerobot.security.own_secrets import OwnSecrets
from zerobot.security.policy import AccessPolicy
from zerobot.testing.house import House
from zerobot.testing.model import call, calls, says, step
from zerobot.turn.authorize import DENIALS_A_TURN, OPEN_IN_CONVERSATION, OPEN_OF_ASKER, Allowed

SECRET = "tk-4711-winter-blue-owl"


async def test_fifty_calls_in_one_answer_are_few_questions(house: House) -> None:
    """V043, R25: what is beyond the limit does not run, nobody is asked for it, and the model is told so."""
    # Seen to fail with: no limit.
    batch = [call("sup", f"c{number}", x=str(number)) for number in range(50)]
    house.model.answers(step(calls=batch), says("ok"))
    await house.user.says("hi")
    asked = await house.operator.sees()
    assert len(asked) == OPEN_IN_CONVERSATION
    assert house.tools.started == []
    for each in asked:
        await house.operator.presses("Deny", approval=each)
    results = [house.model.last_request.result_of(f"c{number}").code for number in range(50)]
    assert results == [ResultCode.DENIED] * OPEN_IN_CONVERSATION + [ResultCode.NOT_RUN] * (50 - OPEN_IN_CONVERSATION)


async def test_ten_equal_calls_at_once_are_one_question(house: House) -> None:
    """V045: each call is answered, and the operator is asked once."""
    batch = [call("sup", f"c{number}", x="1") for number in range(10)]
    house.model.answers(step(calls=batch), says("ok"))
    await house.user.says("hi")
    assert len(await house.operator.sees()) == 1
    await house.operator.presses("Deny")
    assert {house.model.last_request.result_of(f"c{number}").code for number in range(10)} == {ResultCode.DENIED}


async def test_one_person_s_conversations_together_ask_little_enough(house: House) -> None:
    """R25: many chats of one person do not add up to a flood; what comes too late is told. Others may ask meanwhile."""
    chats = [house.other("eve", f"chat {number}") for number in range(4)]
    batches = [
        step(calls=[call("sup", f"c{number}", x=f"{chat} {number}") for number in range(OPEN_IN_CONVERSATION)])
        for chat in range(5)
    ]
    house.model.answers(*batches[:4], says("too many"), batches[4])
    for chat in chats:
        await chat.says("hi")
    assert len(await house.operator.sees()) == OPEN_OF_ASKER
    assert (await house.history(chats[-1]))[-1] == "A:too many"
    await house.user.says("hi")
    assert len(await house.operator.sees()) == OPEN_OF_ASKER + OPEN_IN_CONVERSATION
    assert house.tools.started == []


async def test_what_was_denied_is_not_asked_again_in_the_same_turn(house: House) -> None:
    """A second wish for the same is a no without a question; the next turn may ask anew."""
    house.model.answers(
        calls("sup", id="c1", x="1"), calls("sup", id="c2", x="1"), says("ok"), calls("sup", id="c3", x="1")
    )
    await house.user.says("hi")
    await house.operator.presses("Deny", reason="not now")
    assert await house.operator.sees() == []
    assert house.model.last_request.result_of("c2").code is ResultCode.DENIED
    await house.user.says("now?")
    assert len(await house.operator.sees()) == 1


async def test_a_model_that_goes_on_with_new_wordings_asks_nobody_any_more(house: House) -> None:
    """After some denials in a turn operators are left in peace, whatever the arguments."""
    wishes = [calls("sup", id=f"c{number}", x=str(number)) for number in range(DENIALS_A_TURN + 1)]
    house.model.answers(*wishes, says("I give up"))
    await house.user.says("hi")
    for _ in range(DENIALS_A_TURN):
        await house.operator.presses("Deny")
    assert await house.operator.sees() == []
    assert house.model.last_request.result_of(f"c{DENIALS_A_TURN}").code is ResultCode.DENIED
    assert await house.replies() == ["I give up"]


# -- the emergency stop -----------------------------------------------------------------------------------------------


async def test_the_emergency_stop_ends_what_runs(house: House) -> None:
    """R39: a running tool is ended at once, its result says that nobody knows what it did, and the turn goes on."""
    house.model.answers(calls("slow", id="c1"), says("It was stopped."))
    await house.user.writes("hi")
    await house.settles()
    assert house.tools.runs["slow"] == 1
    house.settings.frozen.set()
    await house.idle()
    result = house.model.last_request.result_of("c1")
    assert result.code is ResultCode.CANCELLED
    assert "stopped all tools" in result.text
    assert await house.replies() == ["It was stopped."]


async def test_nothing_begins_while_all_is_stopped_not_even_what_was_approved(house: House) -> None:
    """A press counts as a decision, but the call is judged again when it would run."""
    house.model.answers(calls("sup", id="c1", x="1"), says("ok"))
    await house.user.says("hi")
    house.settings.frozen.set()
    await house.operator.presses("Approve")
    assert house.model.last_request.result_of("c1").code is ResultCode.BLOCKED
    assert house.tools.started == []


async def test_a_stop_between_the_verdict_and_the_start_still_counts(house: House) -> None:
    """What was allowed a moment ago does not begin: the switch is looked at when the call is on record as started."""

    def throw(event: TurnEvent) -> None:
        if isinstance(event, ToolStarted):
            house.settings.frozen.set()

    house.settings.listener = throw
    house.model.answers(calls("echo", id="c1", text="a"), says("ok"))
    await house.user.says("hi")
    assert house.tools.started == []
    assert house.model.last_request.result_of("c1").code is ResultCode.BLOCKED


# -- own secrets ------------------------------------------------------------------------------------------------------


async def test_a_call_with_one_of_our_secrets_asks_whatever_allows_it(house: House) -> None:
    """R15: a harmless tool that would run by itself is asked for when its arguments hold a secret of the daemon."""
    house.settings.own_secrets = OwnSecrets([("channels.test.bot_token", SECRET)])
    house.model.answers(
        step(calls=[call("echo", "c1", text=f"see {SECRET}"), call("echo", "c2", text="b")]), says("ok")
    )
    await house.user.says("hi")
    (asked,) = await house.operator.sees()
    assert (asked.rule, asked.grantable) == ("own_secret", False)
    assert "channels.test.bot_token" in asked.why
    assert SECRET not in asked.why
    assert house.tools.started == ["echo b"]
    await house.operator.presses("Approve")
    assert len(house.tools.started) == 2


# -- no way past a verdict --------------------------------------------------------------------------------------------


async def test_what_may_run_cannot_be_made_up(house: House) -> None:
    """R01: a verdict that asks allows nothing without an approval, and only with the one of this very call."""
    house.model.answers(calls("sup", id="c1", x="1"))
    await house.user.says("hi")
    (asked,) = await house.operator.sees()
    verdict = ask("sup", house.tools["sup"].resolve({"x": "1"}), AccessPolicy(bounds=Bounds(workspace=Path("/srv/ws"))))
    assert verdict.kind is VerdictKind.ASK
    recorded = RecordedCall(
        id=asked.call, wire_id="c1", name="sup", arguments={"x": "1"}, raw_arguments='{"x": "1"}', position=0
    )
    approved = replace(asked, state=ApprovalState.APPROVED)
    assert Allowed(recorded, verdict, approved).execution is verdict.execution
    for approval in (None, asked, replace(asked, state=ApprovalState.DENIED), replace(approved, call=CallId("c9"))):
        with pytest.raises(TypeError, match="nobody has allowed"):
            Allowed(recorded, verdict, approval)
    with pytest.raises(ValueError, match="maker"):
        replace(verdict, rule="full")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="makes a verdict"):
        Verdict(VerdictKind.ALLOW, "full", "", verdict.execution, object())


async def test_the_model_never_learns_what_authorises(house: House) -> None:
    """R21: no id and no code of an approval stands in any request to a model, whatever became of it."""
    house.model.answers(calls("sup", id="c1", x="1"), calls("sup", id="c2", x="2"), says("ok"))
    await house.user.says("hi")
    seen = await house.operator.sees()
    await house.operator.presses("Approve")
    seen += await house.operator.sees()
    await house.operator.presses("Deny", reason="no")
    said = repr(house.model.requests)
    assert len(seen) == 2
    assert len(house.model.requests) == 3
    for asked in seen:
        assert asked.id not in said
        assert asked.code not in said


class Fickle:
    """A hook that writes other arguments whenever it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def prepare(self, call: RecordedCall, batch: Sequence[RecordedCall]) -> Replace:
        """Change the arguments."""
        self.asked += 1
        return Replace({"x": f"version {self.asked}"})


async def test_a_hook_cannot_change_what_was_approved(house: House) -> None:
    """V033: what runs is what was shown, whatever a hook would like by then."""
    house.settings.hooks = Hooks(prepare=(Fickle(),))
    house.model.answers(calls("sup", id="c1", x="0"), says("ok"))
    await house.user.says("hi")
    (asked,) = await house.operator.sees()
    assert dict(asked.arguments) == {"x": "version 1"}
    await house.operator.presses("Approve")
    assert house.tools.started == ["sup version 1"]


async def test_a_clock_that_jumps_back_lets_nothing_run(house: House) -> None:
    """V057: a day earlier the request may stay open for longer, but without a press nothing runs."""
    house.model.answers(calls("sup", id="c1", x="1"))
    await house.user.says("hi")
    house.clock.jump(-86_400)
    assert await house.operator.lets_time_pass(8) == []
    assert house.tools.started == []
    assert len(await house.operator.sees()) == 1
