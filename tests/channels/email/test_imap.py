"""One IMAP connection: what is new, how it is read, what becomes of it, and who is let in."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from channels.email.imap.entry import open_mailbox
from channels.email.imap.errors import ImapLostError, ImapNoError, ImapRefusedError
from channels.email.imap.mailbox import LONGEST_HEADER, PIECE, Imap, RawMail
from channels.email.settings import EmailSettings
from tests.channels.email.mailroom import LONG, SHORT, endpoint, logged_in, mail
from tests.platforms.imap_server import PASSWORD, TOKEN, USER, ImapServer
from zerobot.core.errors import ChannelFaultError


@pytest.fixture
async def server() -> AsyncIterator[ImapServer]:
    """A double; nobody writes what no client may write."""
    async with ImapServer() as server:
        yield server
        assert server.faults == []


def settings(server: ImapServer, **more: object) -> EmailSettings:
    """A table for a double."""
    table = {
        "address": USER,
        "password": PASSWORD,
        "imap_host": "127.0.0.1",
        "imap_port": server.port,
        "imap_security": "none",
        "smtp_host": "127.0.0.1",
        "trusted_authserv": ["mx.example.test"],
    }
    return EmailSettings.model_validate({**table, **more})


async def test_only_what_is_above_a_number_is_new(server: ImapServer) -> None:
    """`N:*` has the last mail in it even where nothing is above N; that one is not new."""
    async with logged_in(server) as imap:
        assert await imap.new_uids(0) == []
        for number in range(3):
            server.deliver(mail(number))
        assert await imap.new_uids(0) == [1, 2, 3]
        assert await imap.new_uids(2) == [3]
        assert await imap.new_uids(3) == []
        assert await imap.new_uids(2**32 - 1) == []


async def test_only_unread_mail_can_be_asked_for(server: ImapServer) -> None:
    """The backlog at a first start is what nobody has read."""
    server.deliver(mail(1), "\\Seen")
    server.deliver(mail(2))
    async with logged_in(server) as imap:
        assert await imap.new_uids(0, unseen=True) == [2]


async def test_a_folder_says_how_its_numbers_hold(server: ImapServer) -> None:
    """After a restore the validity is another one, and the numbers mean other mails."""
    server.deliver(mail(1))
    async with logged_in(server, folder="") as imap:
        before = await imap.select("INBOX")
        assert (before.validity, before.next_uid, before.exists) == (1, 2, 1)
        server.inbox.renumber()
        assert (await imap.select("inbox")).validity == 2


async def test_a_folder_without_lasting_numbers_is_refused(server: ImapServer) -> None:
    """Where no number lasts, nothing could be known to be answered."""
    server.inbox.validity = 0
    async with logged_in(server, folder="") as imap:
        with pytest.raises(ImapNoError, match="UIDVALIDITY"):
            await imap.select("INBOX")


async def test_a_mail_is_read_without_a_mark(server: ImapServer) -> None:
    """Headers, sizes and mails are looked at; only `mark_seen` marks."""
    raw = mail(1)
    uid = server.deliver(raw, "\\Flagged")
    async with logged_in(server) as imap:
        (size,), (header,) = await imap.sizes([uid]), await imap.headers([uid])
        assert (size.size, set(size.flags), size.seen, size.body) == (len(raw), {"\\flagged"}, False, None)
        assert header.body == raw.partition(b"Hello")[0]
        assert (await imap.headers([uid], ["SUBJECT"]))[0].body == b"Subject: Number 1\r\n\r\n"
        assert await imap.fetch(uid, 1000) == RawMail(raw, whole=True)
        assert server.flags(uid) == {"\\Flagged"}
        await imap.mark_seen(uid)
    assert server.flags(uid) == {"\\Flagged", "\\Seen"}


async def test_a_long_mail_comes_in_pieces_up_to_the_limit(server: ImapServer) -> None:
    """One that is longer than the limit is cut there, and that is said; a header has a limit of its own."""
    raw = mail(1, body="0123456789" * (PIECE // 4))
    uid = server.deliver(raw)
    long_header = server.deliver(mail(2, **{"X-Long": "x" * LONGEST_HEADER}))
    async with logged_in(server) as imap:
        assert await imap.fetch(uid, len(raw)) == RawMail(raw, whole=True)
        assert await imap.fetch(uid, len(raw) - 1) == RawMail(raw[:-1], whole=False)
        assert await imap.fetch(uid, PIECE) == RawMail(raw[:PIECE], whole=False)
        assert len((await imap.headers([long_header]))[0].body or b"") == LONGEST_HEADER


async def test_a_mail_that_is_gone_is_no_error(server: ImapServer) -> None:
    """Another client may have deleted it in between."""
    async with logged_in(server) as imap:
        assert await imap.fetch(7, 1000) is None
        assert await imap.headers([7]) == []
        await imap.mark_seen(7)
        await imap.move(7, "Sent")


async def test_an_empty_mail_is_one(server: ImapServer) -> None:
    """A literal of no bytes."""
    uid = server.deliver(b"")
    async with logged_in(server) as imap:
        assert await imap.fetch(uid, 1000) == RawMail(b"", whole=True)


@pytest.mark.parametrize("lacks", [[], ["MOVE"]])
async def test_a_mail_is_moved(server: ImapServer, lacks: list[str]) -> None:
    """At once, or by copying and deleting it alone; what others have marked for deletion stays."""
    server.capabilities = [each for each in server.capabilities if each not in lacks]
    server.add_folder("Done")
    others = server.deliver(mail(1), "\\Deleted")
    uid = server.deliver(mail(2))
    async with logged_in(server) as imap:
        await imap.move(uid, "Done")
    assert [stored.uid for stored in server.inbox.mails] == [others]
    assert [stored.raw for stored in server.folders["Done"].mails] == [mail(2)]


async def test_without_uidplus_nothing_is_expunged(server: ImapServer) -> None:
    """What cannot be deleted alone stays, marked: a plain EXPUNGE would take others along."""
    server.capabilities = ["IMAP4rev1"]
    server.add_folder("Done")
    uid = server.deliver(mail(1))
    async with logged_in(server) as imap:
        await imap.move(uid, "Done")
    assert server.flags(uid) == {"\\Seen", "\\Deleted"}


async def test_a_missing_folder_is_told_by_its_code_and_can_be_made(server: ImapServer) -> None:
    """Made twice is no error."""
    uid = server.deliver(mail(1))
    async with logged_in(server) as imap:
        with pytest.raises(ImapNoError) as raised:
            await imap.move(uid, "Done")
        assert raised.value.code == "TRYCREATE"
        await imap.create("Done")
        await imap.create("Done")
        await imap.move(uid, "Done")


async def test_a_copy_is_appended_and_found_by_its_message_id(server: ImapServer) -> None:
    """The one with just this id, not one that has it inside; the server is not asked for other words than it knows."""
    async with logged_in(server) as imap:
        first = await imap.append("Sent", mail(12))
        second = await imap.append("Sent", mail(1, **{"Message-ID": "<12@example.test>"}), seen=False)
        server.deliver(mail(1, **{"Message-ID": "<12@example.test> (was <3@example.test>)"}), folder="Sent")
        assert (first, second) == (1, 2)
        assert (server.flags(1, "Sent"), server.flags(2, "Sent")) == ({"\\Seen"}, set())
        assert await imap.find("<12@example.test>", "Sent") == 2
        assert await imap.find("<3@example.test>", "Sent") is None
        assert await imap.find("<2@example.test>", "Sent") is None


@pytest.mark.parametrize("special", [True, False])
async def test_folders_are_known_by_their_use(server: ImapServer, special: bool) -> None:  # noqa: FBT001
    """A provider names its folder of sent mail in its own language; their names may be literals."""
    if not special:
        server.capabilities.remove("SPECIAL-USE")
    server.folders.clear()
    server.add_folder("INBOX")
    server.add_folder("Entw&APw-rfe", "\\HasNoChildren", "\\Drafts")
    server.add_folder('Gesendet "alt"', "\\Sent")
    async with logged_in(server) as imap:
        folders = await imap.special_folders()
    assert (folders["\\sent"], folders["\\drafts"]) == ('Gesendet "alt"', "Entwürfe")


async def test_a_server_that_asks_who_we_are_is_told(server: ImapServer) -> None:
    """Some refuse all mail to clients that have not sent an ID."""
    server.wants_id = True
    async with logged_in(server) as imap:
        assert await imap.new_uids(0) == []


@pytest.mark.parametrize("initial", [True, False])
async def test_an_access_token_lets_us_in(server: ImapServer, initial: bool) -> None:  # noqa: FBT001
    """With the login's first word, or after the server has asked, as it can."""
    server.mechanisms, server.passwords_count = ["XOAUTH2"], False
    if not initial:
        server.capabilities.remove("SASL-IR")
    imap = await Imap.connect(endpoint(server), LONG)
    await imap.log_in_by_token(USER, TOKEN)
    await imap.select("INBOX")
    await imap.close()


