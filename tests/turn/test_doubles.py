"""The doubles themselves: what they promise to tests must not be taken on trust."""

from dataclasses import replace
from pathlib import Path

import pytest

from zerobot.core.events import StopReason
from zerobot.core.ids import CallId, TurnId
from zerobot.core.messages import AssistantMessage, Message, RecordedCall, ResultCode, ToolResult, UserMessage
from zerobot.testing.house import House, open_house
from zerobot.testing.model import faults_of, lines_of, says

T1 = TurnId("t1")
HI = UserMessage(seq=1, turn=T1, text="hi")
CALL = RecordedCall(
    id=CallId("c1"),
    wire_id="c1",
    name="echo",
    arguments={},
    raw_arguments="",
    position=0,
    result=ToolResult(code=ResultCode.OK, text="a"),
)
OPEN = AssistantMessage(seq=2, turn=T1, calls=(replace(CALL, result=None),))
CLOSED = AssistantMessage(seq=2, turn=T1, calls=(CALL,))
EMPTY = AssistantMessage(seq=3, turn=T1, text=" ")


@pytest.mark.parametrize(
    ("messages", "valid", "sendable"),
    [
        pytest.param([HI, CLOSED], True, True, id="a closed round"),
        pytest.param([HI, OPEN], True, False, id="an open last round"),
        pytest.param([HI, OPEN, HI], False, False, id="an open round in the middle"),
        pytest.param([CLOSED], False, False, id="no question"),
        pytest.param([HI, EMPTY], False, False, id="a message that says nothing"),
        pytest.param([HI, CLOSED, CLOSED], False, False, id="one id twice"),
        pytest.param([], True, False, id="nothing"),
    ],
)
def test_the_checker_knows_a_valid_history(messages: list[Message], *, valid: bool, sendable: bool) -> None:
    """0.3: each rule of VALID and SENDABLE is looked at."""
    assert (not faults_of(messages, sendable=False)) is valid
    assert (not faults_of(messages, sendable=True)) is sendable


def test_a_history_in_short() -> None:
    """The notation of the tests shows calls, results and their codes."""
    denied = replace(CALL, wire_id="c2", result=ToolResult(code=ResultCode.DENIED, text="no"))
    message = AssistantMessage(seq=2, turn=T1, text="look", calls=(CALL, denied))
    assert lines_of([HI, message]) == ["U:hi", "A:look[c1 c2]", "R c1=a", "R c2!DENIED"]


async def test_a_request_that_nobody_scripted_fails_the_test(tmp_path: Path) -> None:
    """T: an unscripted request is refused, and remembered for the test's end."""
    with pytest.raises(AssertionError, match="nobody has scripted"):
        async with open_house(tmp_path) as house:
            await house.user.says("hi")


async def test_a_dead_process_stores_nothing_more(house: House) -> None:
    """A kill is one: what comes after it is neither stored nor told."""
    house.model.answers(says("never"), says("ok"))
    house.kill_at("Turns.finish", after=False)
    await house.user.says("hi")
    assert house.finals == []
    await house.restart()
    assert [final.reason for final in house.finals] == [StopReason.DONE]
    assert await house.replies() == ["ok"]
