"""Each key of the table changes something: what it is set to, against what it is without."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import pytest
from pydantic import ValidationError

from channels.email import EmailSettings
from tests.channels.email.town import EmailTown
from tests.platforms.certificates import Authority
from tests.platforms.email_house import MX, EmailHouse, email_house
from tests.platforms.imap_server import PASSWORD, USER, ImapServer
from tests.platforms.model_script import says
from tests.platforms.smtp_checks import mailboxes
from tests.platforms.smtp_server import SmtpServer
from zerobot.core.errors import TryLaterError
from zerobot.core.places import Place

ANN = Place("email", "ann@example.com")


async def texts_taken(house: EmailHouse, write: Any) -> list[str]:
    """What is taken in of some mails; after them comes one that is."""
    async with house.running() as intake:
        write(house)
        house.writes("end", subject="", sender="bea@example.com")
        await intake.until(lambda: "end" in intake.texts)
    return [text.removeprefix("Subject: Question\n\n") for text in intake.texts[:-1]]


async def assert_it_breaks(house: EmailHouse) -> None:
    """The mailbox cannot be read."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(house.channel.run(house.intake))
        await house.intake.until(lambda: house.intake.breaks)
        task.cancel()
    assert house.intake.connects == 0


def relayed(by: str, results: str, author: str, *, submitted: bool = False) -> bytes:
    """A mail that our server handed on within the house, with the results that it wrote.

    Args:
        by: The address of our server, as the next one of ours saw it.
        results: What it found; empty: it has checked nothing.
        author: In From.
        submitted: Whether an account of ours handed it in.
    """
    at = format_datetime(datetime.now(UTC))
    domain = author.rpartition("@")[2]
    last = f"from {MX} (mx [{by}]) by store.example.test with ESMTPS id 2; {at}"
    first = (
        f"from [192.168.1.5] (unknown [192.168.1.5]) by {MX} (Postfix) with ESMTPSA id 1; {at}"
        if submitted
        else f"from mail.{domain} (mail.{domain} [203.0.113.9]) by {MX} with ESMTPS id 1; {at}"
    )
    fields = [
        *([] if submitted else [f"Received: {last}", f"Authentication-Results: {MX}; {results}"]),
        f"Received: {first}",
        f"From: {author}",
        f"To: {USER}",
        "Subject: Question",
        f"Date: {at}",
        f"Message-ID: <1@{domain}>",
        "",
        "hello",
        "",
    ]
    return "\r\n".join(fields).encode()


# -- the account and its servers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", [{"imap_host": "127.0.0.2"}, {"imap_port": 1}, {"imap_security": "starttls"}])
async def test_mail_is_read_as_imap_host_port_and_security_say(changed: dict[str, Any]) -> None:
    """Nobody listens elsewhere, and this server has no TLS, so it gets no password."""
    async with email_house(**changed) as house:
        await assert_it_breaks(house)
        assert "LOGIN" not in house.imap.commands
    async with email_house() as house, house.running():
        assert "LOGIN" in house.imap.commands


@pytest.mark.parametrize("changed", [{"smtp_host": "127.0.0.2"}, {"smtp_port": 1}, {"smtp_security": "starttls"}])
async def test_mail_is_sent_as_smtp_host_port_and_security_say(changed: dict[str, Any]) -> None:
    """Nobody listens elsewhere, and this server has no STARTTLS."""
    async with email_house(**changed) as house:
        with pytest.raises(TryLaterError):
            await house.send(ANN, "hello")
        assert house.smtp.mails == []
    async with email_house() as house:
        await house.send(ANN, "hello")
        assert len(house.smtp.mails) == 1


@pytest.mark.parametrize("trusts", [True, False])
async def test_a_private_authority_is_trusted_by_tls_ca_file(authority: Authority, *, trusts: bool) -> None:
    """On both ways."""
    context = authority.server_context("DNS:localhost")
    name = str(authority.ca_file) if trusts else ""
    async with (
        ImapServer(context, implicit=True) as imap,
        SmtpServer(security="tls", tls=context, accounts={USER: PASSWORD}) as smtp,
    ):
        secure: dict[str, Any] = {
            "imap_security": "tls",
            "smtp_security": "tls",
            "imap_host": "localhost",
            "smtp_host": "localhost",
        }
        house = EmailHouse(imap, smtp, tls_ca_file=name, **secure)
        if trusts:
            async with house.running():
                await house.send(ANN, "hello")
        else:
            with pytest.raises(TryLaterError):
                await house.send(ANN, "hello")
            await assert_it_breaks(house)
        await house.close()
        assert len(smtp.mails) == trusts


