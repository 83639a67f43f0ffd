"""What aioimaplib 2.0.3 does wrong or leaves out, a test for each, and that none of it is felt."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator

import pytest

from channels.email.imap.errors import ImapError, ImapLostError, ImapNoError
from channels.email.imap.idle import wait_for_mail
from channels.email.imap.line import Patience
from channels.email.imap.mailbox import HEADERS_AT_ONCE, SIZES_AT_ONCE, Imap, RawMail
from channels.email.imap.protocol import MAX_ANSWER
from tests.channels.email.mailroom import LONG, SHORT, endpoint, logged_in, mail
from tests.platforms.imap_server import PASSWORD, TOKEN, USER, ImapServer
from zerobot.testing.clock import ManualClock


@pytest.fixture
async def server() -> AsyncIterator[ImapServer]:
    """A double; nobody writes what no client may write."""
    async with ImapServer() as server:
        yield server
        assert server.faults == []


async def until_asleep(clock: ManualClock) -> None:
    """Wait until somebody waits by this clock."""
    async with asyncio.timeout(15):
        while clock.next_due() is None:  # noqa: ASYNC110 - a clock tells nobody of its sleepers
            await asyncio.sleep(0)


async def waiting(imap: Imap) -> None:
    """Wait for mail for as long as it takes."""
    await wait_for_mail(imap, ManualClock(), renewal=540.0, poll=60.0)


# 1. A lost connection wakes nobody, and BYE is an ordinary line.


@pytest.mark.parametrize("idles", [True, False])
async def test_1_a_lost_connection_wakes_who_waits(server: ImapServer, idles: bool) -> None:  # noqa: FBT001
    """Whether by IDLE or until the next poll."""
    if not idles:
        server.capabilities.remove("IDLE")
    async with logged_in(server) as imap:
        task = asyncio.create_task(waiting(imap))
        if idles:
            await server.until_idle()
        server.drop()
        with pytest.raises(ImapLostError):
            await task


async def test_1_a_goodbye_ends_idle(server: ImapServer) -> None:
    """The server says why it goes."""
    async with logged_in(server) as imap:
        task = asyncio.create_task(waiting(imap))
        await server.until_idle()
        await server.say("* BYE maintenance")
        with pytest.raises(ImapLostError, match="maintenance"):
            await task


# 2. Pushes get lost at the end of IDLE and live on into the next one.


async def test_2_a_push_is_only_a_hint(server: ImapServer) -> None:
    """What was found by a search does not end the next wait."""
    clock = ManualClock()
    async with logged_in(server) as imap:
        task = asyncio.create_task(waiting(imap))
        await server.until_idle()
        server.deliver(mail(1))
        await task
        assert await imap.new_uids(0) == [1]
        task = asyncio.create_task(wait_for_mail(imap, clock, renewal=540.0, poll=60.0))
        await until_asleep(clock)
        await clock.advance(539.0)
        assert not task.done()
        await clock.advance(1.0)
        await task


@pytest.mark.parametrize("moment", ["IDLE", "DONE", "UID SEARCH"])
async def test_2_mail_that_comes_between_is_not_missed(server: ImapServer, moment: str) -> None:
    """Before IDLE begins, as it ends, while it is searched: the wait that follows ends, or the search finds it."""
    clock = ManualClock()
    async with logged_in(server) as imap:
        server.happens_before(moment, lambda: server.deliver(mail(1)))
        found = await imap.new_uids(0)
        while not found:
            task = asyncio.create_task(wait_for_mail(imap, clock, renewal=540.0, poll=60.0))
            if moment == "DONE":
                await until_asleep(clock)
                await clock.advance(540.0)
            await task
            found = await imap.new_uids(0)
    assert found == [1]


async def test_2_mail_that_is_announced_outside_of_any_command_is_not_missed(server: ImapServer) -> None:
    """The library throws such a line away."""
    server.announces = False
    async with logged_in(server) as imap:
        assert await imap.new_uids(0) == []
        server.deliver(mail(1))
        await server.say("* 1 EXISTS")
        await waiting(imap)
        assert await imap.new_uids(0) == [1]


async def test_2_the_same_count_again_is_no_news(server: ImapServer) -> None:
    """A server that repeats itself is not searched without end; one mail fewer is no news either."""
    server.deliver(mail(1))
    async with logged_in(server) as imap:
        task = asyncio.create_task(waiting(imap))
        await server.until_idle()
        for line in ("* OK Still here", "* 1 EXISTS", "* 0 RECENT", "* 1 FETCH (FLAGS ())", "* 1 EXPUNGE"):
            await server.say(line)
        await server.say("* 1 EXISTS")
        await task


# 3. DONE without IDLE ends the connection; so does another command during IDLE.


@pytest.mark.parametrize("answer", [b"TAG NO not now\r\n", b"TAG BAD what?\r\n"])
async def test_3_a_refused_idle_leaves_the_connection_whole(server: ImapServer, answer: bytes) -> None:
    """It is polled then; DONE is sent to nobody."""
    clock = ManualClock()
    async with logged_in(server) as imap:
        server.script("IDLE", answer)
        task = asyncio.create_task(wait_for_mail(imap, clock, renewal=540.0, poll=60.0))
        await until_asleep(clock)
        await clock.advance(60.0)
        await task
        assert await imap.new_uids(0) == []


async def test_3_a_command_waits_for_the_end_of_idle(server: ImapServer) -> None:
    """It is not written into it."""
    clock = ManualClock()
    async with logged_in(server) as imap:
        task = asyncio.create_task(wait_for_mail(imap, clock, renewal=540.0, poll=60.0))
        await until_asleep(clock)
        search = asyncio.create_task(imap.new_uids(0))
        await clock.advance(540.0)
        await task
        assert await search == []


# 4. The parser calls itself for each line, and takes whatever comes.


async def test_4_a_thousand_lines_at_once_are_read(server: ImapServer) -> None:
    """Many mails, in as few segments as it takes, and many words of the server that nobody asked for."""
    for number in range(1_000):
        server.deliver(mail(number))
    async with logged_in(server) as imap:
        uids = await imap.new_uids(0)
        assert [entry.uid for entry in await imap.sizes(uids)] == uids
        assert [entry.uid for entry in await imap.headers(uids)] == uids
        lines = b"".join(b"* %d FETCH (UID %d FLAGS ())\r\n" % (number, number) for number in range(1, 1_001))
        server.script("UID FETCH", lines + b"TAG OK done\r\n")
        assert len(await imap.sizes([5])) == 1
        await server.say("\r\n".join(["* OK words"] * 5_000))
        assert await imap.new_uids(999) == [1_000]
    fetches = server.commands.count("UID FETCH")
    assert fetches == -(-1_000 // SIZES_AT_ONCE) + -(-1_000 // HEADERS_AT_ONCE) + 1


async def test_4_a_server_that_sends_without_end_is_left(server: ImapServer) -> None:
    """Whether it is one literal, one line, or many; long before memory is a matter."""
    floods = [
        b"* 1 FETCH (UID 1 BODY[] {9999999999}\r\n" + b"x" * (MAX_ANSWER + 1),
        b"* SEARCH " + b"1" * (MAX_ANSWER + 1),
        b"* OK and on\r\n" * (MAX_ANSWER // 8),
    ]
    for flood in floods:
        async with logged_in(server) as imap:
            server.script("UID FETCH", flood)
            with pytest.raises(ImapLostError, match="more than any answer"):
                await imap.fetch(1, MAX_ANSWER * 2)


@pytest.mark.parametrize(
    "answer",
    [
        b"NOBODY OK hello\r\n",
        b"* \xff\xfe\r\n",
        b"* 1 FETCH (UID 1 BODY[] {" + b"9" * 5_000 + b"}\r\n",
        b"TAG",
    ],
)
async def test_4_an_answer_without_sense_is_a_loss(server: ImapServer, answer: bytes) -> None:
    """Never an exception of the parser, never a wait without end."""
    async with logged_in(server, SHORT) as imap:
        server.script("UID FETCH", answer)
        with pytest.raises(ImapLostError):
            await imap.fetch(1, 1000)


async def test_4_a_fetch_that_hangs_is_given_up(server: ImapServer) -> None:
    """Also in the middle of a literal."""
    async with logged_in(server, SHORT) as imap:
        server.script("UID FETCH", b"* 1 FETCH (UID 1 BODY[] {100}\r\nhalf of it")
        with pytest.raises(ImapLostError, match="no answer in time"):
            await imap.fetch(1, 1000)


# 5. Results instead of exceptions; a connection that is of no use after a timeout.


async def test_5_every_refusal_is_an_error(server: ImapServer) -> None:
    """NO and BAD alike, with their code."""
    async with logged_in(server) as imap:
        calls = {
            "SELECT": imap.select("INBOX"),
            "UID SEARCH": imap.new_uids(0),
            "UID FETCH": imap.fetch(1, 10),
            "UID STORE": imap.mark_seen(1),
            "UID MOVE": imap.move(1, "Sent"),
            "APPEND": imap.append("Sent", mail(1)),
            "LIST": imap.special_folders(),
            "CREATE": imap.create("Done"),
            "EXAMINE": imap.find("<1@example.test>", "Sent"),
        }
        for name, call in calls.items():
            server.script(name, b"TAG NO [NOPERM] you must not\r\n")
            with pytest.raises(ImapNoError) as raised:
                await call
            assert raised.value.code == "NOPERM"
        server.script("UID SEARCH", b"TAG BAD what?\r\n")
        with pytest.raises(ImapNoError):
            await imap.new_uids(0)
        assert await imap.new_uids(0) == []


async def test_5_after_a_silence_the_connection_is_dropped(server: ImapServer) -> None:
    """A late answer would be taken for that to another command."""
    async with logged_in(server, SHORT) as imap:
        server.script("UID SEARCH", b"")
        with pytest.raises(ImapLostError, match="no answer in time"):
            await imap.new_uids(0)
        await server.until(lambda: not server.sessions)
        with pytest.raises(ImapLostError, match="no answer in time"):
            await imap.new_uids(0)


async def test_5_a_call_that_is_cancelled_drops_the_connection(server: ImapServer) -> None:
    """For the same reason; and it is cancelled at once."""
    async with logged_in(server) as imap:
        server.script("UID SEARCH", b"")
        task = asyncio.create_task(imap.new_uids(0))
        await server.until(lambda: "UID SEARCH" in server.commands)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(ImapLostError):
            await imap.new_uids(0)


@pytest.mark.parametrize("mute", [True, False])
async def test_5_a_hung_idle_is_found_out_at_its_end(server: ImapServer, mute: bool) -> None:  # noqa: FBT001
    """A line that is half open, or a server that does not answer DONE."""
    clock = ManualClock()
    async with logged_in(server, SHORT) as imap:
        if not mute:
            server.script("IDLE", b"+ idling\r\n", b"")
        task = asyncio.create_task(wait_for_mail(imap, clock, renewal=540.0, poll=60.0))
        await until_asleep(clock)
        if mute:
            server.fall_silent()
        await clock.advance(540.0)
        with pytest.raises(ImapLostError):
            await task
        server.faults.clear()  # "DONE", which the script took no notice of


# 6. `* ` vanishes inside lines, and parentheses glue lines together.


async def test_6_a_mail_is_what_it_was_byte_for_byte(server: ImapServer) -> None:
    """Whatever in it looks like the protocol."""
    body = "* 1 FETCH (UID 9 BODY[] {3}\r\n((((* * )\r\n* BYE\r\n+ go\r\nA1 OK done\r\n* 99 EXISTS\r\n{10}"
    raw = mail(1, body=body, Subject="(* ( [x] \\ {5}")
    uid = server.deliver(raw)
    server.deliver(raw)
    async with logged_in(server) as imap:
        assert await imap.fetch(uid, 10_000) == RawMail(raw, whole=True)
        assert [entry.body for entry in await imap.headers([1, 2])] == [raw[: raw.index(b"\r\n\r\n") + 4]] * 2


async def test_6_short_texts_may_be_quoted(server: ImapServer) -> None:
    """A server may answer without literals, and put in what another client did."""
    answer = b'* 3 FETCH (FLAGS (\\Seen))\r\n* 1 FETCH (UID 1 FLAGS () BODY[]<0> "a (\\"b\\\\")\r\nTAG OK done\r\n'
    async with logged_in(server) as imap:
        server.script("UID FETCH", answer)
        assert await imap.fetch(1, 100) == RawMail(b'a ("b\\', whole=True)


# 7. No UID SEARCH without a charset, names as they are. STARTTLS has a file of its own.


async def test_7_a_search_names_no_charset(server: ImapServer) -> None:
    """A big provider answers BAD to it, and so does the double to all but the keys that it knows."""
    server.deliver(mail(1))
    async with logged_in(server) as imap:
        assert await imap.new_uids(0) == [1]
        assert await imap.find("<1@example.test>", "INBOX") == 1


async def test_7_names_are_quoted_and_in_modified_utf7(server: ImapServer) -> None:
    """Any name works."""
    names = {"Entwürfe & mehr": "Entw&APw-rfe &- mehr", 'a "b" \\c': 'a "b" \\c', "日本語": "&ZeVnLIqe-"}
    async with logged_in(server) as imap:
        for name, wire in names.items():
            server.add_folder(wire)
            assert (await imap.select(name)).name == name


# 8. A goodbye in place of a greeting is a silence; secrets are in the log.


@pytest.mark.parametrize(
    ("greeting", "why"), [("* BYE too busy", "too busy"), ("220 smtp", "no IMAP server"), ("* NO", "no IMAP server")]
)
async def test_8_a_greeting_that_is_none_ends_it_at_once(server: ImapServer, greeting: str, why: str) -> None:
    """And it is said why."""
    server.greeting = greeting
    with pytest.raises(ImapLostError, match=why):
        await Imap.connect(endpoint(server), LONG)


async def test_8_no_secret_is_in_any_log_or_error(server: ImapServer, caplog: pytest.LogCaptureFixture) -> None:
    """Not at debug, not when an answer makes no sense while a login is out, not in a traceback."""
    caplog.set_level(logging.DEBUG)
    password = "hush-hush-7"
    server.mechanisms, server.accounts[USER] = ["XOAUTH2"], password
    texts = []
    for answer in (None, b"NOBODY OK hello\r\n", b"* \xff\r\n", b"TAG NO no\r\n", b"TAG"):
        for name in ("LOGIN", "AUTHENTICATE"):
            if answer is not None:
                server.script(name, answer)
            imap = await Imap.connect(endpoint(server), SHORT)
            try:
                if name == "LOGIN":
                    await imap.log_in(USER, password)
                else:
                    await imap.log_in_by_token(USER, TOKEN)
            except ImapError as error:
                texts += traceback.format_exception(error)
            await imap.close()
    said = caplog.text + "".join(texts)
    assert len(texts) > 8
    assert password not in said
    assert TOKEN not in said
    assert "dXNlcj1" not in said  # "user=" in base64


# 9. Dovecot lets an address wait for up to 15 s after failed logins.


async def test_9_a_login_has_a_time_of_its_own(server: ImapServer) -> None:
    """It is longer than that of other commands, so that it is not given up while the server makes us wait."""
    assert Patience().login > Patience().answer > 15
    server.script("LOGIN", b"")
    imap = await Imap.connect(endpoint(server), Patience(connect=60, answer=60, login=0.05))
    async with asyncio.timeout(30):
        with pytest.raises(ImapLostError, match="no answer in time"):
            await imap.log_in(USER, PASSWORD)
