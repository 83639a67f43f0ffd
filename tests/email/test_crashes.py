"""Killed at each arrow of a mail's way, from the mailbox to the correspondent: nothing is lost, nothing answered twice.

A mail is written while a daemon runs that will die; a second daemon goes on. In the end there is one answer, and the
mail is marked as read. Where a part of an answer was under way, nobody but the server knows what became of it: then,
and only then, the answer bears the mark of a possible repeat, and may be there a first time without it.
"""

from __future__ import annotations

import asyncio
import shutil
from itertools import count
from pathlib import Path

import pytest

from tests.email.servers import MailServers
from tests.email.stage import BOT, REPEAT, MailStage
from tests.email.wire import Wire
from tests.platforms.daemon_process import DaemonProcess
from tests.platforms.model_script import holds, says
from tests.platforms.model_server import ModelServer

pytestmark = pytest.mark.slow

SHARDS = 2
ANSWER = "Hello."
AGAIN = 4
"""How often the model gives the answer: a kill may make the daemon ask again."""


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("when", ["before", "after"])
async def test_killed_at_every_commit(tmp_path: Path, mail_servers: MailServers, when: str, shard: int) -> None:
    """From the start to the last record of the answer; what happens between two commits is in it as well."""
    killed = 0
    async with ModelServer() as model:
        first = MailStage(tmp_path, model, mail_servers)
        # Something is known of the mailbox before: a mail that comes in before the first start is left alone.
        async with first.daemon():
            pass
    for number in count(shard + 1, SHARDS):
        mail_servers.empty(BOT)
        async with ModelServer() as model:
            folder = tmp_path / str(number)
            shutil.copytree(first.folder / "state", folder / "state")
            stage = MailStage(folder, model, mail_servers)
            model.when("please", *[says(ANSWER)] * AGAIN)
            if not await dies_and_goes_on(stage, f"{when} {number} "):
                break
            killed += 1
            finds_one_answer(stage)
    assert killed >= 5, "the daemon commits less than that: the sweep does not end it"


async def dies_and_goes_on(stage: MailStage, crash_at: str) -> bool:
    """Write a mail to a daemon that will die, and let the next one go on; False: it came to its end."""
    async with stage.dying(crash_at) as daemon:
        await stage.ann.writes("please")
        ended = asyncio.create_task(daemon.ended())
        sent = asyncio.create_task(daemon.until("delivery.sent"))
        await asyncio.wait((ended, sent), return_when=asyncio.FIRST_COMPLETED)
        if sent.done() and not sent.exception():
            # What comes behind it: the turn's end, the mark, the copy.
            is_killed = await daemon.stop() != 0
        else:
            is_killed = True
            assert isinstance(sent.exception(), AssertionError)
        await ended
    if is_killed:
        await goes_on(stage)
    return is_killed


async def goes_on(stage: MailStage) -> DaemonProcess:
    """Start again, and stop when all is answered."""
    async with stage.daemon() as daemon:
        await stage.ann.gets()
        await stage.until_settled()
    stage.check_nothing_is_left()
    return daemon


def finds_one_answer(stage: MailStage, *, unclear: bool = True) -> None:
    """One answer; `unclear`: it may be there twice, the second one marked."""
    plain = [text for text in stage.ann.reads if REPEAT not in text]
    marked = [text for text in stage.ann.reads if REPEAT in text]
    assert len(plain) <= 1
    assert len(marked) <= unclear
    assert plain or marked
    assert all(text.endswith(ANSWER) for text in stage.ann.reads)
    assert len({mail["Message-ID"] for mail in stage.ann.answers}) == 1
    assert stage.rows("SELECT outcome FROM turns") == [("replied",)]


async def test_killed_while_a_mail_is_fetched(stage: MailStage) -> None:
    """Nothing is known of it yet; the next daemon takes it in."""
    await killed_on_the_way_in(stage, b"BODY.PEEK[]", "client")


async def test_killed_before_it_is_marked_as_read(stage: MailStage) -> None:
    """It is stored, and comes once more: it is known, marked, and not answered again."""
    daemon = await killed_on_the_way_in(stage, b"(\\Seen)", "client")
    assert [each["reason"] for each in daemon.named("envelope.refused")] == ["duplicate"]


