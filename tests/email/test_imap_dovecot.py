"""One IMAP connection with a real server, Dovecot: what no double can promise."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

import pytest

from channels.email.imap.errors import ImapLostError, ImapRefusedError, ImapUntrustedError
from channels.email.imap.idle import wait_for_mail
from channels.email.imap.line import Endpoint, Patience
from channels.email.imap.mailbox import Imap
from channels.email.settings import Security
from channels.email.tls import make_context
from tests.channels.email.mailroom import mail
from tests.email.conftest import MANY
from tests.email.servers import MailServers
from tests.platforms.adapter_parts import HastyClock
from zerobot.testing.clock import ManualClock

pytestmark = pytest.mark.slow

BOT = "bot@example.test"
PORTS: dict[Security, str] = {"tls": "imaps", "starttls": "imap", "none": "imap"}
STEADY = Patience(connect=60, answer=60, login=60)


def endpoint(servers: MailServers, security: Security = "tls", ca_file: str | None = None) -> Endpoint:
    """Where Dovecot is."""
    context = make_context(servers.ca_file if ca_file is None else ca_file)
    return Endpoint(servers.host, servers.ports[PORTS[security]], security, context)


@asynccontextmanager
async def logged_in(servers: MailServers, account: str = BOT, patience: Patience = STEADY) -> AsyncIterator[Imap]:
    """A connection with the inbox selected."""
    imap = await Imap.connect(endpoint(servers), patience)
    try:
        await imap.log_in(account, servers.accounts[account])
        await imap.introduce("zerobot", "1")
        await imap.select("INBOX")
        yield imap
    finally:
        await imap.close()


@pytest.fixture
def servers(mail_servers: MailServers) -> MailServers:
    """With an empty mailbox."""
    mail_servers.empty(BOT)
    return mail_servers


@pytest.mark.parametrize("security", ["tls", "starttls", "none"])
async def test_it_connects_in_each_way(servers: MailServers, security: Security) -> None:
    """By password and by token."""
    imap = await Imap.connect(endpoint(servers, security), STEADY)
    await imap.log_in(BOT, servers.accounts[BOT])
    assert (await imap.select("INBOX")).validity > 0
    await imap.close()
    imap = await Imap.connect(endpoint(servers, security), STEADY)
    await imap.log_in_by_token(BOT, servers.token(BOT))
    assert imap.can_idle
    await imap.close()


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_a_stranger_or_the_wrong_host_is_not_spoken_to(servers: MailServers, security: Security) -> None:
    """Another authority, none of our own, an address that the certificate does not name."""
    for ca_file in (servers.other_ca_file, ""):
        with pytest.raises(ImapUntrustedError):
            await Imap.connect(endpoint(servers, security, ca_file), STEADY)
    port = servers.ports[PORTS[security]]
    with pytest.raises(ImapUntrustedError):
        await Imap.connect(Endpoint("127.0.0.1", port, security, make_context(servers.ca_file)), STEADY)


async def test_wrong_credentials_are_told_by_their_code(servers: MailServers) -> None:
    """A wrong password, a token that is none, and one that is too old; then the right one on the same connection."""
    imap = await Imap.connect(endpoint(servers), STEADY)
    for refused in (
        imap.log_in(BOT, "not this one"),
        imap.log_in_by_token(BOT, "junk"),
        imap.log_in_by_token(BOT, servers.token(BOT, seconds=-60)),
    ):
        with pytest.raises(ImapRefusedError) as raised:
            await refused
        assert (raised.value.code, raised.value.passing) == ("AUTHENTICATIONFAILED", False)
    await imap.log_in(BOT, servers.accounts[BOT])
    await imap.close()


async def test_mail_ends_the_wait_by_idle(servers: MailServers) -> None:
    """Three times, so also after what has been read; by nobody's clock."""
    async with logged_in(servers) as imap:
        last = (await imap.select("INBOX")).next_uid - 1
        for number in range(3):
            waiting = asyncio.create_task(wait_for_mail(imap, ManualClock(), renewal=540.0, poll=60.0))
            await asyncio.to_thread(servers.deliver, mail(number), BOT)
            async with asyncio.timeout(60):
                await waiting
            (uid,) = await imap.new_uids(last)
            fetched = await imap.fetch(uid, 10_000)
            assert fetched is not None
            assert f"Subject: Number {number}".encode() in fetched.raw
            await imap.mark_seen(uid)
            last = uid
        assert await imap.new_uids(0, unseen=True) == []


