"""Mails, servers and state that would keep others out: none of them does."""

from __future__ import annotations

import logging
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from datetime import timedelta
from email.utils import format_datetime

import pytest

from channels.email import EmailSettings
from channels.email.adapter import EmailChannel
from channels.email.proof.authenticity import SignatureFinding
from tests.platforms.email_house import MX, EmailHouse, email_house, received, table
from tests.platforms.imap_server import PASSWORD, USER
from tests.platforms.smtp_checks import read
from zerobot.core.envelope import Acceptance, InboundEnvelope
from zerobot.testing.intake import RecordingIntake


class PickyIntake(RecordingIntake):
    """An intake that does as it is told with the next envelopes, one each."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: list[Acceptance] = []

    async def accept(self, envelope: InboundEnvelope) -> Acceptance:
        """Refuse an envelope, or accept it; see `Intake`."""
        return self.outcomes.pop(0) if self.outcomes else await super().accept(envelope)


DEEP = "[" * 200_000


def carl_writes(house: EmailHouse, text: str, **fields: str) -> int:
    """A mail of somebody whom Ann has named in her thread."""
    return house.writes(text, sender="carl@example.com", subject="Re: Plan", Cc="ann@example.com", **fields)  # type: ignore[arg-type]


@pytest.fixture
async def house() -> AsyncIterator[EmailHouse]:
    """A mailbox beside doubles of both servers."""
    async with email_house() as house:
        yield house


async def until_end(house: EmailHouse, intake: RecordingIntake) -> None:
    """Wait until a further mail has come in, and so all mails before it have been looked at."""
    house.writes("end", sender="zoe@example.com", subject="")
    await intake.until(lambda: intake.accepted and intake.accepted[-1].text == "end")


async def test_a_mail_that_the_server_cannot_give_keeps_no_others_out(house: EmailHouse) -> None:
    """It is asked for some times, and then let be; operators hear of it."""
    refused = b"TAG NO [SERVERBUG] internal error\r\n"
    async with house.running() as intake:
        house.imap.script("UID FETCH", *[refused] * 5)
        house.writes("lost", subject="")
        await until_end(house, intake)
    assert intake.texts == ["end"]
    assert [subject for subject, _ in intake.alarms] == ["unreadable"]


async def test_a_mail_that_is_given_after_some_tries_is_taken_in(house: EmailHouse) -> None:
    """The server was restarted meanwhile, say."""
    async with house.running() as intake:
        house.imap.script("UID FETCH", *[None] * 4)
        house.writes("there", subject="")
        await until_end(house, intake)
    assert intake.texts == ["there", "end"]
    assert intake.alarms == []


@pytest.mark.parametrize(
    "date",
    [
        "Fri, 31 Dec 9999 23:59:59 -1200",
        "Mon, 1 Jan 0001 00:00:00 +1400",
        "x" * 100_000,
        "1 Jan 99999999999999 0:0:0",
        "",
    ],
)
async def test_no_date_of_a_received_field_stops_receiving(house: EmailHouse, date: str) -> None:
    """It is our own server's, or the mail was put into the mailbox by somebody else."""
    async with house.running() as intake:
        raw = house.mail("odd", sender="ann@example.com", subject="")
        results = f"Authentication-Results: {MX}; dmarc=pass header.from=example.com\r\n"
        house.imap.deliver(f"{results}Received: by {MX} with LMTP; {date}\r\n".encode() + raw)
        await until_end(house, intake)
    assert intake.alarms == []


@pytest.mark.parametrize(
    "damage",
    ["", "x", "null", "[]", "7", '"text"', "{}", DEEP, '{"owner": 1}', "[null]", '["x"]', "[1e999]", "NaN", "\udc80"],
)
async def test_state_that_was_damaged_is_as_if_there_were_none(damage: str) -> None:
    """The position, a thread, the counts: mails come in all the same."""
    async with email_house(answers_per_hour=100) as house:
        await damage_all(house, damage)


async def damage_all(house: EmailHouse, damage: str) -> None:
    """Damage each value of the state in turn; a mail comes in each time."""
    async with house.running() as intake:
        house.writes("one", subject="Plan")
        await intake.until(lambda: intake.accepted)
    for key, value in list(house.state.values.items()):
        for number, worse in enumerate((damage, value.replace(":[", ":[7,"), value.replace('"', "'"), value[:-5])):
            house.state.values[key] = worse
            async with house.running():
                await house.looked_at(house.writes(f"{key} {number}", subject="Plan"))
            assert intake.texts[-1].endswith(f"{key} {number}")
        house.state.values[key] = value
    assert intake.breaks == []


