"""What others do to the mailbox: whatever becomes of a folder, each mail is answered once."""

from __future__ import annotations

from pathlib import Path

import pytest

from channels.email.imap.line import Endpoint
from channels.email.imap.mailbox import Imap
from channels.email.tls import make_context
from tests.email.people import Person
from tests.email.stage import BOT, MailStage
from tests.platforms.model_script import says

pytestmark = pytest.mark.slow


async def another_client(stage: MailStage) -> Imap:
    """Somebody else in the bot's mailbox."""
    servers = stage.servers
    imap = await Imap.connect(Endpoint(servers.host, servers.ports["imap"], "none", make_context("")))
    await imap.log_in(BOT, servers.accounts[BOT])
    await imap.select("INBOX")
    return imap


async def test_what_another_client_has_read_is_answered_all_the_same(stage: MailStage) -> None:
    """New is what was not looked at by the bot, not what nobody has read."""
    stage.model.answers(says("Hello."))
    async with stage.daemon():
        pass
    await stage.ann.writes("hi")
    await stage.servers.until_mails(BOT, 1)
    imap = await another_client(stage)
    (uid,) = await imap.new_uids(0)
    await imap.mark_seen(uid)
    await imap.close()
    async with stage.daemon():
        await stage.ann.gets()
    assert stage.ann.reads == ["Hello."]


async def test_a_mail_that_is_copied_back_is_not_answered_again(stage: MailStage) -> None:
    """Into the folder that the bot reads, while it looks on."""
    stage.model.answers(says("Hello."))
    async with stage.daemon() as daemon:
        mail = await stage.ann.writes("hi")
        await stage.ann.gets()
        imap = await another_client(stage)
        (uid,) = await imap.new_uids(0)
        fetched = await imap.fetch(uid, 100_000)
        assert fetched is not None
        await imap.append("INBOX", fetched.raw)
        await imap.close()
        refused = await daemon.until("envelope.refused")
        assert refused["reason"] == "duplicate"
    assert stage.ann.reads == ["Hello."]
    assert mail["Message-ID"] == stage.ann.answers[0]["In-Reply-To"]


async def test_a_folder_that_is_numbered_anew_brings_no_second_answer(stage: MailStage) -> None:
    """Dovecot has lost its list of numbers while the bot was away; what came meanwhile is answered."""
    stage.model.answers(says("One."), says("Two."))
    async with stage.daemon():
        await stage.ann.writes("one")
        await stage.ann.gets()
    stage.servers.forget_numbers(BOT)
    await stage.ann.writes("two")
    await stage.servers.until_mails(BOT, 2)
    async with stage.daemon() as daemon:
        await stage.ann.gets(2)
        assert len(daemon.named("email.renumbered")) == 1
    assert stage.ann.reads == ["One.", "Two."]


async def test_what_was_there_before_is_answered_only_if_it_is_asked_for(stage: MailStage, tmp_path: Path) -> None:
    """By a first start as it is usual, and by one of another bot with `answer_backlog`."""
    await stage.ann.writes("long ago")
    await stage.servers.until_mails(BOT, 1)
    stage.model.answers(says("Hello."), says("At last."))
    async with stage.daemon():
        newcomer = Person(stage.servers)
        await newcomer.writes("hi")
        await newcomer.gets()
        assert stage.ann.reads == []
    stage.configure("daemon", state_dir=str(tmp_path / "another"))
    stage.configure("channels.email", answer_backlog=True)
    async with stage.daemon():
        await stage.ann.gets()
    assert stage.ann.reads == ["At last."]
    assert newcomer.reads == ["Hello."]


async def test_what_was_taken_in_is_moved_if_it_is_asked_for(stage: MailStage) -> None:
    """Into a folder that is made; a file of a mail that was moved is still found there."""
    stage.configure("channels.email", processed_folder="Done")
    stage.model.answers(says("Hello."))
    async with stage.daemon() as daemon:
        await stage.ann.writes("hi", file=b"some bytes")
        await stage.ann.gets()
        await daemon.until("delivery.sent")
    assert len(stage.servers.mails(BOT)) == 0
    assert len(stage.servers.mails(BOT, "Done")) == 1
    assert [path.read_bytes() for path in stage.workspace.rglob("data.bin")] == [b"some bytes"]


async def test_two_daemons_on_one_mailbox_both_answer(stage: MailStage, tmp_path: Path) -> None:
    """The documented limit: nothing is lost and nothing goes round, but each of them answers, once."""
    (tmp_path / "other").mkdir()
    other = MailStage(tmp_path / "other", stage.model, stage.servers)
    stage.model.always(says("Hello."))
    async with stage.daemon() as first, other.daemon() as second:
        await stage.ann.writes("hi")
        await first.until("delivery.sent")
        await second.until("delivery.sent")
        await stage.ann.gets(2)
    assert stage.ann.reads == ["Hello."] * 2
    assert len(stage.model.requests) == 2