async def test_a_refused_token_ends_in_a_refusal_not_in_silence(server: ImapServer) -> None:
    """The server's challenge wants an empty line before it says no."""
    server.mechanisms = ["XOAUTH2"]
    imap = await Imap.connect(endpoint(server), LONG)
    with pytest.raises(ImapRefusedError) as raised:
        await imap.log_in_by_token(USER, "ya29.old")
    assert (raised.value.code, raised.value.passing) == ("AUTHENTICATIONFAILED", False)
    await imap.close()


async def test_a_password_beyond_ascii_goes_by_sasl(server: ImapServer) -> None:
    """LOGIN has no word for it."""
    server.mechanisms, server.accounts[USER] = ["PLAIN"], "pässword"
    imap = await Imap.connect(endpoint(server), LONG)
    await imap.log_in(USER, "pässword")
    assert server.commands.count("AUTHENTICATE") == 1
    await imap.close()


@pytest.mark.parametrize("password", ['quo"te', "back\\slash", "two words", "{5}", "(", "*", "%"])
async def test_a_password_of_any_characters_is_one(server: ImapServer, password: str) -> None:
    """What has a meaning in the protocol has none inside a password."""
    server.accounts[USER] = password
    imap = await Imap.connect(endpoint(server), LONG)
    await imap.log_in(USER, password)
    await imap.close()


