"""A channel that opens a form before a press asks the desk whether it would count."""

from dataclasses import replace

from tests.daemon.office import OLGA, USER, Office
from zerobot.core.approvals import ApprovalState, PressOutcome, PressReply
from zerobot.core.envelope import Button, ButtonPress
from zerobot.core.ids import ApprovalId
from zerobot.daemon.desk import UNKNOWN
from zerobot.daemon.presses import NOT_OPERATOR


async def test_before_a_form_is_opened_one_can_ask_whether_its_press_would_count(office: Office) -> None:
    """Whoever may not decide gets no form, nor does an operator who comes too late; asking decides nothing."""
    approval = await office.ask()
    press = ButtonPress(channel="fake", presser=OLGA, approval=approval.id, button=Button.DENY)
    assert await office.desk.may_press(replace(press, presser=USER)) == PressReply(
        PressOutcome.NOT_OPERATOR, NOT_OPERATOR
    )
    assert await office.desk.may_press(replace(press, approval=ApprovalId("none"))) == PressReply(
        PressOutcome.UNKNOWN, UNKNOWN
    )
    assert await office.desk.may_press(press) is None
    assert await office.state(approval) is ApprovalState.PENDING
    await office.press(approval, OLGA)
    late = await office.desk.may_press(press)
    assert late is not None
    assert late.outcome is PressOutcome.ALREADY
    assert "Approved by Olga" in late.text


async def test_a_form_is_not_opened_after_the_time(office: Office) -> None:
    """An approval whose time is over counts no more, also while nobody has noticed it yet."""
    approval = await office.ask(minutes=1)
    office.house.clock.jump(61)
    reply = await office.desk.may_press(
        ButtonPress(channel="fake", presser=OLGA, approval=approval.id, button=Button.DENY)
    )
    assert reply is not None
    assert reply.outcome is PressOutcome.ALREADY