@pytest.mark.parametrize(
    ("changed", "account"), [({}, USER), ({"username": "zero"}, "zero"), ({"password": "another"}, USER)]
)
async def test_username_and_password_log_in_on_both_servers(changed: dict[str, Any], account: str) -> None:
    """Without a name, the address is it."""
    password = changed.get("password", PASSWORD)
    async with ImapServer() as imap, SmtpServer(accounts={account: password}) as smtp:
        imap.accounts = {account: password}
        house = EmailHouse(imap, smtp, **changed)
        async with house.running():
            await house.send(ANN, "hello")
        await house.close()
        assert smtp.notes.taken[0].account == account
        assert mailboxes(smtp.mails[0], "From")[0][1] == USER


# -- who the bot is ----------------------------------------------------------------------------------------------------


async def test_the_bots_address_and_aliases_are_what_it_is_written_to_at() -> None:
    """Mail to others is let be; answers come from the address, with the name beside it."""

    def write(house: EmailHouse) -> None:
        for number, to in enumerate((USER, "help@example.test")):
            house.writes(f"mail {number}", to=to)

    async with email_house() as house:
        assert await texts_taken(house, write) == ["mail 0"]
        assert mailboxes(await house.answer(number=0), "From") == [("", USER)]
    async with email_house(aliases=["help@example.test"], display_name="Zero") as house:
        assert await texts_taken(house, write) == ["mail 0", "mail 1"]
        assert mailboxes(await house.answer(number=0), "From") == [("Zero", USER)]
    async with email_house(address="help@example.test", username=USER) as house:
        house.smtp.notes.taken.clear()
        async with house.running() as intake:
            house.writes("mail 0", to=USER)
            house.writes("mail 1", to="help@example.test", subject="")
            await intake.until(lambda: intake.accepted)
            assert mailboxes(await house.answer(), "From") == [("", "help@example.test")]
        assert intake.texts == ["mail 1"]


# -- the mailbox -------------------------------------------------------------------------------------------------------


async def test_mail_is_looked_for_in_the_folder() -> None:
    """And in no other."""
    async with email_house(folder="Robot") as house:
        house.imap.add_folder("Robot")
        async with house.running() as intake:
            house.writes("not this", subject="")
            house.writes("this", subject="", folder="Robot")
            await intake.until(lambda: intake.accepted)
        assert intake.texts == ["this"]


@pytest.mark.parametrize(
    ("changed", "sent", "copies"),
    [
        ({}, 1, 0),
        ({"sent_copy": "off"}, 0, 0),
        ({"sent_copy": "server"}, 0, 0),
        ({"sent_folder": "Copies"}, 0, 1),
    ],
)
async def test_copies_go_where_sent_copy_and_sent_folder_say(changed: dict[str, Any], sent: int, copies: int) -> None:
    """Into the folder that the server names, into another one, or nowhere."""
    async with email_house(**changed) as house:
        house.imap.add_folder("Copies")
        async with house.running():
            await house.send(ANN, "hello")
            if sent + copies:
                await house.imap.until(lambda: house.imap.folder("Sent").mails or house.imap.folder("Copies").mails)
        counts = [len(house.imap.folder(name).mails) for name in ("Sent", "Copies")]
    assert counts == [sent, copies]


@pytest.mark.parametrize(
    ("idles", "changed", "seconds"),
    [
        (True, {}, 540.0),
        (True, {"idle_renewal": "2m"}, 120.0),
        (False, {}, 60.0),
        (False, {"poll_interval": "5s"}, 5.0),
    ],
)
async def test_it_waits_for_mail_as_long_as_idle_renewal_and_poll_interval_say(
    changed: dict[str, Any], seconds: float, *, idles: bool
) -> None:
    """In IDLE, or between two looks."""
    async with email_house(**changed) as house:
        if not idles:
            house.imap.capabilities.remove("IDLE")
        async with house.running() as intake:
            house.writes("hello")
            await intake.until(lambda: intake.accepted)
            await house.imap.until(lambda: house.clock.waits)
    assert set(house.clock.waits) == {seconds}


# -- who is believed ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "believed"),
    [
        ({}, ["proved"]),
        ({"trusted_authserv": ["mx.other.test"]}, []),
        ({"trusted_authserv": ["*.example.test"]}, ["proved"]),
        ({"verify_sender": "off"}, ["proved", "not proved"]),
        # Neither is signed.
        ({"verify_sender": "dkim"}, []),
    ],
)
async def test_senders_are_believed_as_verify_sender_and_trusted_authserv_say(
    changed: dict[str, Any], believed: list[str]
) -> None:
    """By our server's results, by a signature, or just so."""
    async with email_house(verify_sender=changed.pop("verify_sender", "authentication-results"), **changed) as house:
        mails = {"proved": True, "not proved": False}
        async with house.running() as intake:
            for text, proved in mails.items():
                house.writes(text, proved=proved, subject="")
            refused = len(mails) - len(believed)
            await intake.until(lambda: len(intake.accepted) == len(believed))
            await house.imap.until(lambda: house.log.names.count("envelope.refused") == refused)
        assert intake.texts == believed