@pytest.mark.parametrize(
    ("refusal", "code", "passing"),
    [
        ("[AUTHENTICATIONFAILED] wrong", "AUTHENTICATIONFAILED", False),
        ("[EXPIRED] too old", "EXPIRED", False),
        ("[UNAVAILABLE] the directory is down", "UNAVAILABLE", True),
        ("[LIMIT] fifteen connections", "LIMIT", True),
        ("[ALERT] Too many simultaneous connections. (Failure)", "ALERT", True),
        ("[ALERT] Invalid credentials (Failure)", "ALERT", False),
        ("LOGIN failed.", "", False),
        ("Temporary system error", "", True),
    ],
)
async def test_a_refused_login_says_whether_it_passes(
    server: ImapServer,
    refusal: str,
    code: str,
    passing: bool,  # noqa: FBT001
) -> None:
    """By the response code (RFC 5530), or by what large providers say without one."""
    server.refusal = refusal
    imap = await Imap.connect(endpoint(server), LONG)
    with pytest.raises(ImapRefusedError) as raised:
        await imap.log_in(USER, PASSWORD)
    assert (raised.value.code, raised.value.passing) == (code, passing)
    await imap.close()


async def test_a_server_that_takes_no_passwords_is_sent_none(server: ImapServer) -> None:
    """LOGINDISABLED: it would only be heard by others."""
    server.passwords_count = False
    imap = await Imap.connect(endpoint(server), LONG)
    with pytest.raises(ImapRefusedError) as raised:
        await imap.log_in(USER, PASSWORD)
    assert raised.value.code == "LOGINDISABLED"
    assert "LOGIN" not in server.commands
    await imap.close()


async def test_a_mailbox_opens_as_configured(server: ImapServer) -> None:
    """Connected, logged in, introduced."""
    imap = await open_mailbox(settings(server), "email", endpoint(server).context, patience=LONG)
    assert imap.can_idle
    await imap.close()
    assert server.commands == ["CAPABILITY", "LOGIN", "CAPABILITY", "ID", "LOGOUT"]


async def test_wrong_credentials_park_the_channel_and_passing_refusals_do_not(server: ImapServer) -> None:
    """The operator is told which key; the password is in no text."""
    server.refusal = "[UNAVAILABLE] later"
    with pytest.raises(ImapLostError):
        await open_mailbox(settings(server), "email", endpoint(server).context, patience=LONG)
    server.refusal = ""
    wrong = settings(server, password="not-this-one")
    with pytest.raises(ChannelFaultError) as raised:
        await open_mailbox(wrong, "office", endpoint(server).context, patience=LONG)
    assert "password in [channels.office]" in raised.value.advice
    assert "not-this-one" not in f"{raised.value} {raised.value.advice}"
    await server.until(lambda: not server.sessions)


async def test_a_server_that_is_not_there_is_a_loss(server: ImapServer) -> None:
    """To be tried again."""
    await server.stop()
    with pytest.raises(ImapLostError, match="cannot be reached"):
        await Imap.connect(endpoint(server, host="127.0.0.1"), SHORT)


async def test_a_connection_that_breaks_in_a_fetch_is_a_loss(server: ImapServer) -> None:
    """Half a mail is none."""
    uid = server.deliver(mail(1, body="x" * 100_000))
    server.cut_fetches_after = 50_000
    async with logged_in(server) as imap:
        with pytest.raises(ImapLostError):
            await imap.fetch(uid, 10**6)
        with pytest.raises(ImapLostError):
            await imap.new_uids(0)


async def test_a_server_killed_and_back_is_used_again(server: ImapServer) -> None:
    """What had come before is there."""
    async with logged_in(server) as imap:
        await server.stop()
        with pytest.raises(ImapLostError):
            await imap.new_uids(0)
    server.deliver(mail(1))
    await server.start()
    async with logged_in(server) as imap:
        assert await imap.new_uids(0) == [1]
