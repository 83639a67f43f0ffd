"""Servers that go and come back, lines that are half open, greylisting: every question is answered, and once."""

from __future__ import annotations

import asyncio

import pytest

from tests.email.stage import REPEAT, MailStage
from tests.email.wire import Wire
from tests.platforms.model_script import holds, says

pytestmark = pytest.mark.slow


async def test_dovecot_is_killed_and_comes_back(stage: MailStage) -> None:
    """What was written meanwhile waits in Postfix, and is answered when there is a mailbox again."""
    stage.model.answers(says("Before."), says("After."))
    async with stage.daemon() as daemon:
        await stage.ann.writes("one")
        await stage.ann.gets()
        with stage.servers.dovecot_killed():
            await daemon.until("channel.disconnected")
            await stage.ann.writes("two")
            await daemon.until("email.broken", count=2)
        await daemon.until("channel.connected", count=2)
        await stage.ann.gets(2)
    assert stage.ann.reads == ["Before.", "After."]


async def test_dovecot_is_killed_while_an_answer_is_made(stage: MailStage) -> None:
    """Where mail is handed in without a login, the answer goes out all the same; its copy is made when it is back."""
    stage.configure("channels.email", smtp_port=stage.servers.ports["mx"])
    stage.model.answers(holds(says("Hello.")))
    async with stage.daemon() as daemon:
        await stage.ann.writes("hi")
        await stage.model.until_holding()
        with stage.servers.dovecot_killed():
            await daemon.until("channel.disconnected")
            stage.model.release()
            await daemon.until("delivery.sent")
        answer = await stage.ann.gets()
    assert stage.ann.reads == ["Hello."]
    assert stage.servers.copies("bot@example.test", answer["Message-ID"]) == 1


async def test_postfix_is_killed_and_comes_back(stage: MailStage) -> None:
    """The answer is kept, and goes out once."""
    stage.model.answers(holds(says("Hello.")))
    async with stage.daemon() as daemon:
        await stage.ann.writes("hi")
        await stage.model.until_holding()
        with stage.servers.postfix_killed():
            stage.model.release()
            await daemon.until("delivery.delayed")
        await daemon.until("delivery.sent")
        await stage.ann.gets()
    assert stage.ann.reads == ["Hello."]
    stage.check_nothing_is_left()


async def test_postfix_is_killed_with_a_kept_connection(stage: MailStage) -> None:
    """The connection of the last answer is found dead before the next answer depends on it."""
    stage.model.answers(says("One."), holds(says("Two.")))
    async with stage.daemon():
        await stage.ann.writes("one")
        await stage.ann.gets()
        await stage.ann.writes("two")
        await stage.model.until_holding()
        with stage.servers.postfix_killed():
            pass
        stage.model.release()
        await stage.ann.gets(2)
    assert stage.ann.reads == ["One.", "Two."]


async def test_greylisting_is_waited_out(stage: MailStage) -> None:
    """450 to the recipient: the answer is kept and goes out once when it is over."""
    stage.model.answers(holds(says("Hello.")))
    async with stage.daemon() as daemon:
        await stage.ann.writes("hi")
        await stage.model.until_holding()
        with stage.servers.refusing("450 4.2.0 greylisted, come again"):
            stage.model.release()
            delayed = await daemon.until("delivery.delayed")
            assert "greylisted" in delayed["error"]
        await daemon.until("delivery.sent", patience=90)
        await stage.ann.gets()
    assert stage.ann.reads == ["Hello."]


async def test_a_recipient_that_is_refused_is_told_to_operators(stage: MailStage) -> None:
    """550 is no for good: it is not tried again, and the next answer goes out."""
    stage.model.answers(holds(says("Lost.")), says("Hello."))
    async with stage.daemon() as daemon:
        await stage.ann.writes("one")
        await stage.model.until_holding()
        with stage.servers.refusing("550 5.1.1 nobody here"):
            stage.model.release()
            failed = await daemon.until("delivery.failed")
            assert failed["reason"] == "unreachable"
        await stage.ann.writes("two")
        await stage.ann.gets()
        await daemon.until("delivery.sent")
    assert stage.ann.reads == ["Hello."]


async def test_a_half_open_line_to_the_mailbox_is_found_out(stage: MailStage) -> None:
    """Nothing arrives and nothing says so: the renewal of IDLE is not answered, and a new connection finds the mail."""
    stage.model.answers(says("Hello."))
    async with Wire(stage.servers.ports["imap"]) as wire:
        stage.configure("channels.email", imap_port=wire.port, idle_renewal="2s")
        async with stage.daemon() as daemon:
            wire.goes_dead()
            await stage.ann.writes("hi")
            broken = await daemon.until("email.broken", patience=60)
            assert "no answer in time" in broken["error"]
            await stage.ann.gets()
    assert stage.ann.reads == ["Hello."]


async def test_a_half_open_line_to_the_sending_server_is_found_out(stage: MailStage) -> None:
    """A connection that was kept says nothing any more: the next answer goes over another one."""
    stage.model.answers(says("One."), says("Two."))
    async with Wire(stage.servers.ports["smtp"]) as wire:
        stage.configure("channels.email", smtp_port=wire.port)
        async with stage.daemon() as daemon:
            await stage.ann.writes("one")
            await daemon.until("delivery.sent")
            wire.goes_dead()
            await stage.ann.writes("two")
            await stage.ann.gets(2)
            assert daemon.named("delivery.delayed") == []
    assert stage.ann.reads == ["One.", "Two."]


@pytest.mark.parametrize("taken", [False, True])
async def test_the_line_breaks_at_the_end_of_a_mail(stage: MailStage, *, taken: bool) -> None:
    """Nobody can say whether the server has it: it comes once more, with a mark and the same Message-ID."""
    stage.model.answers(says("Hello."))
    async with Wire(stage.servers.ports["smtp"]) as wire:
        stage.configure("channels.email", smtp_port=wire.port)
        dead = wire.hold(b"Ok: queued", sender="server") if taken else wire.hold(b"\r\n.\r\n", sender="client")
        async with stage.daemon() as daemon:
            await stage.ann.writes("hi")
            async with asyncio.timeout(30):
                await dead.wait()
            wire.cut()
            await daemon.until("delivery.sent")
            await stage.ann.gets(1 + taken)
    *first, repeat = stage.ann.reads
    assert first == ["Hello."] * taken
    assert REPEAT in repeat
    assert len({mail["Message-ID"] for mail in stage.ann.answers}) == 1
