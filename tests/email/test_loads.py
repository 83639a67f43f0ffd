"""Much at once: a thousand mails, a large file in both directions, a mailbox with very many mails."""

from __future__ import annotations

import asyncio
import os
import smtplib
from pathlib import Path

import httpx
import pytest

from channels.email import EmailSettings
from channels.email.adapter import open_channel
from tests.email.people import LOOK, Maildir, Person, said
from tests.email.servers import MailServers
from tests.email.stage import BOT, REPEAT, MailStage
from tests.platforms.adapter_parts import COMMANDS, HastyClock, Lines
from tests.platforms.daemon_process import DaemonProcess
from tests.platforms.model_script import says
from tests.platforms.smtp_checks import read
from zerobot.core.channel import ChannelServices, OutboundFile, OutboundMessage
from zerobot.core.places import Place
from zerobot.testing.intake import MemoryState

pytestmark = pytest.mark.slow

PEOPLE = 1_000
LINES = 8
"""Connections over which the mails come in."""
LONG = 150.0
"""Seconds after which a thousand answers are late."""
LARGE = 25_000_000
MORE_MEMORY = 15_000
"""KiB by which a daemon may grow over a mailbox of very many mails."""


def deliver(servers: MailServers, people: list[Person]) -> None:
    """Hand in a mail of each of these people over one connection."""
    with smtplib.SMTP("127.0.0.1", servers.ports["mx"], timeout=60) as smtp:
        for person in people:
            smtp.sendmail(person.address, [BOT], person.mail("please", BOT).as_bytes())


@pytest.mark.timeout(400)
async def test_a_thousand_mails_at_once_are_answered_once_each(stage: MailStage) -> None:
    """Of a thousand people, by a daemon that is killed in the middle.

    Answers that were under way then may be there twice, the second one marked; all others bear no mark.
    """
    stage.configure("daemon", log_level="info")
    stage.model.always(says("Hello."))
    run = os.urandom(4).hex()
    people = [Person(stage.servers, f"{run}.{number}") for number in range(PEOPLE)]
    async with stage.dying() as daemon, asyncio.TaskGroup() as group:
        await daemon.ready()
        for line in range(LINES):
            group.create_task(asyncio.to_thread(deliver, stage.servers, people[line::LINES]))
        await stage.until(lambda: stage.count("inbox") >= PEOPLE // 3)
        await daemon.kill()
    async with stage.daemon():
        await stage.until(lambda: stage.count("turns WHERE state = 'finished'") == PEOPLE, LONG)
        await stage.until_settled(LONG)
    assert stage.rows("SELECT count(*), count(DISTINCT chat) FROM conversations") == [(PEOPLE, PEOPLE)]
    assert stage.rows("SELECT outcome, count(*) FROM turns GROUP BY outcome") == [("replied", PEOPLE)]
    assert stage.servers.are_seen(BOT) == [True] * PEOPLE
    answers = await answers_to(stage, people)
    assert {len([text for text in texts if REPEAT not in text]) for texts in answers.values()} <= {0, 1}
    assert {len([text for text in texts if REPEAT in text]) for texts in answers.values()} <= {0, 1}


async def answers_to(stage: MailStage, people: list[Person]) -> dict[str, list[str]]:
    """Wait until everybody has an answer; what all of them say, by their addresses."""
    mailbox = Maildir(stage.servers.homes / "ann/Maildir")
    answers: dict[str, list[str]] = {}
    async with asyncio.timeout(LONG):
        while len(answers) < len(people):
            await asyncio.sleep(LOOK)
            answers = {}
            for mail in map(read, mailbox.mails()):
                answers.setdefault(mail["To"].addresses[0].addr_spec, []).append(said(mail))
            answers = {each.address: answers[each.address] for each in people if each.address in answers}
    return answers


async def test_a_file_of_25_megabytes_comes_into_the_workspace(stage: MailStage) -> None:
    """Byte by byte, while the daemon takes in other mail."""
    data = os.urandom(LARGE)
    stage.model.always(says("Hello."))
    async with stage.daemon():
        await stage.ann.writes("see the file", file=data)
        ben = Person(stage.servers)
        await ben.writes("hi")
        await stage.ann.gets()
        await ben.gets()
    (path,) = stage.workspace.rglob("data.bin")
    assert path.read_bytes() == data
    assert f"{LARGE} bytes" in stage.model.requests[0].newest_text + stage.model.requests[1].newest_text


async def test_a_file_of_25_megabytes_goes_out_by_the_channel(mail_servers: MailServers, tmp_path: Path) -> None:
    """With its copy in the folder of sent mail."""
    data = os.urandom(LARGE)
    file = tmp_path / "large.bin"
    file.write_bytes(data)
    mail_servers.empty(BOT)
    ann = Person(mail_servers)
    async with httpx.AsyncClient(trust_env=False) as http:
        channel = open_channel(settings_at(mail_servers), services(http))
        (body,) = channel.render("Here it is.")
        out = OutboundFile(path=str(file), name="large.bin")
        sent = await channel.send(
            OutboundMessage(place=Place("email", ann.address), body=body, key=os.urandom(8).hex(), file=out)
        )
        await channel.close()
    answer = await ann.gets()
    (attached,) = answer.iter_attachments()
    assert attached.get_payload(decode=True) == data
    assert mail_servers.copies(BOT, sent.id) == 1


def settings_at(servers: MailServers) -> EmailSettings:
    """The table of the bot's mailbox."""
    return EmailSettings.model_validate(
        {
            "address": BOT,
            "password": servers.accounts[BOT],
            "imap_host": servers.host,
            "imap_port": servers.ports["imaps"],
            "smtp_host": servers.host,
            "smtp_port": servers.ports["smtps"],
            "tls_ca_file": servers.ca_file,
            "verify_sender": "off",
        }
    )


def services(http: httpx.AsyncClient) -> ChannelServices:
    """What the daemon would lend."""
    return ChannelServices(
        name="email",
        http=lambda: http,
        escape=str,
        safe_name=str,
        clock=HastyClock(),
        log=Lines(),
        commands=COMMANDS,
        state=MemoryState(),
    )


async def test_a_daemon_starts_on_fifty_thousand_mails_like_on_none(stage: MailStage, big: str) -> None:
    """It answers a new one, and needs no more memory than with an empty mailbox."""
    stage.model.always(says("Hello."))
    peaks = []
    for account, tag in ((BOT, "small"), (big, "large")):
        person = Person(stage.servers, f"{tag}.{os.urandom(4).hex()}")
        stage.configure("daemon", state_dir=str(stage.folder / tag))
        stage.configure("channels.email", address=account, password=stage.servers.accounts[account])
        async with stage.daemon() as daemon:
            await person.writes("hi", account)
            await person.gets()
            peaks.append(memory(daemon))
    small, large = peaks
    assert large - small < MORE_MEMORY


def memory(daemon: DaemonProcess) -> int:
    """The most memory that a daemon has had so far, KiB."""
    for line in Path(f"/proc/{daemon.pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "VmHWM":
            return int(value.split()[0])
    raise AssertionError("Linux tells it")
