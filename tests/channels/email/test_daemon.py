"""What only e-mail has, through the whole daemon."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest

from tests.channels.email.town import EmailTown
from tests.platforms.email_people import Letter
from tests.platforms.model_script import calls, holds, says
from tests.platforms.smtp_server import DROP
from tests.platforms.telegram_server import Person, TelegramServer

WAITING = "(I am waiting for an operator's decision; the answer comes after it.)"
AT_WORK = "I am still at work on this; the answer comes as soon as I have it."
PAIRING_CODE = re.compile(r"\b[A-Z0-9]{8}\b")


@pytest.fixture
async def otto(town: EmailTown) -> AsyncIterator[Person]:
    """An operator on a second channel; each operator is asked directly."""
    async with TelegramServer() as telegram:
        town.configure("channels.telegram", bot_token=telegram.token, api_base=telegram.api_base)
        town.configure("operators", users=["email:olga@example.com", "telegram:1001"], notify="direct")
        yield telegram.user("1001", name="Otto")
        assert telegram.violations == []


# -- how many mails ----------------------------------------------------------------------------------------------------


async def test_a_turn_that_waits_for_an_operator_says_so_in_one_mail(town: EmailTown) -> None:
    """With what it has said so far; and the answer comes once it is decided, in the same thread."""
    town.model.answers(says("Let me make it.") + calls("shell", id="c1", command="touch made"))
    async with town.daemon() as daemon:
        asked = town.uma.says("do it")
        prompt = await town.prompt(town.olga.chat)
        await daemon.until("delivery.sent")
        assert "Uma" in prompt.text
        town.model.answers(says("Done."))
        await town.told(town.olga.presses(prompt, "Approve"))
        await town.uma.chat.reply("Done.")
    assert town.uma.chat.texts == [f"Let me make it.\n\n{WAITING}", "Done."]
    assert [letter.answers for letter in town.uma.chat.replies] == [asked.id] * 2
    assert town.made()


async def test_a_turn_that_takes_long_says_so_once(town: EmailTown) -> None:
    """After `notice_after`."""
    town.configure(town.table, notice_after="1s")
    town.model.answers(holds(calls("time_now", id="c1")), holds(says("Done."), after=0))
    async with town.daemon():
        town.uma.says("do it")
        await town.uma.chat.reply(AT_WORK)
        await town.model.until_holding()
        town.model.release()
        await town.model.until_holding()
        town.model.release()
        await town.uma.chat.reply("Done.")
    assert town.uma.chat.texts == [AT_WORK, "Done."]


async def test_a_turn_of_many_steps_is_one_mail(town: EmailTown) -> None:
    """B106: text before each of three tool calls is no mail of its own."""
    town.model.answers(
        *(says(f"Step {number}.") + calls("time_now", id=f"c{number}") for number in range(3)), says("It is noon.")
    )
    async with town.daemon() as daemon:
        town.uma.says("what time is it, three times?")
        await daemon.until("turn.finished")
        await daemon.until("delivery.sent")
    (text,) = town.uma.chat.texts
    assert text.endswith("It is noon.")


async def test_an_answer_goes_to_the_others_only_where_that_is_wanted(town: EmailTown) -> None:
    """`reply_to_all`: without it nobody but the sender gets mail, whoever he names."""
    town.model.always(says("Noted."))
    for wanted in (True, False):
        town.configure(town.table, reply_to_all=wanted)
        async with town.daemon() as daemon:
            town.uma.says(town.to_bot("note this"), chat=town.team)
            await daemon.until("delivery.sent")
    to_all, to_one = town.team.replies
    assert sorted(to_all.recipients) == sorted(town.team.people)
    assert to_one.recipients == ("uma@example.com",)


async def test_a_turn_that_waits_twice_says_so_once(town: EmailTown) -> None:
    """Each request is a mail to the operator, also of two calls at once; whoever asked gets one before the answer."""
    town.model.answers(
        says("First two things.")
        + calls("shell", id="c1", command="touch one")
        + calls("shell", id="c2", command="touch two"),
        says("Then a third.") + calls("shell", id="c3", command="touch three"),
        says("Done."),
    )
    async with town.daemon():
        town.uma.says("do it")
        await town.olga.chat.wait_for(lambda chat: len(chat.replies) == 2)
        for prompt in list(town.olga.chat.replies):
            await town.told(town.olga.answers(prompt, f"Approve.\n\nOn Monday Zero wrote:\n> {prompt.plain[:40]}"))
        await town.told(town.olga.presses(await town.prompt(town.olga.chat), "Approve"))
        await town.uma.chat.reply("Done.")
    assert [text.count(WAITING) for text in town.uma.chat.texts] == [1, 0]
    assert all(town.made(name) for name in ("one", "two", "three"))


async def test_always_is_said_by_mail_too(town: EmailTown) -> None:
    """The same command in the same thread is not asked about again."""
    command = calls("shell", id="c1", command="touch made")
    town.model.answers(command, says("Done."), command, says("Done again."))
    async with town.daemon() as daemon:
        town.uma.says("do it")
        prompt = await town.prompt(town.olga.chat)
        told = await town.told(town.olga.presses(prompt, "Always in this chat"))
        await town.uma.chat.reply("Done.")
        town.uma.says("once more")
        await town.uma.chat.reply("Done again.")
    assert told.text.startswith("Approved, and")
    assert len(daemon.named("approval.requested")) == 1


# -- who is believed ---------------------------------------------------------------------------------------------------


async def test_a_forged_operator_decides_nothing(town: EmailTown) -> None:
    """Whoever knows the code and the address but not the server: not a word to him, one to the operators."""
    async with town.daemon() as daemon:
        prompt = await town.asks(town.olga)
        for command in ("approve", "always", f"/approve {prompt.code}"):
            town.olga.answers(prompt, command, proved=False)
        await daemon.until("envelope.refused", count=3)
        await town.olga.chat.reply("does not vouch for that")
        assert daemon.named("approval.decided") == []
        await daemon.kill()
    assert {each["why"] for each in daemon.named("envelope.refused")} == {"fail"}
    assert len(town.office.answers) == 2
    assert prompt.buttons
    assert not town.made()


async def test_a_stranger_gets_one_mail_with_a_code_where_that_is_wanted(town: EmailTown) -> None:
    """`pairing`: if his address is proved and a person wrote; an operator lets him in by mail, and out again."""
    town.configure(town.table, pairing=True)
    async with town.daemon() as daemon:
        town.xen.says("I am away", Auto_Submitted="auto-replied")
        town.xen.says("let me in", proved=False)
        town.xen.says("hello?")
        told = await town.xen.chat.reply("I don't know you yet")
        town.xen.says("hello???")
        await daemon.until("envelope.refused", count=4)
        assert [letter.subject for letter in town.xen.chat.replies] == [
            "I don't know you yet. Your id is email:xen@example.org. Giv…"
        ]
        asked = await town.olga.chat.reply("Somebody wants to talk to me")
        code = PAIRING_CODE.search(told.text)
        assert code is not None
        assert f"/pair {code[0]}" in asked.plain
        town.olga.answers(asked, f"/pair {code[0]}")
        await town.xen.chat.reply("You are in")
        town.model.answers(says("Welcome."))
        town.xen.says("thank you")
        await town.xen.chat.reply("Welcome.")
        town.olga.answers(asked, "/pair revoke email:xen@example.org")
        await town.olga.chat.reply("may no longer talk to me")
        town.xen.says("still there?")
        await daemon.until("envelope.refused", count=5)
    reasons = [each["reason"] for each in daemon.named("envelope.refused")]
    assert reasons == ["loop", "not_allowed", "pairing", "pairing", "not_allowed"]
    # Who has decided by mail is told by the answer to that.
    assert [letter.subject for letter in town.olga.chat.replies if "wanted" in letter.subject] == []


async def test_what_a_shut_out_person_wrote_before_is_not_answered(town: EmailTown) -> None:
    """His mail is stored and waits when the list of people changes."""
    town.model.answers(holds(says("One."), after=0))
    async with town.daemon() as daemon:
        town.uma.says("first")
        await town.model.until_holding()
        town.uma.says("second")
        await daemon.until("envelope.accepted", count=2)
        await daemon.kill()
    town.configure(town.table, allowed_users=["vic@example.com"])
    town.model.always(says("For Vic."))
    async with town.daemon() as daemon:
        town.uma.says("third")
        await daemon.until("envelope.refused")
        town.vic.says("hello")
        await town.vic.chat.reply("For Vic.")
    assert all("second" not in str(request.messages) for request in town.model.requests)
    assert not any("For Vic." in text for text in town.uma.chat.texts)


# -- operators ---------------------------------------------------------------------------------------------------------


async def test_an_operator_by_mail_and_one_elsewhere_decide_the_same_request(town: EmailTown, otto: Person) -> None:
    """The first one counts; the other is told, and so is who comes too late. Here the button is first."""
    town.model.answers(calls("shell", id="c1", command="touch made"))
    async with town.daemon() as daemon:
        town.uma.says("do it")
        by_mail = await town.prompt(town.olga.chat)
        button = await town.prompt(otto.chat)
        town.model.answers(says("Done."))
        assert (await otto.presses(button, "Approve").answered()).text == "Approved."
        await town.olga.chat.wait_for(lambda _: not by_mail.buttons)
        assert "Otto" in by_mail.text
        told = await town.told(town.olga.presses(by_mail, "Deny"))
        assert "Already decided" in told.text
        await town.uma.chat.reply("Done.")
    assert len(daemon.named("approval.decided")) == 1
    assert town.made()


async def test_a_decision_by_mail_takes_the_buttons_away_elsewhere(town: EmailTown, otto: Person) -> None:
    """And the reason of a denial, behind the first word, reaches the model."""
    town.model.answers(calls("shell", id="c1", command="touch made"))
    async with town.daemon() as daemon:
        town.uma.says("do it")
        by_mail = await town.prompt(town.olga.chat)
        button = await town.prompt(otto.chat)
        press = next(each["callback_data"] for row in button.keyboard for each in row if each["text"] == "Approve")
        town.model.answers(says("I leave it."))
        told = await town.told(town.olga.answers(by_mail, "deny use the other folder\n\nOlga"))
        assert told.text == "Denied."
        await otto.chat.wait_for(lambda _: not button.buttons)
        assert "Olga" in button.text or "olga@example.com" in button.text
        late = await otto.sends_press(button, press).answered()
        assert "Already decided" in late.text
        await town.uma.chat.reply("I leave it.")
    assert len(daemon.named("approval.decided")) == 1
    assert "use the other folder" in town.model.last_request.result_of("c1").text
    assert not town.made()


async def test_a_mail_and_a_button_at_the_same_moment_are_one_decision(town: EmailTown, otto: Person) -> None:
    """Each is told the truth: one that it counted, the other that it came too late."""
    town.model.answers(calls("shell", id="c1", command="touch made"))
    async with town.daemon() as daemon:
        town.uma.says("do it")
        by_mail = await town.prompt(town.olga.chat)
        button = await town.prompt(otto.chat)
        town.model.answers(says("It is over."))
        mail, press = town.olga.presses(by_mail, "Approve"), otto.presses(button, "Deny")
        told = [(await town.told(mail)).text, (await press.answered()).text]
        await town.uma.chat.reply("It is over.")
        (decided,) = daemon.named("approval.decided")
    assert ["Already decided" in text for text in told] == [
        decided["state"] == "denied",
        decided["state"] == "approved",
    ]
    assert town.made() is (decided["state"] == "approved")


async def test_an_operator_freezes_by_mail(town: EmailTown) -> None:
    """And nobody else does."""
    town.model.answers(calls("time_now", id="c1"), says("Frozen."))
    async with town.daemon():
        town.uma.says("/freeze")
        await town.uma.chat.reply("Only an operator")
        town.olga.says("/freeze\n\nIt went mad.\n-- \nOlga")
        await town.olga.chat.reply("Frozen: no tool runs")
        town.uma.says("what time is it?")
        await town.uma.chat.reply("Frozen.")
    assert town.model.last_request.result_of("c1").code == "BLOCKED"


async def test_operators_hear_once_of_an_answer_that_nobody_can_get(town: EmailTown) -> None:
    """5xx: whoever asked can't be told by mail, so somebody else must know."""
    town.model.answers(says("No way through."), says("Nor now."), says("Here."))
    async with town.daemon() as daemon:
        for number in range(2):
            town.office.smtp.script("RCPT", f"550 5.1.1 no such user ({number})")
            town.uma.says(f"hello {number}")
            await daemon.until("delivery.failed", count=number + 1)
            await town.olga.chat.reply("550 5.1.1 no such user (0)")
        town.vic.says("hello")
        await town.vic.chat.reply("Here.")
    (told,) = town.olga.chat.texts
    assert "uma@example.com" in told


