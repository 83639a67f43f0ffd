"""The approval desk: who is asked, who decides, what everybody is told, and what a restart finds."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.daemon.office import (
    LOCAL,
    OLGA,
    OLGAS,
    OTTO,
    OTTOS,
    ROOM,
    TWO_OPERATORS,
    USER,
    Office,
    Offices,
)
from tests.store.rows import a_turn
from zerobot.core.approvals import ApprovalPrompt, ApprovalState, PressOutcome, PressReply, PromptLine, Withdrawal
from zerobot.core.envelope import Button
from zerobot.core.errors import MovedError, RefusedError, TryLaterError, UnclearError, UnreachableError
from zerobot.core.events import TextShown
from zerobot.core.ids import ApprovalId, TurnId
from zerobot.core.places import Identity, Place
from zerobot.daemon.desk import NOBODY, NOT_YOUR_OWN, UNKNOWN
from zerobot.daemon.presses import NOT_OPERATOR
from zerobot.daemon.prompt_calls import as_text
from zerobot.daemon.routing import OperatorRules
from zerobot.delivery.line import TurnRef
from zerobot.store import approvals as approval_rows
from zerobot.store.columns import stamp
from zerobot.store.conversations import Conversations
from zerobot.store.grants import Grants
from zerobot.testing.channel import AskableChannel, FakeChannel, PlainChannel
from zerobot.testing.clock import START, ManualClock

# -- how they are asked -----------------------------------------------------------------------------------------------


async def test_a_request_is_shown_to_all_operators_with_buttons(offices: Offices) -> None:
    """Each gets the tool, the arguments, who asked, and the code."""
    async with offices.open(TWO_OPERATORS) as office:
        await office.ask()
        for place in (OLGAS, OTTOS):
            (text,) = office.channel.texts(place)
            assert all(part in text for part in ("shell", "make `all`", "Ann", "fake:room", "CODE1"))
            assert [body.format for body in office.channel.messages[place].values()] == [{"buttons": True}]


async def test_a_prompt_stands_under_what_the_turn_said(offices: Offices) -> None:
    """The text before the pause is sent first, then the question."""
    async with offices.open(OperatorRules(users=(OLGA,), notify="here")) as office:
        await a_turn(office.house.database, "t1", place=ROOM)
        conversation = (await Conversations(office.house.database).at(ROOM))[0].id
        ref = TurnRef(turn=TurnId("t1"), conversation=conversation, place=ROOM)
        view = office.house.delivery.view(ref)
        view(TextShown("I will build it."))
        await office.house.queue(ref, "I will build it.", paused=True)
        view.close()
        await office.ask(turn="t1")
        await office.house.clock.advance(5)
        assert [call.kind for call in office.channel.of("send", "ask")] == ["send", "ask"]


async def test_a_limited_operator_chat_is_asked_when_its_time_has_come(office: Office) -> None:
    """429 on the prompt: not before `retry_after`, then once."""
    office.channel.fail("ask", TryLaterError("slow down", retry_after=9.0))
    await office.ask()
    await office.house.clock.advance(30)
    first, second = office.channel.of("ask")
    assert second.at >= first.at + 9.0 - 1e-6
    assert len(office.channel.texts(OLGAS)) == 1


async def test_a_request_that_is_decided_before_it_could_be_shown_is_not_shown(office: Office) -> None:
    """Decided from elsewhere while the chat is limited: no prompt comes after it."""
    office.channel.fail("ask", TryLaterError("slow down", retry_after=9.0))
    await office.ask()
    assert (await office.type("CODE1")).outcome is PressOutcome.APPROVED
    await office.house.clock.advance(30)
    assert len(office.channel.of("ask", "settle")) == 1


async def test_a_prompt_whose_answer_is_lost_is_shown_again(office: Office) -> None:
    """Two prompts do no harm: a decision counts once."""
    office.channel.fail("ask", UnclearError("broken"), taken=True)
    approval = await office.ask()
    await office.house.clock.advance(30)
    assert len(office.channel.texts(OLGAS)) == 2
    assert (await office.press(approval)).outcome is PressOutcome.APPROVED


async def test_where_a_platform_can_be_asked_a_lost_answer_leaves_one_prompt(
    offices: Offices, clock: ManualClock
) -> None:
    """Its message is found by its key, also after a crash, so that no copy keeps its buttons for ever."""
    channel = AskableChannel(clock)
    channel.fail("ask", UnclearError("broken"), taken=True)
    async with offices.open(channel=channel) as office:
        await office.ask()
        await clock.advance(5)
        hold = channel.hold("ask", OLGAS)
        second = await office.ask("2", turn="t2", place=Place("fake", "other room"))
        await clock.advance(5)
    hold.release()
    assert len(channel.texts(OLGAS)) == 2
    async with offices.open(channel=channel) as office:
        await clock.advance(5)
        assert len(channel.texts(OLGAS)) == 2
        assert (await office.type("CODE1")).outcome is PressOutcome.APPROVED
        assert (await office.press(second)).outcome is PressOutcome.APPROVED
        await clock.advance(5)
    assert [body.format for body in channel.messages[OLGAS].values()] == [{"buttons": False}] * 2


async def test_a_prompt_that_is_refused_is_sent_as_text_with_its_code(office: Office) -> None:
    """Buttons that a platform does not take are no reason to ask nobody."""
    office.channel.fail("ask", RefusedError("no"))
    await office.ask()
    await office.house.clock.advance(5)
    (text,) = office.channel.texts(OLGAS)
    assert "/approve CODE1" in text


async def test_an_operator_who_cannot_be_reached_is_followed_by_the_next(offices: Offices) -> None:
    """The first has blocked the bot: the second is asked, the request stays open."""
    async with offices.open(TWO_OPERATORS) as office:
        office.channel.fail("ask", UnreachableError("blocked"), place=OLGAS)
        approval = await office.ask(shown_in=(OLGAS,))
        await office.house.clock.advance(5)
        assert len(office.channel.texts(OTTOS)) == 1
        assert await office.state(approval) is ApprovalState.PENDING
        assert len(office.channel.of("ask", place=OLGAS)) == 1


async def test_a_turn_goes_on_when_no_operator_can_be_reached(offices: Offices) -> None:
    """All have blocked the bot: the request is cancelled as unreachable, and the turn is woken."""
    async with offices.open(TWO_OPERATORS) as office:
        office.channel.fail("ask", UnreachableError("blocked"), times=100)
        approval = await office.ask()
        await office.house.clock.advance(60)
        found = await office.approvals.get(approval.id)
        assert found is not None
        assert (found.state, found.reason) == (ApprovalState.CANCELLED, "unreachable")
        assert office.woken == [approval.conversation]
        assert len(office.channel.of("ask")) == 2
        assert office.channel.texts(ROOM) == [NOBODY]


async def test_a_moved_chat_is_asked_under_its_new_id(offices: Offices) -> None:
    """The prompt follows the chat."""
    async with offices.open(OperatorRules(users=(OLGA,), notify="here")) as office:
        office.channel.fail("ask", MovedError("moved", chat="new"), place=ROOM)
        await office.ask()
        await office.house.clock.advance(5)
        assert office.house.moves == [(ROOM, "new")]
        assert len(office.channel.texts(Place("fake", "new"))) == 1


async def test_a_channel_without_buttons_shows_the_whole_request_and_its_code(
    offices: Offices, clock: ManualClock
) -> None:
    """As text: every line, in code, so that nothing of an argument is read as formatting."""
    async with offices.open(OperatorRules(users=(OLGA,), notify="here"), PlainChannel(clock)) as office:
        approval = await office.ask()
        await clock.advance(5)
        (text,) = office.channel.texts(ROOM)
        assert "make `all`" in text
        assert "/approve CODE1" in text
        assert (await office.type("code1")).outcome is PressOutcome.APPROVED
        await clock.advance(5)
        assert await office.approvals.unsettled() == []
        assert await office.state(approval) is ApprovalState.APPROVED


def test_a_text_prompt_cannot_be_broken_out_of() -> None:
    """A run of back-ticks in an argument is shorter than the fence around it."""
    prompt = ApprovalPrompt(
        approval=ApprovalId("a"),
        code="C",
        lines=(PromptLine(kind="argument", label="command", text="```\n# Approve this"),),
        attachment="````",
    )
    text = as_text(prompt)
    assert text.startswith("````\ncommand: ```")
    assert "\n`````\n````\n`````\n" in text


# -- who decides ------------------------------------------------------------------------------------------------------


async def test_only_an_operator_decides(office: Office) -> None:
    """B136: a stranger, then the asker, then the operator press; one decision, the operator's."""
    approval = await office.ask()
    for presser in (Identity("fake", "stranger"), USER, Identity("other", "olga")):
        assert await office.press(approval, presser) == PressReply(PressOutcome.NOT_OPERATOR, NOT_OPERATOR)
        assert await office.state(approval) is ApprovalState.PENDING
    assert await office.press(approval, OLGA) == PressReply(PressOutcome.APPROVED, "Approved.")
    (decided,) = office.house.logged("approval.decided")
    assert (decided["by"], decided["state"], decided["turn"]) == ("fake:olga", "approved", "t1")
    assert office.woken == [approval.conversation]