async def test_mail_that_comes_while_idle_is_renewed_is_found(servers: MailServers) -> None:
    """Thirty mails against renewals as fast as they can be."""
    async with logged_in(servers) as imap, asyncio.TaskGroup() as group:
        last = (await imap.select("INBOX")).next_uid - 1
        group.create_task(asyncio.to_thread(deliver_many, servers, 30))
        found: list[int] = []
        async with asyncio.timeout(120):
            while len(found) < 30:
                found += await imap.new_uids(found[-1] if found else last)
                await wait_for_mail(imap, HastyClock(), renewal=540.0, poll=60.0)
    assert len(set(found)) == 30


async def test_a_mail_is_moved_copied_and_found(servers: MailServers) -> None:
    """In folders of any name."""
    servers.deliver(mail(1), BOT)
    async with logged_in(servers) as imap:
        while not (uids := await imap.new_uids(0)):
            await wait_for_mail(imap, ManualClock(), renewal=540.0, poll=60.0)
        await imap.create('Erledigt & "alt" 日本')
        await imap.move(uids[0], 'Erledigt & "alt" 日本')
        assert await imap.new_uids(0) == []
        sent = (await imap.special_folders())["\\sent"]
        uid = await imap.append(sent, mail(7))
        assert uid is not None
        assert await imap.find("<7@example.test>", sent) == uid
        assert (await imap.headers([uid]))[0].seen
        assert await imap.find("<8@example.test>", sent) is None
        assert await imap.find("<1@example.test>", 'Erledigt & "alt" 日本') is not None


async def test_a_server_killed_and_back_is_used_again(servers: MailServers) -> None:
    """Who idles is woken at once; the numbers hold."""
    async with logged_in(servers) as imap:
        validity = (await imap.select("INBOX")).validity
        waiting = asyncio.create_task(wait_for_mail(imap, ManualClock(), renewal=540.0, poll=60.0))
        await asyncio.to_thread(servers.dovecot, "stop")
        async with asyncio.timeout(60):
            with pytest.raises(ImapLostError):
                await waiting
    with pytest.raises(ImapLostError, match="cannot be reached"):
        await Imap.connect(endpoint(servers), STEADY)
    await asyncio.to_thread(servers.dovecot)
    async with logged_in(servers) as imap:
        assert (await imap.select("INBOX")).validity == validity


async def test_a_line_that_is_half_open_is_found_out(servers: MailServers) -> None:
    """Nothing arrives any more and nothing says so: the end of IDLE is not answered."""
    async with HalfOpen(servers.ports["imaps"]) as line:
        where = Endpoint(servers.host, line.port, "tls", make_context(servers.ca_file))
        imap = await Imap.connect(where, Patience(connect=60, answer=1, login=60))
        await imap.log_in(BOT, servers.accounts[BOT])
        await imap.select("INBOX")
        line.dead = True
        with pytest.raises(ImapLostError, match="no answer in time"):
            await wait_for_mail(imap, HastyClock(), renewal=1.0, poll=1.0)
        await imap.close()


def deliver_many(servers: MailServers, count: int) -> None:
    """Mails, one after the other."""
    for number in range(count):
        servers.deliver(mail(number), BOT)


class HalfOpen:
    """A line to a server that can be dead without ending."""

    def __init__(self, target: int) -> None:
        self.dead = False
        self.port = 0
        self._target = target
        self._tasks: list[asyncio.Task[None]] = []
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._server is not None:
            self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other_reader, other_writer = await asyncio.open_connection("127.0.0.1", self._target)
        for source, target in ((reader, other_writer), (other_reader, writer)):
            self._tasks.append(asyncio.create_task(self._pass_on(source, target)))

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65_536):
                if not self.dead:
                    target.write(data)
                    await target.drain()
        finally:
            target.close()


@pytest.mark.timeout(600)
async def test_fifty_thousand_mails_cost_little(mail_servers: MailServers, big: str) -> None:
    """What was there before is not looked at: selecting and searching for what is new is all that a start takes."""
    async with logged_in(mail_servers, big, Patience(connect=60, answer=300, login=60)) as imap:
        tracemalloc.start()
        folder = await imap.select("INBOX")
        assert folder.exists == MANY
        assert await imap.new_uids(folder.next_uid - 1) == []
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
        assert len(await imap.new_uids(0)) == MANY
        entries = await imap.sizes(range(1, 3_001))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert len(entries) == 3_000
    assert peak < 30_000_000
