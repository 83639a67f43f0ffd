"""Mails go out: to whom, in which thread, and how operators are asked and answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from tests.platforms.email_house import EmailHouse, email_house
from tests.platforms.imap_server import USER
from tests.platforms.smtp_checks import read
from tests.platforms.smtp_server import DROP
from zerobot.core.approvals import ApprovalPrompt, PromptLine
from zerobot.core.channel import MessageBody, OutboundFile, OutboundMessage
from zerobot.core.errors import CannotTellError, UnclearError, UnreachableError
from zerobot.core.ids import ApprovalId
from zerobot.core.places import Identity, Place

OLGA = Place("email", "olga@example.com")


@pytest.fixture
async def house() -> AsyncIterator[EmailHouse]:
    """A mailbox beside doubles of both servers."""
    async with email_house() as house:
        yield house


def request(**more: object) -> ApprovalPrompt:
    """An approval request."""
    lines = (
        PromptLine(kind="title", text="Approval needed: shell"),
        PromptLine(kind="argument", label="command", text="rm <all> & more"),
    )
    values = {"approval": ApprovalId("A" * 22), "code": "BCDF23", "lines": lines} | more
    return ApprovalPrompt(**values)  # type: ignore[arg-type]


async def test_an_answer_goes_to_the_sender_alone_and_into_the_thread(house: EmailHouse) -> None:
    """`Re: ` once, both ids, and the marks that keep machines from answering; a copy is in the folder of sent mail."""
    async with house.running() as intake:
        house.writes("hello", subject="Re: Plan", to=f"{USER}, bea@example.com", Reply_To="eve@evil.test")
        await intake.until(lambda: intake.accepted)
        raw = await house.answer("**Yes.**")
        await house.imap.until(lambda: house.imap.folder("Sent").mails)
    asked, mail = intake.accepted[0], read(raw)
    assert mail["To"] == "ann@example.com"
    assert mail["Cc"] is None
    assert mail["Subject"] == "Re: Plan"
    assert mail["In-Reply-To"] == asked.message_id
    assert mail["References"].split() == [asked.message_id]
    assert mail["Auto-Submitted"] == "auto-replied"
    assert [part.get_content_type() for part in mail.iter_parts()] == ["text/plain", "text/html"]
    assert house.imap.folder("Sent").mails[0].raw == raw


async def test_people_in_cc_get_the_answer_where_that_is_wanted() -> None:
    """`reply_to_all`: whoever else the mail was written to, and not the bot."""
    async with email_house(reply_to_all=True) as house:
        async with house.running() as intake:
            house.writes("hello", to=f"{USER}, bea@example.com", Cc="carl@example.com")
            await intake.until(lambda: intake.accepted)
            mail = read(await house.answer())
        assert (mail["To"], mail["Cc"]) == ("ann@example.com", "bea@example.com, carl@example.com")


async def test_the_same_mail_has_the_same_id_and_names_its_thread(house: EmailHouse) -> None:
    """However often it is sent; an answer to it, by a program that keeps no References, finds back."""
    async with house.running() as intake:
        house.writes("one", subject="Plan")
        await intake.until(lambda: intake.accepted)
        first, second = await house.answer(), await house.answer()
        assert read(first)["Message-ID"] == read(second)["Message-ID"]
        house.writes("two", subject="Other words", In_Reply_To=read(first)["Message-ID"])
        await intake.until(lambda: len(intake.accepted) == 2)
    assert intake.accepted[0].conversation == intake.accepted[1].conversation


async def test_a_mail_to_somebody_alone_is_called_by_its_first_words(house: EmailHouse) -> None:
    """A word to an operator answers nothing."""
    await house.send(OLGA, "I cannot store anything.\n\nMore of it.")
    mail = read(house.smtp.mails[0])
    assert (mail["To"], mail["Subject"], mail["In-Reply-To"]) == ("olga@example.com", "I cannot store anything.", None)


async def test_a_file_goes_along(house: EmailHouse, tmp_path: Path) -> None:
    """Under its name, beside the text."""
    path = tmp_path / "out.bin"
    path.write_bytes(b"from me")
    await house.send(OLGA, "Here it is.", file=OutboundFile(path=str(path), name="result.txt", mime="text/plain"))
    (part,) = [each for each in read(house.smtp.mails[0]).walk() if each.get_filename()]
    assert (part.get_filename(), part.get_payload(decode=True)) == ("result.txt", b"from me")


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("approve", "/approve BCDF23"),
        ("Approve.\n\nThanks", "/approve BCDF23"),
        ("always", "/approve BCDF23 always"),
        ("deny not today", "/deny BCDF23 not today"),
    ],
)
async def test_a_request_is_answered_by_a_mail(house: EmailHouse, said: str, command: str) -> None:
    """The subject carries the code; what the answer means is a command of the chat, so it is stored like one."""
    async with house.running() as intake:
        await house.channel.ask(OLGA, request(), "p1")
        asked = house.smtp.mails[0]
        assert "[zerobot BCDF23]" in read(asked)["Subject"]
        assert "rm <all> & more" in read(asked).get_body(("plain",)).get_content()  # type: ignore[union-attr]
        house.writes(said, sender="olga@example.com", answers=asked)
        await intake.until(lambda: intake.accepted)
    assert intake.accepted[0].text == command


async def test_decisions_are_not_counted_as_mails_of_a_thread(house: EmailHouse) -> None:
    """An operator who asked for much has much to decide in one hour; it is no loop."""
    async with house.running() as intake:
        house.writes("do all of it", sender="olga@example.com", subject="Work")
        await intake.until(lambda: intake.accepted)
        place = intake.accepted[0].place
        for number in range(15):
            await house.channel.ask(place, request(code=f"BCDF{number:02}"), f"p{number}")
            house.writes("approve", sender="olga@example.com", answers=house.smtp.mails[-1])
        await intake.until(lambda: len(intake.accepted) == 16)
    assert {each.place for each in intake.accepted} == {place}
    assert intake.accepted[-1].text == "/approve BCDF14"


@pytest.mark.parametrize(
    "said",
    [
        "what is this? approve?",
        "approve? never!",
        "Always ask me before you do that",
        "approve only if the backup is done",
        "[approve]",
        "\u200b\u202eapprove no",
    ],
)
async def test_other_words_to_a_request_decide_nothing(house: EmailHouse, said: str) -> None:
    """They are words like any others."""
    async with house.running() as intake:
        await house.channel.ask(OLGA, request(), "p1")
        house.writes(said, sender="olga@example.com", answers=house.smtp.mails[0])
        await intake.until(lambda: intake.accepted)
    assert not intake.accepted[0].text.startswith("/")


async def test_a_request_that_is_cut_comes_whole_in_a_file(house: EmailHouse) -> None:
    """Nobody approves what cannot be seen."""
    await house.channel.ask(OLGA, request(attachment="all of it"), "p1")
    (part,) = [each for each in read(house.smtp.mails[0]).walk() if each.get_filename()]
    assert (part.get_filename(), part.get_payload(decode=True)) == ("request-BCDF23.txt", b"all of it")


@pytest.mark.parametrize(
    ("mailed", "writers", "asked"),
    [(("olga", "otto"), ("olga",), ["olga"]), (("olga", "otto"), (), ["olga", "otto"]), ((), (), ["ann"])],
)
async def test_a_request_in_a_thread_goes_to_operators_alone(
    mailed: Sequence[str], writers: Sequence[str], asked: list[str]
) -> None:
    """To those of them who wrote there, else to all; where none has mail, into the thread, and never to CC."""
    operators = (Identity("chat", "7"), *(Identity("email", f"{name}@example.com") for name in mailed))
    async with email_house(reply_to_all=True) as house, house.running() as intake:
        for sender in (*writers, "ann"):
            others = ", ".join(f"{name}@example.com" for name in ("ann", "bea", "olga") if name != sender)
            house.writes("do it", sender=f"{sender}@example.com", subject="Plan", Cc=others)
        await intake.until(lambda: len(intake.accepted) == len(writers) + 1)
        (place,) = {each.place for each in intake.accepted}
        sent = await house.channel.ask(place, request(operators=operators), "p1")
        await house.channel.settle(sent, request(operators=operators, open=False))
    told = [[f"{name}@example.com" for name in asked]] * 2
    assert [list(mail.recipients) for mail in house.smtp.notes.taken] == told


async def test_the_outcome_is_told_to_whoever_was_asked_but_not_to_who_decided(house: EmailHouse) -> None:
    """Another operator was first, or nobody in time; who decided by mail has the answer to that."""
    sent = await house.channel.ask(OLGA, request(), "p1")
    done = (PromptLine(kind="title", text="Approved: shell"), PromptLine(kind="outcome", text="Approved by Otto."))
    await house.channel.settle(sent, request(open=False, lines=done, decided_by=Identity("chat", "otto")))
    asked, told = (read(raw) for raw in house.smtp.mails)
    assert told["In-Reply-To"] == asked["Message-ID"]
    assert "Approved by Otto." in told.get_body(("plain",)).get_content()  # type: ignore[union-attr]
    await house.channel.settle(sent, request(open=False, lines=done, decided_by=Identity("email", "olga@example.com")))
    assert len(house.smtp.mails) == 2


async def test_whether_an_unclear_mail_went_out_is_known_where_the_server_keeps_copies() -> None:
    """Gmail, say: the folder of sent mail tells; else nobody can, and the one repeat has the same id."""
    message = OutboundMessage(place=OLGA, body=MessageBody("Hello."), key="k1")
    async with email_house(sent_copy="server") as house:
        house.smtp.script("END", DROP)
        with pytest.raises(UnclearError):
            await house.channel.send(message)
        assert await house.channel.find(message) is None
        sent = await house.channel.send(message)
        house.imap.deliver(house.smtp.mails[-1], folder="Sent")
        assert await house.channel.find(message) == sent
    async with email_house() as house:
        with pytest.raises(CannotTellError):
            await house.channel.find(message)


async def test_the_outcome_stands_behind_its_request_in_a_thread_too(house: EmailHouse) -> None:
    """Where the thread has gone on meanwhile, or the asker is an operator himself."""
    async with house.running() as intake:
        house.writes("do it", subject="Plan")
        await intake.until(lambda: intake.accepted)
        place = intake.accepted[0].place
        sent = await house.channel.ask(place, request(), "p1")
        house.writes("and quickly", subject="Plan")
        await intake.until(lambda: len(intake.accepted) == 2)
        await house.channel.settle(sent, request(open=False))
    asked, told = (read(raw) for raw in house.smtp.mails)
    assert told["In-Reply-To"] == asked["Message-ID"]
    assert asked["References"].split() == [intake.accepted[0].message_id]
    assert told["References"].split()[-1] == asked["Message-ID"]


async def test_the_outcome_is_told_to_all_who_were_asked_but_him_who_decided(house: EmailHouse) -> None:
    """In a thread of several operators; alone in it, he knows."""
    async with house.running() as intake:
        house.writes("do it", sender="olga@example.com", subject="Plan", to=f"{USER}, otto@example.com")
        await intake.until(lambda: intake.accepted)
        place = intake.accepted[0].place
        decided = request(open=False, decided_by=Identity("email", "olga@example.com"))
        await house.channel.settle(await house.channel.ask(place, request(), "p1"), decided)
        assert len(house.smtp.mails) == 1
        house.writes("yes please", sender="otto@example.com", answers=house.smtp.mails[0])
        await intake.until(lambda: len(intake.accepted) == 2)
        await house.channel.settle(await house.channel.ask(place, request(), "p2"), decided)
    assert house.smtp.notes.taken[-1].recipients == ("otto@example.com",)


async def test_word_of_a_refusal_that_is_refused_goes_round_no_more_than_once(house: EmailHouse) -> None:
    """However the server words it, what it is about is the same: alarms are told once a day about one thing."""
    async with house.running() as intake:
        for number in range(3):
            house.smtp.script("RCPT", f"550 5.7.1 you are blocked ({number})")
            with pytest.raises(UnreachableError):
                await house.send(OLGA, "word", key=f"k{number}")
    assert len({subject for subject, _ in intake.alarms}) == 1