async def test_what_is_refused_goes_without_its_formatting_and_operators_hear_of_it(town: EmailTown) -> None:
    """A filter that has something against HTML."""
    town.model.answers(says("**Here.**"))
    async with town.daemon() as daemon:
        town.office.smtp.script("END", "550 5.7.1 spam")
        town.uma.says("hello")
        await daemon.until("delivery.sent")
        await town.olga.chat.reply("550 5.7.1 spam")
    (letter,) = town.uma.chat.replies
    assert letter.mail.get_content_type() == "text/plain"
    assert letter.plain == "Here."


# -- broken connections ------------------------------------------------------------------------------------------------


async def test_an_answer_arrives_though_the_connection_broke_before(town: EmailTown) -> None:
    """Nothing of it was taken, so it goes again as it is."""
    town.model.answers(says("Here I am."))
    async with town.daemon() as daemon:
        town.office.smtp.script("DATA", DROP)
        town.uma.says("hello")
        await daemon.until("delivery.sent")
    assert town.uma.chat.texts == ["Here I am."]


@pytest.mark.slow
async def test_an_answer_arrives_where_strangers_are_put_off(town: EmailTown) -> None:
    """Greylisting: the answer waits its minute, and nobody else's waits for it."""
    town.model.answers(says("For Uma."), says("For Vic."))
    async with town.daemon() as daemon:
        town.limit_next("send", 60, town.uma.chat)
        town.uma.says("hello")
        await town.office.until(lambda: town.office.smtp.notes.events.count("DATA") == 1)
        town.vic.says("hello")
        await town.vic.chat.reply("For Vic.")
        assert town.uma.chat.texts == []
        await daemon.until("delivery.sent", count=2, patience=120)
    assert town.uma.chat.texts == ["For Uma."]


async def test_an_unclear_mail_is_not_repeated_where_the_server_keeps_copies(town: EmailTown) -> None:
    """`sent_copy = "server"`: it is found in the folder of sent mail."""
    town.configure(town.table, sent_copy="server")
    town.model.answers(says("Only once."))
    async with town.daemon() as daemon:
        town.break_next("send", town.uma.chat)
        town.uma.says("tell me")
        letter: Letter = await town.uma.chat.reply("Only once.")
        town.office.imap.deliver(letter.raw, folder="Sent")
        await daemon.until("delivery.sent", patience=60)
    assert town.uma.chat.texts == ["Only once."]
