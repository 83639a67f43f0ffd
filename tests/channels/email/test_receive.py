"""Mails come in: each once, only whole ones of proved people, and marked as read only when they are stored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.platforms.email_house import EmailHouse, email_house
from tests.platforms.imap_server import USER
from zerobot.core.errors import ChannelFaultError
from zerobot.core.places import Identity


@pytest.fixture
async def house() -> AsyncIterator[EmailHouse]:
    """A mailbox beside doubles of both servers."""
    async with email_house() as house:
        yield house


async def test_a_mail_comes_in_and_is_marked_as_read(house: EmailHouse) -> None:
    """Its text, who wrote it, what it is called; the subject stands above the first words."""
    async with house.running() as intake:
        uid = house.writes("What is new?", subject="News")
        await intake.until(lambda: intake.accepted)
        await house.imap.until(lambda: house.imap.flags(uid) == {"\\Seen"})
    (envelope,) = intake.accepted
    assert envelope.text == "Subject: News\n\nWhat is new?"
    assert envelope.sender == Identity("email", "ann@example.com")
    assert envelope.direct
    assert envelope.addressed


async def test_a_mail_is_read_only_when_it_is_stored(house: EmailHouse) -> None:
    """The disk refuses at first: the mail stays unread, and comes again."""
    async with house.running() as intake:
        intake.fail(1)
        uid = house.writes("What is new?")
        await intake.until(lambda: intake.accepted)
        await house.imap.until(lambda: house.imap.flags(uid) == {"\\Seen"})
    assert len(intake.accepted) == 1
    assert intake.breaks


async def test_what_was_there_before_the_first_start_is_left_alone(house: EmailHouse) -> None:
    """However unread it is."""
    old = house.writes("old")
    async with house.running() as intake:
        house.writes("new")
        await intake.until(lambda: intake.accepted)
    assert [each.text for each in intake.accepted] == ["Subject: Question\n\nnew"]
    assert house.imap.flags(old) == set()


async def test_much_that_waits_does_not_hold_up_the_sign_of_life(house: EmailHouse) -> None:
    """Whoever waits for the channel waits for its connection, and not until all mail of a night is taken in."""
    async with house.running():
        pass
    house.writes("one")
    house.writes("two")
    house.intake.hold()
    async with house.running() as intake:
        assert intake.accepted == []
        intake.release()
        await intake.until(lambda: len(intake.accepted) == 2)


async def test_the_backlog_is_answered_where_that_is_wanted() -> None:
    """What is unread of it, in order; what somebody has read is not."""
    async with email_house(answer_backlog=True) as house:
        first = house.writes("one", subject="")
        read = house.writes("two", subject="")
        house.imap.mail(read).flags.add("\\Seen")
        async with house.running() as intake:
            await intake.until(lambda: intake.accepted)
            await house.imap.until(lambda: house.imap.flags(first) == {"\\Seen"})
        assert [each.text for each in intake.accepted] == ["one"]


async def test_after_a_restart_nothing_comes_twice_and_nothing_is_missed(house: EmailHouse) -> None:
    """Also what a second client has read meanwhile."""
    async with house.running() as intake:
        house.writes("one", subject="")
        await intake.until(lambda: intake.accepted)
    seen = house.writes("two", subject="")
    house.imap.mail(seen).flags.add("\\Seen")
    later = EmailHouse(house.imap, house.smtp, state=house.state)
    later.intake = house.intake
    async with later.running() as intake:
        later.writes("three", subject="")
        await intake.until(lambda: len(intake.accepted) == 3)
    assert [each.text for each in intake.accepted] == ["one", "two", "three"]
    await later.close()


async def test_who_is_not_proved_is_refused_quietly_and_operators_hear_of_it(house: EmailHouse) -> None:
    """Not a word to the sender; an event, a count, and one word to the operators."""
    async with house.running() as intake:
        uid = house.writes("let me in", proved=False)
        await intake.until(lambda: intake.alarms)
        house.writes("hello", sender="bea@example.com")
        await intake.until(lambda: intake.accepted)
    assert [each.sender.id for each in intake.accepted] == ["bea@example.com"]
    assert house.imap.flags(uid) == set()
    refused = dict(house.log.events)["envelope.refused"]
    assert (refused["reason"], refused["why"], refused["sender"]) == ("not_allowed", "fail", "email:ann@example.com")
    assert house.state.values["refused"] == '{"fail": 1}'
    assert intake.alarms[0][0] == "unproved"
    assert "ann@example.com" in intake.alarms[0][1]
    assert house.smtp.mails == []


async def test_an_address_writes_no_markdown_to_operators(house: EmailHouse) -> None:
    """Its local part may have nearly any character."""
    async with house.running() as intake:
        house.writes("hi", sender="a`[x](https://evil.test)`@example.com", proved=False, From='"a`[x](b)`"@example.com')
        await intake.until(lambda: intake.alarms)
    assert '`"a?[x](b)?"@example.com`' in intake.alarms[0][1]


@pytest.mark.parametrize(
    ("fields", "reason", "why"),
    [
        ({"Auto_Submitted": "auto-replied"}, "loop", "auto_reply"),
        ({"List_Id": "<dev.example.com>"}, "loop", "list"),
        ({"sender": USER}, "own_message", "own_mail"),
        ({"to": "carol@example.com"}, "not_addressed", "not_named"),
    ],
)
async def test_what_is_no_letter_to_the_bot_is_not_answered(
    house: EmailHouse, fields: dict[str, str], reason: str, why: str
) -> None:
    """Machines, lists, the bot itself, and mail to others that was sent on to it."""
    async with house.running() as intake:
        house.writes("hello", **fields)  # type: ignore[arg-type]
        house.writes("end", subject="")
        await intake.until(lambda: intake.accepted)
    assert [each.text for each in intake.accepted] == ["end"]
    refused = dict(house.log.events)["envelope.refused"]
    assert (refused["reason"], refused["why"]) == (reason, why)


async def test_a_mail_that_came_in_long_ago_is_let_be(house: EmailHouse) -> None:
    """Somebody copies an old mailbox into the folder."""
    async with house.running() as intake:
        house.writes("ages ago", at=house.clock.now() - timedelta(days=31))
        house.writes("before its first start", at=house.clock.now() - timedelta(hours=2))
        house.writes("now", subject="")
        await intake.until(lambda: intake.accepted)
    assert [each.text for each in intake.accepted] == ["now"]


async def test_a_folder_that_was_numbered_anew_is_read_from_where_it_was_left(house: EmailHouse) -> None:
    """UIDVALIDITY changes: what was missed meanwhile is answered, what was answered is only recognised."""
    async with house.running() as intake:
        house.writes("one", subject="")
        await intake.until(lambda: intake.accepted)
        house.imap.drop()
        house.imap.folder("INBOX").renumber()
        house.writes("two", subject="")
        await intake.until(lambda: len(intake.accepted) == 2)
        house.writes("three", subject="")
        await intake.until(lambda: len(intake.accepted) == 3)
    assert [each.text for each in intake.accepted] == ["one", "two", "three"]


async def test_a_copied_mailbox_is_not_answered_again(house: EmailHouse) -> None:
    """Each mail of the folder once more, under another UID: the same mails for the inbox."""
    async with house.running() as intake:
        uid = house.writes("one", subject="")
        await intake.until(lambda: intake.accepted)
        house.imap.deliver(house.imap.mail(uid).raw)
        await intake.until(lambda: intake.duplicates)
    assert [each.text for each in intake.accepted] == ["one"]


async def test_mails_are_moved_where_that_is_wanted() -> None:
    """Into a folder that is made for it; their files are found there later."""
    async with email_house(processed_folder="Done") as house:
        async with house.running() as intake:
            house.writes("one", subject="")
            await intake.until(lambda: intake.accepted)
            await house.imap.until(lambda: not house.imap.folder("INBOX").mails)
        assert len(house.imap.folder("Done").mails) == 1


async def test_a_lost_connection_is_made_again(house: EmailHouse) -> None:
    """What came meanwhile is taken in."""
    async with house.running() as intake:
        house.imap.drop()
        await intake.until(lambda: intake.breaks)
        house.writes("one", subject="")
        await intake.until(lambda: intake.accepted)
    assert [each.text for each in intake.accepted] == ["one"]


async def test_a_folder_that_there_is_not_parks_the_channel() -> None:
    """It needs a person, and the advice names the key."""
    async with email_house(folder="Nowhere") as house:
        with pytest.raises(ChannelFaultError) as raised:
            await house.channel.run(house.intake)
        assert "folder" in raised.value.advice


async def test_answers_to_one_correspondent_have_a_limit(house: EmailHouse) -> None:
    """Ten mails of a thread within an hour; then it looks like a loop, and operators are told."""
    async with house.running() as intake:
        for number in range(12):
            house.writes(f"mail {number}", Subject="the same")
        house.writes("something else", sender="bea@example.com")
        await intake.until(lambda: intake.accepted and intake.accepted[-1].sender.id == "bea@example.com")
    assert [each.sender.id for each in intake.accepted].count("ann@example.com") == 10
    assert [fields["why"] for name, fields in house.log.events if name == "envelope.refused"] == ["too_many"] * 2
    assert len(intake.alarms) == 2


async def test_mails_without_an_id_of_their_own_are_counted_too(house: EmailHouse) -> None:
    """A machine that gives none, and writes the same subject each time."""
    async with house.running() as intake:
        for number in range(12):
            house.writes(f"mail {number}", Subject="the same", Message_ID="")
        house.writes("end", sender="bea@example.com", subject="")
        await intake.until(lambda: intake.accepted and intake.accepted[-1].text == "end")
    assert len(intake.accepted) == 11


async def test_a_thread_is_one_conversation_and_strangers_to_it_have_their_own(house: EmailHouse) -> None:
    """By our own ids, by theirs, by subject and people; who only knows the ids does not get in."""
    async with house.running() as intake:
        house.writes("one", subject="Plan")
        await intake.until(lambda: intake.accepted)
        ours = await house.answer("Answer.")
        house.writes("two", answers=ours)
        house.writes("three", subject="Plan")
        house.writes("let me see", sender="mallory@example.org", answers=ours)
        await intake.until(lambda: len(intake.accepted) == 4)
    first, second, third, other = (each.conversation for each in intake.accepted)
    assert first == second == third
    assert other != first
    assert other.place.chat == "mallory@example.org"


@pytest.mark.parametrize(("first", "second"), [("", ""), ("Plan", "Plan, with numbers")])
async def test_who_answers_a_mail_of_his_own_goes_on_in_its_thread(house: EmailHouse, first: str, second: str) -> None:
    """The bot has not answered yet, and the subject says nothing of the thread: the ids do."""
    async with house.running() as intake:
        uid = house.writes("one", subject=first)
        house.writes("two", answers=house.imap.mail(uid).raw, Subject=second)
        house.writes("three", answers=house.imap.mail(uid).raw, Subject=second, sender="bea@example.com")
        await intake.until(lambda: len(intake.accepted) == 3)
    one, two, three = (each.conversation for each in intake.accepted)
    assert one == two
    assert three != one


async def test_people_in_cc_may_go_on_in_a_thread(house: EmailHouse) -> None:
    """They were written to in it, by whoever began it."""
    async with house.running() as intake:
        house.writes("one", subject="Plan", to=f"{USER}, bea@example.com")
        await intake.until(lambda: intake.accepted)
        ours = await house.answer("Answer.")
        house.writes("I agree", sender="bea@example.com", answers=ours)
        await intake.until(lambda: len(intake.accepted) == 2)
        await house.answer("Good.", key="k2")
    first, second = intake.accepted
    assert first.conversation == second.conversation
    assert (first.direct, second.direct) == (False, True)
    assert second.text == "I agree"
    assert [taken.recipients for taken in house.smtp.notes.taken] == [("ann@example.com",), ("bea@example.com",)]


async def test_a_command_on_the_first_line_is_the_whole_text(house: EmailHouse) -> None:
    """Whatever stands below it."""
    async with house.running() as intake:
        house.writes("/stop\n\nplease\n-- \nAnn", subject="x")
        house.writes("/usr/bin is full", subject="x")
        await intake.until(lambda: len(intake.accepted) == 2)
    assert [each.text for each in intake.accepted] == ["/stop", "/usr/bin is full"]