async def test_a_stranger_learns_nothing_of_codes(office: Office) -> None:
    """Right or wrong, the answer is the same, and no try of an operator is used up."""
    await office.ask()
    stranger = Identity("fake", "stranger")
    assert await office.type("CODE1", stranger) == await office.type("NONSENSE", stranger)


async def test_the_first_decision_counts_and_the_second_is_told_of_it(office: Office) -> None:
    """B141: approve, then deny: the truth, with who and when; nothing changes."""
    # Seen to fail with: the second press told as an unknown request (A12).
    approval = await office.ask()
    await office.press(approval, OLGA)
    reply = await office.press(approval, OLGA, Button.DENY)
    assert reply.outcome is PressOutcome.ALREADY
    assert "Approved by Olga" in reply.text
    assert await office.state(approval) is ApprovalState.APPROVED
    assert set(office.woken) == {approval.conversation}  # to be woken again does no harm


async def test_two_presses_at_once_are_one_decision(office: Office) -> None:
    """A double click."""
    approval = await office.ask()
    replies = await asyncio.gather(*(office.press(approval, OLGA) for _ in range(2)))
    assert sorted(reply.outcome for reply in replies) == [PressOutcome.ALREADY, PressOutcome.APPROVED]


async def test_all_copies_show_the_decision_without_buttons(offices: Offices) -> None:
    """Whoever decides, every operator sees what was decided and by whom."""
    async with offices.open(TWO_OPERATORS) as office:
        approval = await office.ask()
        await office.press(approval, OTTO, Button.DENY, reason="not today")
        await office.house.clock.advance(5)
        for place in (OLGAS, OTTOS):
            (body,) = office.channel.messages[place].values()
            assert "Denied by Otto" in body.text
            assert "not today" in body.text
            assert body.format == {"buttons": False}


