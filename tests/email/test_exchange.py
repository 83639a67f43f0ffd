"""The whole daemon at real servers: what is written to it is answered, threaded, copied, marked as read."""

from __future__ import annotations

import signal

import pytest

from tests.email.people import said
from tests.email.stage import BOT, MailStage
from tests.platforms.daemon_process import DaemonProcess
from tests.platforms.model_script import holds, says

pytestmark = pytest.mark.slow


async def test_a_mail_is_answered_in_its_thread(stage: MailStage) -> None:
    """IDLE brings it at once: both fallbacks are set to an hour. The second round goes on in the same conversation."""
    stage.configure("channels.email", idle_renewal="28m", poll_interval="1h")
    stage.model.answers(says("Hello **Ann**."), says("Still here."))
    async with stage.daemon() as daemon:
        asked = await stage.ann.writes("Are you there?")
        answer = await stage.ann.gets()
        assert said(answer) == "Hello Ann."
        assert answer["In-Reply-To"] == answer["References"] == asked["Message-ID"]
        assert answer["Subject"] == "Re: Question"
        assert answer["From"].addresses[0].addr_spec == BOT
        assert answer["Auto-Submitted"] == "auto-replied"
        asked_again = await stage.ann.writes("And now?", answers=answer)
        second = await stage.ann.gets(2)
        assert said(second) == "Still here."
        assert second["In-Reply-To"] == asked_again["Message-ID"]
        ids = [asked["Message-ID"], answer["Message-ID"], asked_again["Message-ID"]]
        assert second["References"].split() == ids
        await daemon.until("delivery.sent", count=2)
    assert [text for _, text in stage.model.last_request.messages] == [
        "Subject: Question\n\nAre you there?",
        "Hello **Ann**.",
        "And now?",
    ]
    stage.check_nothing_is_left()
    assert stage.servers.are_seen(BOT) == [True, True]
    for mail in (answer, second):
        assert stage.servers.copies(BOT, mail["Message-ID"]) == 1


@pytest.mark.parametrize(
    ("security", "imap", "smtp"), [("tls", "imaps", "smtps"), ("starttls", "imap", "smtp_starttls")]
)
async def test_a_private_authority_is_trusted(stage: MailStage, security: str, imap: str, smtp: str) -> None:
    """By TLS and by STARTTLS, in both directions."""
    ports = stage.servers.ports
    stage.configure("channels.email", imap_security=security, imap_port=ports[imap])
    stage.configure("channels.email", smtp_security=security, smtp_port=ports[smtp])
    stage.configure("channels.email", tls_ca_file=stage.servers.ca_file)
    stage.model.answers(says("Hello."))
    async with stage.daemon():
        await stage.ann.writes("hi")
        await stage.ann.gets()
    assert stage.ann.reads == ["Hello."]


async def test_a_strange_authority_is_not_spoken_to(stage: MailStage) -> None:
    """The log says why, and it is tried again: somebody in between may be gone by then."""
    stage.configure("channels.email", imap_security="tls", imap_port=stage.servers.ports["imaps"])
    stage.configure("channels.email", tls_ca_file=stage.servers.other_ca_file)
    async with stage.process() as daemon:
        broken = await daemon.until("email.broken", count=2)
        assert "certificate" in broken["error"]
        assert await daemon.stop() == 0
    stage.check(daemon)


async def test_who_is_not_proved_is_not_answered(stage: MailStage) -> None:
    """A mail of an account of the same server, over the port for accounts, bears no results."""
    stage.model.answers(says("Hello."))
    async with stage.daemon() as daemon:
        forged = stage.ann.mail("I am Ann", BOT)
        stage.servers.submit(forged.as_bytes(), BOT, "mallory@example.test")
        refused = await daemon.until("envelope.refused")
        assert refused["reason"] == "not_allowed"
        await stage.ann.writes("the true one")
        await stage.ann.gets()
    assert len(stage.model.requests) == 1


async def test_a_second_daemon_on_the_same_state_is_refused(stage: MailStage) -> None:
    """It says who holds the state; the first one goes on."""
    stage.model.answers(says("Hello."))
    async with stage.daemon() as daemon:
        async with DaemonProcess(stage.config) as second:
            assert await second.ended() == 1
        assert f"process {daemon.pid}" in second.other_lines[0]
        await stage.ann.writes("hi")
        await stage.ann.gets()
    assert stage.ann.reads == ["Hello."]


async def test_answers_of_the_last_second_are_copied_too(stage: MailStage) -> None:
    """A graceful stop lets a turn end, and its answer has a copy in the folder of sent mail."""
    stage.model.answers(holds(says("Hello.")))
    async with stage.daemon() as daemon:
        await stage.ann.writes("hi")
        await stage.model.until_holding()
        daemon.send(signal.SIGTERM)
        await daemon.until("daemon.stopping")
        stage.model.release()
        assert await daemon.ended() == 0
    answer = await stage.ann.gets()
    assert stage.servers.copies(BOT, answer["Message-ID"]) == 1