async def test_a_mail_that_was_written_long_ago_is_let_be(house: EmailHouse) -> None:
    """Somebody has kept an operator's mail and sends it once more: it comes in now, and the server finds it signed."""
    async with house.running() as intake:
        house.writes("/unfreeze", Date=format_datetime(house.clock.now() - timedelta(days=31)))
        await until_end(house, intake)
    assert intake.texts == ["end"]
    assert ("stale", "stale") in [(each.get("reason"), each.get("why")) for _, each in house.log.events]


async def test_a_mail_that_comes_again_under_another_id_is_the_one_it_was(house: EmailHouse) -> None:
    """An id is not what a signature covers everywhere."""
    date = format_datetime(house.clock.now())
    async with house.running() as intake:
        house.writes("/freeze", Date=date)
        house.writes("/freeze", Date=date, Message_ID="<another@example.com>", In_Reply_To="<x@example.com>")
        await until_end(house, intake)
    assert intake.texts == ["/freeze", "end"]
    assert len(intake.duplicates) == 1


@pytest.mark.parametrize("outcome", [Acceptance.FULL, Acceptance.BLOCKED])
async def test_mails_that_get_a_word_and_no_answer_count_as_well(house: EmailHouse, outcome: Acceptance) -> None:
    """A queue is full, or a guard blocks: the bot says so by mail, and a machine may answer that."""
    intake = house.intake = PickyIntake()
    async with house.running():
        intake.outcomes = [outcome] * 30
        for number in range(14):
            uid = house.writes(f"mail {number}", Subject="the same")
        await house.looked_at(uid)
    assert len(intake.outcomes) == 20
    assert [subject for subject, _ in intake.alarms] == ["loop"] * 4


async def test_mails_of_who_may_not_talk_to_the_bot_leave_nothing(house: EmailHouse) -> None:
    """Neither of a thread of their own nor of one in which they were named."""
    intake = house.intake = PickyIntake()
    async with house.running():
        house.writes("hello", subject="Plan", Cc="carl@example.com", Message_ID="<1@example.com>")
        await intake.until(lambda: intake.accepted)
        before = dict(house.state.values)
        intake.outcomes = [Acceptance.NOT_ALLOWED] * 40
        for number in range(20):
            carl_writes(house, f"in {number}")
            uid = house.writes(f"own {number}", sender="carl@example.com", subject=f"own {number}")
        await house.looked_at(uid)
    assert intake.outcomes == []
    assert {key for key, value in house.state.values.items() if before.get(key) != value} == {"position"}
    assert intake.alarms == []


async def test_who_asks_to_be_let_in_is_told_so_and_nobody_else(house: EmailHouse) -> None:
    """A stranger who was named in a thread gets his code there; later words of the bot go to who may talk to it."""
    intake = house.intake = PickyIntake()
    async with house.running():
        house.writes("hello", subject="Plan", Cc="carl@example.com", Message_ID="<1@example.com>")
        await intake.until(lambda: intake.accepted)
        place = intake.accepted[0].place
        intake.outcomes = [Acceptance.PAIRING]
        carl_writes(house, "me too", Message_ID="<2@example.com>")
        await until_end(house, intake)
        await house.send(place, "Your code", reply_to="<2@example.com>")
        await house.send(place, "It is done", key="k2")
    assert [read(raw)["To"] for raw in house.smtp.mails] == ["carl@example.com", "ann@example.com"]


async def test_a_mail_with_the_id_of_another_takes_none_of_its_answers(house: EmailHouse) -> None:
    """Somebody in the thread gives his mail the id of another's, and writes many more."""
    async with email_house(answers_per_hour=100) as house, house.running() as intake:
        house.writes("secret?", subject="Plan", Cc="carl@example.com", Message_ID="<1@example.com>")
        await intake.until(lambda: intake.accepted)
        for number in range(25):
            carl_writes(house, f"mine {number}", Message_ID="<1@example.com>")
        await intake.until(lambda: len(intake.accepted) == 26)
        assert len({each.place for each in intake.accepted}) == 1
        await house.answer("for Ann", number=0)
        await house.answer("for Carl", key="k2", number=25)
    assert [read(raw)["To"] for raw in house.smtp.mails] == ["ann@example.com", "carl@example.com"]


async def test_a_clock_that_was_put_back_locks_nobody_out(house: EmailHouse) -> None:
    """What was counted a year ahead does not count until then; nor does a first start then hide what comes now."""
    house.clock.wall = timedelta(days=400)
    async with house.running() as intake:
        for number in range(11):
            house.writes(f"mail {number}", subject="Plan")
        await until_end(house, intake)
    house.clock.wall = timedelta()
    async with house.running() as intake:
        await house.looked_at(house.writes("now", subject="Plan"))
    assert intake.texts[-1] == "now"