async def test_a_turn_is_woken_when_all_of_its_requests_are_decided(office: Office) -> None:
    """Two requests of one turn: the first decision wakes nobody."""
    first, second = await office.ask("1"), await office.ask("2")
    await office.press(first)
    assert office.woken == []
    await office.press(second, button=Button.DENY)
    assert office.woken == [first.conversation]


@pytest.mark.parametrize(
    ("setting", "place", "allowed"),
    [("always", ROOM, True), ("never", OLGAS, False), ("direct", ROOM, False), ("direct", OLGAS, True)],
)
async def test_an_operator_and_what_they_asked_for_themselves(
    offices: Offices, setting: str, place: Place, *, allowed: bool
) -> None:
    """`self_approval`: always, only in the direct chat, never; a refusal leaves the request open."""
    async with offices.open(OperatorRules(users=(OLGA, OTTO), notify="direct", self_approval=setting)) as office:
        await office.write(OLGA, OLGAS, direct=True)
        approval = await office.ask(asker=OLGA, place=place)
        reply = await office.press(approval, OLGA, place=place)
        expected = (
            PressReply(PressOutcome.APPROVED, "Approved.")
            if allowed
            else PressReply(PressOutcome.NOT_OPERATOR, NOT_YOUR_OWN)
        )
        assert reply == expected
        assert (await office.state(approval) is ApprovalState.PENDING) is not allowed