async def test_killed_before_the_mark_is_confirmed(stage: MailStage) -> None:
    """It is marked, and how far the folder was read is not stored."""
    daemon = await killed_on_the_way_in(stage, b"Store completed", "server")
    assert [each["reason"] for each in daemon.named("envelope.refused")] == ["duplicate"]


async def killed_on_the_way_in(stage: MailStage, words: bytes, sender: str) -> DaemonProcess:
    """Kill a daemon while these words are on the line to the mailbox; returns the next one."""
    stage.model.always(says(ANSWER))
    async with Wire(stage.servers.ports["imap"]) as wire:
        stage.configure("channels.email", imap_port=wire.port)
        async with stage.dying() as daemon:
            await daemon.ready()
            reached = wire.hold(words, sender=sender)
            await stage.ann.writes("please")
            await kills(daemon, reached)
        following = await goes_on(stage)
    finds_one_answer(stage)
    assert stage.servers.are_seen(BOT) == [True]
    return following


async def kills(daemon: DaemonProcess, reached: asyncio.Event) -> None:
    """Kill it when a line has come so far."""
    async with asyncio.timeout(30):
        await reached.wait()
    await daemon.kill()


async def test_killed_while_the_model_thinks(stage: MailStage) -> None:
    """The model is asked again."""
    stage.model.answers(holds(says("Lost.")), says(ANSWER))
    async with stage.dying() as daemon:
        await daemon.ready()
        await stage.ann.writes("please")
        await stage.model.until_holding()
        await daemon.kill()
    await goes_on(stage)
    finds_one_answer(stage, unclear=False)


@pytest.mark.parametrize("taken", [False, True])
async def test_killed_at_the_end_of_a_mail(stage: MailStage, *, taken: bool) -> None:
    """The server has it, or has not; nobody can say: it goes out once more, marked, and no third time."""
    stage.model.answers(says(ANSWER))
    async with Wire(stage.servers.ports["smtp"]) as wire:
        stage.configure("channels.email", smtp_port=wire.port)
        reached = wire.hold(b"Ok: queued", sender="server") if taken else wire.hold(b"\r\n.\r\n", sender="client")
        async with stage.dying() as daemon:
            await daemon.ready()
            await stage.ann.writes("please")
            await kills(daemon, reached)
        await goes_on(stage)
        await goes_on(stage)
    await stage.ann.gets(1 + taken)
    finds_one_answer(stage)
    assert len(stage.ann.reads) == 1 + taken


@pytest.mark.parametrize("taken", [False, True])
async def test_killed_at_the_end_of_a_mail_of_which_the_server_keeps_a_copy(stage: MailStage, *, taken: bool) -> None:
    """There the server can be asked: one answer, without a mark."""
    account = "copied@example.test"
    stage.servers.empty(account)
    stage.configure("channels.email", address=account, password=stage.servers.accounts[account], sent_copy="server")
    stage.model.answers(says(ANSWER))
    async with Wire(stage.servers.ports["smtp"]) as wire:
        stage.configure("channels.email", smtp_port=wire.port)
        reached = wire.hold(b"Ok: queued", sender="server") if taken else wire.hold(b"\r\n.\r\n", sender="client")
        async with stage.dying() as daemon:
            await daemon.ready()
            await stage.ann.writes("please", account)
            await kills(daemon, reached)
        await goes_on(stage)
    finds_one_answer(stage, unclear=False)
    assert stage.servers.copies(account, stage.ann.answers[0]["Message-ID"]) == 1


@pytest.mark.parametrize("made", [False, True])
async def test_killed_while_the_copy_is_made(stage: MailStage, *, made: bool) -> None:
    """The answer is not sent again; the copy is there once, or not at all: it is made from memory."""
    stage.model.answers(says(ANSWER))
    async with Wire(stage.servers.ports["imap"]) as wire:
        stage.configure("channels.email", imap_port=wire.port)
        reached = wire.hold(b"APPENDUID", sender="server") if made else wire.hold(b"APPEND", sender="client")
        async with stage.dying() as daemon:
            await daemon.ready()
            await stage.ann.writes("please")
            await daemon.until("delivery.sent")
            await kills(daemon, reached)
        await goes_on(stage)
    finds_one_answer(stage, unclear=False)
    assert stage.servers.copies(BOT, stage.ann.answers[0]["Message-ID"]) == made