@pytest.mark.parametrize("order", ["/stop", "approve"])
async def test_what_html_may_hide_is_no_order(house: EmailHouse, order: str) -> None:
    """It comes in as words, and the note says why; in plain sight it counts."""
    async with house.running() as intake:
        for html in (f'<p style="width:0">{order}</p><p>No, thanks</p>', f"<p>{order}</p>"):
            raw = house.mail("x", sender="olga@example.com", subject="[zerobot BCDF23] x")
            raw = raw.replace(b"text/plain", b"text/html").replace(b"\r\nx\r\n", f"\r\n{html}\r\n".encode())
            house.imap.deliver(received(raw, "olga@example.com", house.clock.now()))
        await intake.until(lambda: len(intake.accepted) == 2)
    hidden, seen = intake.texts
    assert hidden.startswith("[")
    assert hidden.endswith(f"{order}\n\nNo, thanks")
    assert seen == {"approve": "/approve BCDF23"}.get(order, order)


async def test_mails_whose_keys_cannot_be_looked_up_keep_no_others_waiting(house: EmailHouse) -> None:
    """However many there are: new ones come first, and of the others a few have their turn at each search."""
    looks: list[str] = []
    slow = True

    async def check(raw: bytes, domain: str) -> SignatureFinding:
        del raw
        looks.append(domain)
        if slow and domain == "slow.test":
            return SignatureFinding(None, "dkim_lookup", temporary=True)
        return SignatureFinding(domain, "dkim")

    settings = EmailSettings.model_validate(table(house.imap, house.smtp, verify_sender="dkim"))
    house.channel = EmailChannel(settings, house.services, check)
    async with house.running() as intake:
        for number in range(10):
            uid = house.writes(f"{number}", sender=f"p{number}@slow.test", subject="")
        await house.looked_at(uid)
        looks.clear()
        house.writes("quick", subject="")
        await intake.until(lambda: intake.accepted)
        assert looks == ["example.com"]
        slow = False
        for number in range(4):
            await house.looked_at(house.writes(f"more {number}", subject=""))
    assert {str(number) for number in range(10)} < set(intake.texts)


async def test_no_secret_is_in_a_log(house: EmailHouse, caplog: pytest.LogCaptureFixture) -> None:
    """Of the libraries at their most talkative, and of ours; in none of the forms in which it is sent."""
    caplog.set_level(logging.DEBUG)
    async with house.running() as intake:
        house.writes("hello", subject="")
        await intake.until(lambda: intake.accepted)
        await house.answer()
        house.imap.refusal = house.imap.greeting = "* BYE"
        house.imap.drop()
        await intake.until(lambda: intake.breaks)
    told = caplog.text + repr(house.log.events)
    for form in (PASSWORD, *(b64encode(each.encode()).decode() for each in (PASSWORD, f"\0{USER}\0{PASSWORD}"))):
        assert form not in told


@pytest.mark.parametrize(
    ("fields", "command"),
    [
        ({"Sender": "olga@example.com"}, ""),
        ({"Resent_From": "olga@example.com", "Resent_Sender": "olga@example.com"}, ""),
        ({"Reply_To": "olga@example.com"}, ""),
        ({"From": "olga@example.com, eve@evil.test"}, None),
        ({"From": "olga@example.com (eve@evil.test)"}, None),
        ({"From": '"olga@example.com" <eve@evil.test>'}, ""),
        ({"From": "=?utf-8?q?olga=40example=2Ecom_=3C?= <eve@evil.test>"}, ""),
        ({"From": "Olga: olga@example.com;"}, None),
    ],
)
async def test_only_from_says_who_decides(house: EmailHouse, fields: dict[str, str], command: str | None) -> None:
    """The server vouches for the domain of who sent it; whoever else is named has written nothing."""
    async with house.running() as intake:
        raw = house.mail("approve", sender="eve@evil.test", subject="[zerobot BCDF23] x")
        for name, value in fields.items():
            field = name.replace("_", "-").encode()
            raw = re.sub(rb"(?m)^" + field + rb":.*\r\n", b"", raw)
            raw = field + b": " + value.encode() + b"\r\n" + raw
        house.imap.deliver(received(raw, "eve@evil.test", house.clock.now()))
        await until_end(house, intake)
    senders = [each.sender.id for each in intake.accepted[:-1]]
    assert senders == ([] if command is None else ["eve@evil.test"])