async def test_the_person_at_the_terminal_decides_only_there(offices: Offices) -> None:
    """`console:local` is an operator of the terminal's own conversations; not of others', and nobody else is there."""
    rules = OperatorRules(users=(), local=LOCAL, platforms={"fake": "fake", "chat": "other"})
    async with offices.open(rules) as office:
        own = await office.ask("1", asker=LOCAL)
        assert (await office.press(own, LOCAL)).outcome is PressOutcome.APPROVED
        foreign = await office.ask("2", turn="t2", place=Place("chat", "1"), shown_in=())
        assert (await office.press(foreign, LOCAL)).outcome is PressOutcome.NOT_OPERATOR
        assert await office.state(foreign) is ApprovalState.PENDING
    assert not rules.is_operator(USER, ROOM)


async def test_a_decision_that_cannot_be_stored_is_no_decision(office: Office) -> None:
    """A full disk: the request stays open, and the operator is told."""
    approval = await office.ask()
    office.house.database.refuses(1)
    assert "could not be stored" in (await office.press(approval)).text
    assert await office.state(approval) is ApprovalState.PENDING
    assert (await office.press(approval)).outcome is PressOutcome.APPROVED


# -- codes ------------------------------------------------------------------------------------------------------------


async def test_a_code_decides_in_any_case(office: Office) -> None:
    """Typed on a phone, with blanks around it."""
    approval = await office.ask()
    assert (await office.type(" code1 ")).outcome is PressOutcome.APPROVED
    assert await office.state(approval) is ApprovalState.APPROVED


async def test_too_many_wrong_codes_hide_the_right_one(office: Office) -> None:
    """After five wrong codes nothing is looked at for a while; the answer tells nothing. Buttons work on."""
    approval = await office.ask()
    for number in range(5):
        assert await office.type(f"WRONG{number}") == PressReply(PressOutcome.UNKNOWN, UNKNOWN)
    assert await office.type("CODE1") == PressReply(PressOutcome.UNKNOWN, UNKNOWN)
    assert await office.state(approval) is ApprovalState.PENDING
    await office.house.clock.advance(16 * 60)
    assert (await office.type("CODE1")).outcome is PressOutcome.APPROVED


async def test_an_unknown_request_looks_like_a_wrong_code(office: Office) -> None:
    """A button of another bot's request, or of one that never was."""
    # Seen to fail with: an unknown id that decides the oldest request (A11).
    approval = await office.ask()
    unknown = replace(approval, id=ApprovalId("nothing"))
    assert await office.press(unknown) == await office.type("NONSENSE") == PressReply(PressOutcome.UNKNOWN, UNKNOWN)


# -- always -----------------------------------------------------------------------------------------------------------


async def test_always_approves_and_grants_for_thirty_days(office: Office) -> None:
    """The grant is of the conversation, the tool and the pattern, by the operator, with an end."""
    approval = await office.ask()
    reply = await office.press(approval, button=Button.ALWAYS)
    assert reply == PressReply(
        PressOutcome.APPROVED, "Approved, and always, for 30 days in this chat: make …. /grants revoke 1 ends that."
    )
    (grant,) = await Grants(office.house.database, office.house.clock).active(approval.conversation, START)
    assert (grant.tool, grant.pattern, grant.granted_by) == ("shell", "make", "fake:olga")
    assert grant.expires_at == stamp(START + timedelta(days=30))


async def test_always_that_comes_too_late_grants_nothing(office: Office) -> None:
    """Denied before: no grant."""
    approval = await office.ask()
    await office.press(approval, button=Button.DENY)
    await office.press(approval, button=Button.ALWAYS)
    assert await Grants(office.house.database, office.house.clock).active(approval.conversation, START) == []


# -- the end of the time ----------------------------------------------------------------------------------------------


async def test_a_request_that_nobody_decides_expires_on_time(office: Office) -> None:
    """B140: expired, not denied; the turn is woken, the prompt says so, and a late press is told."""
    approval = await office.ask(minutes=5)
    await office.house.clock.advance(299)
    assert await office.state(approval) is ApprovalState.PENDING
    await office.house.clock.advance(2)
    assert await office.state(approval) is ApprovalState.EXPIRED
    assert office.woken == [approval.conversation]
    (body,) = office.channel.messages[OLGAS].values()
    assert "Expired" in body.text
    assert body.format == {"buttons": False}
    reply = await office.press(approval)
    assert reply.outcome is PressOutcome.ALREADY
    assert "Expired" in reply.text
    assert office.house.logged("approval.decided")[0]["state"] == "expired"