@pytest.mark.parametrize(("relays", "believed"), [([], []), (["10.1.0.0/16"], ["hello"]), (["10.2.0.0/16"], [])])
async def test_results_below_a_hop_count_where_trusted_relays_has_it(relays: list[str], believed: list[str]) -> None:
    """Servers of the house that hand mail to one another."""
    raw = relayed("10.1.2.3", "dmarc=pass header.from=example.com", "ann@example.com")
    async with email_house(trusted_relays=relays) as house:
        assert await texts_taken(house, lambda house: house.imap.deliver(raw)) == believed


@pytest.mark.parametrize("trusted", [True, False])
async def test_mail_of_other_accounts_counts_where_trust_submitted_says_so(*, trusted: bool) -> None:
    """It proves the server, not the person."""
    raw = relayed("", "", "ann@example.test", submitted=True)
    async with email_house(trust_submitted=trusted) as house:
        assert await texts_taken(house, lambda house: house.imap.deliver(raw)) == ["hello"] * trusted


# -- how much ----------------------------------------------------------------------------------------------------------


async def test_no_more_mails_are_answered_than_answers_per_hour() -> None:
    """Of one thread."""
    async with email_house(answers_per_hour=2) as house:
        taken = await texts_taken(house, lambda house: [house.writes(f"mail {number}") for number in range(4)])
    assert taken == ["mail 0", "mail 1"]


@pytest.mark.parametrize("wanted", [True, False])
async def test_files_up_to_max_attachment_are_fetched(town: EmailTown, *, wanted: bool) -> None:
    """A larger one is named to the model, and not there."""
    town.configure(town.table, max_attachment="1KB" if wanted else "0")
    town.model.answers(says("Read."))
    async with town.daemon():
        town.sends_file(town.uma, "notes.txt", b"what it says", "read it")
        await town.uma.chat.reply("Read.")
    assert len([path for path in town.workspace.rglob("*") if path.is_file()]) == wanted
    assert "notes" in town.model.last_request.newest_text


# -- what every channel has --------------------------------------------------------------------------------------------


async def test_a_mail_in_cc_alone_is_answered_without_require_mention(town: EmailTown) -> None:
    """Else only what has the bot in To is."""
    town.configure(town.table, require_mention=False)
    town.model.answers(says("Noted."))
    async with town.daemon():
        town.uma.says("for all of you", chat=town.team)
        await town.team.reply("Noted.")


async def test_a_whole_domain_may_be_allowed(town: EmailTown) -> None:
    """`@example.org` in `allowed_users`; what is below it is another domain."""
    town.configure(town.table, allowed_users=["@example.org"])
    town.model.answers(says("Welcome."))
    elsewhere = town.office.person("Yan", "yan@sub.example.org")
    async with town.daemon() as daemon:
        elsewhere.says("hello")
        town.uma.says("hello")
        await daemon.until("envelope.refused", count=2)
        town.xen.says("hello")
        await town.xen.chat.reply("Welcome.")
    assert len(town.office.answers) == 1


async def test_a_channel_has_a_name_and_an_agent_of_its_own(town: EmailTown) -> None:
    """`kind` where the table is called otherwise; `agent` where another one answers."""
    town.configure("agents.poet", instructions="You rhyme.")
    town.tables["channels.post"] = town.tables.pop(town.table) | {"kind": "email", "agent": "poet"}
    town.model.answers(says("Time, rhyme."))
    async with town.daemon() as daemon:
        town.uma.says("hello")
        await town.uma.chat.reply("Time, rhyme.")
    assert daemon.named("envelope.accepted")[0]["channel"] == "post"
    assert "You rhyme." in town.model.last_request.system


async def test_a_channel_that_is_not_enabled_connects_to_nothing(town: EmailTown) -> None:
    """The daemon is there all the same."""
    town.configure(town.table, enabled=False)
    async with town.daemon():
        pass
    assert town.office.imap.connects == 0


def test_there_are_no_drafts_by_mail() -> None:
    """So the key takes nothing else."""
    usual = {"address": USER, "password": PASSWORD, "imap_host": "localhost", "smtp_host": "localhost"}
    settings = EmailSettings.model_validate(usual | {"verify_sender": "off"})
    assert settings.drafts == "off"
    with pytest.raises(ValidationError, match="off"):
        EmailSettings.model_validate(usual | {"verify_sender": "off", "drafts": "edit"})