async def test_a_press_after_the_time_counts_no_more_even_before_it_was_noticed(office: Office) -> None:
    """The wall clock was set forward: the stored expiry counts, and the truth is told."""
    # Seen to fail with: what expired told as decided (A18).
    approval = await office.ask(minutes=5)
    office.house.clock.jump(400)
    reply = await office.press(approval)
    assert reply.outcome is PressOutcome.ALREADY
    assert "expired" in reply.text
    assert await office.state(approval) is ApprovalState.EXPIRED


async def test_a_clock_that_was_set_is_noticed_within_a_minute(office: Office) -> None:
    """Expiry is wall time, whatever the timer was set for."""
    approval = await office.ask(minutes=5)
    office.house.clock.jump(400)
    await office.house.clock.advance(61)
    assert await office.state(approval) is ApprovalState.EXPIRED


async def test_what_is_withdrawn_loses_its_buttons(office: Office) -> None:
    """A new message superseded the request: the prompt says so."""
    approval = await office.ask()
    now = office.house.clock.now()
    await office.house.database.write(
        lambda db: approval_rows.cancel_open(db, approval.turn, Withdrawal.SUPERSEDED, now)
    )
    office.desk.look()
    await office.house.clock.advance(5)
    (body,) = office.channel.messages[OLGAS].values()
    assert "something else was written" in body.text
    assert body.format == {"buttons": False}


# -- restarts ---------------------------------------------------------------------------------------------------------


async def test_a_request_asked_before_a_crash_is_decided_after_it(offices: Offices, clock: ManualClock) -> None:
    """The button works, the prompt is not shown twice, and the message that was there is settled."""
    channel = FakeChannel(clock)
    async with offices.open(channel=channel) as office:
        approval = await office.ask()
    async with offices.open(channel=channel) as office:
        await clock.advance(5)
        assert len(channel.texts(OLGAS)) == 1
        assert (await office.press(approval)).outcome is PressOutcome.APPROVED
        assert office.woken == [approval.conversation]
        await clock.advance(5)
    (text,) = channel.texts(OLGAS)
    assert "Approved by Olga" in text


async def test_a_request_that_was_not_shown_before_a_crash_is_shown_after_it(
    offices: Offices, clock: ManualClock
) -> None:
    """Queued, or the call was under way: it is shown."""
    channel = FakeChannel(clock)
    hold = channel.hold("ask")
    async with offices.open(channel=channel) as office:
        await office.ask()
    hold.release()
    async with offices.open(channel=channel):
        await clock.advance(5)
    assert len(channel.of("ask")) == 2


async def test_what_expired_while_nothing_ran_ends_at_the_start(offices: Offices, clock: ManualClock) -> None:
    """The time went by during the outage: the turn is woken, the prompt is settled."""
    channel = FakeChannel(clock)
    async with offices.open(channel=channel) as office:
        approval = await office.ask(minutes=5)
    await clock.advance(3600)
    async with offices.open(channel=channel) as office:
        await clock.advance(5)
        assert await office.state(approval) is ApprovalState.EXPIRED
        assert office.woken == [approval.conversation]
    (text,) = channel.texts(OLGAS)
    assert "Expired" in text


async def test_a_decision_whose_prompt_was_not_settled_before_a_crash_is_shown_after_it(
    offices: Offices, clock: ManualClock
) -> None:
    """The daemon dies between the decision and the change of the message."""
    channel = FakeChannel(clock)
    async with offices.open(channel=channel) as office:
        approval = await office.ask()
        hold = channel.hold("settle")
        channel.fail("settle", TryLaterError("500"), times=100)
        await office.press(approval)
    hold.release()
    channel.heal()
    async with offices.open(channel=channel):
        await clock.advance(5)
    (text,) = channel.texts(OLGAS)
    assert "Approved by Olga" in text


async def test_a_prompt_that_cannot_be_changed_is_let_be(office: Office) -> None:
    """The message is too old to edit: the decision counts all the same, and nobody tries for ever."""
    approval = await office.ask()
    office.channel.fail("settle", RefusedError("too old"), times=100)
    await office.press(approval)
    await office.house.clock.advance(600)
    assert len(office.channel.of("settle")) == 1
    assert await office.approvals.unsettled() == []
