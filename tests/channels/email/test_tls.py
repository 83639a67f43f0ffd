"""TLS, from the start and by STARTTLS: whom it trusts, and that there is no way back to plain text."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from channels.email.imap.errors import ImapLostError, ImapNoError, ImapUntrustedError
from channels.email.imap.mailbox import Imap
from channels.email.settings import Security
from channels.email.tls import make_context
from tests.channels.email.mailroom import LONG, SHORT, endpoint
from tests.platforms.certificates import Authority, make_authority
from tests.platforms.imap_server import PASSWORD, USER, ImapServer
from zerobot.core.errors import ChannelFaultError


@pytest.fixture
def trust(authority: Authority) -> ssl.SSLContext:
    """Trusts the double's authority."""
    return make_context(str(authority.ca_file))


@pytest.fixture
async def server(authority: Authority) -> AsyncIterator[ImapServer]:
    """A double that offers STARTTLS."""
    async with ImapServer(authority.server_context("DNS:localhost")) as server:
        yield server


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_a_private_authority_is_trusted(authority: Authority, trust: ssl.SSLContext, security: Security) -> None:
    """Both ways; over STARTTLS nothing secret goes before TLS, and capabilities are asked for again after it."""
    context = authority.server_context("DNS:localhost")
    async with ImapServer(context, implicit=security == "tls") as server:
        imap = await Imap.connect(endpoint(server, security, trust), LONG)
        await imap.log_in(USER, PASSWORD)
        await imap.select("INBOX")
        assert server.sessions[0].over_tls
        await imap.close()
        assert server.faults == []
    before = ["CAPABILITY", "STARTTLS"] if security == "starttls" else []
    assert server.commands == [*before, "CAPABILITY", "LOGIN", "CAPABILITY", "SELECT", "LOGOUT"]


@pytest.mark.parametrize("security", ["tls", "starttls"])
@pytest.mark.parametrize(
    ("name", "trusted"), [("DNS:localhost", "another"), ("DNS:localhost", "none"), ("DNS:elsewhere.test", "its own")]
)
async def test_a_stranger_or_the_wrong_host_is_not_spoken_to(
    tmp_path: Path, authority: Authority, name: str, trusted: str, security: Security
) -> None:
    """Signed by somebody else, or good for another name: no credential is sent, and it is said why."""
    ca_files = {"its own": authority.ca_file, "another": make_authority(tmp_path).ca_file, "none": ""}
    context = make_context(str(ca_files[trusted]))
    async with ImapServer(authority.server_context(name), implicit=security == "tls") as server:
        with pytest.raises(ImapUntrustedError, match="certificate is not trusted"):
            await Imap.connect(endpoint(server, security, context), LONG)
        assert "LOGIN" not in server.commands


async def test_an_old_tls_is_refused(authority: Authority, trust: ssl.SSLContext) -> None:
    """TLS 1.2 is the least (RFC 8996)."""
    context = authority.server_context("DNS:localhost")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    async with ImapServer(context, implicit=True) as server:
        with pytest.raises(ImapLostError):
            await Imap.connect(endpoint(server, "tls", trust), LONG)


async def test_a_server_without_starttls_is_left(trust: ssl.SSLContext) -> None:
    """Never a fall back to plain text: somebody in between can take the offer out."""
    async with ImapServer() as server:
        with pytest.raises(ImapUntrustedError, match="no STARTTLS"):
            await Imap.connect(endpoint(server, "starttls", trust), LONG)
        assert server.commands == ["CAPABILITY"]


@pytest.mark.parametrize("answer", [b"TAG NO not now\r\n", b"TAG BAD what?\r\n"])
async def test_a_refused_starttls_is_no_plain_text(server: ImapServer, trust: ssl.SSLContext, answer: bytes) -> None:
    """It ends the connection."""
    server.script("STARTTLS", answer)
    with pytest.raises(ImapUntrustedError, match="refuses STARTTLS"):
        await Imap.connect(endpoint(server, "starttls", trust), LONG)


@pytest.mark.parametrize("injected", [b"* CAPABILITY IMAP4rev1 LOGINDISABLED\r\n", b"* OK", b"A1 OK done\r\n"])
async def test_what_is_put_behind_the_answer_in_plain_text_is_refused(
    server: ImapServer, trust: ssl.SSLContext, injected: bytes
) -> None:
    """It would be taken for something said by TLS (CVE-2011-0411)."""
    server.injected = injected
    with pytest.raises(ImapUntrustedError, match="plain text"):
        await Imap.connect(endpoint(server, "starttls", trust), LONG)
    assert "LOGIN" not in server.commands


async def test_what_the_server_said_before_tls_is_forgotten(server: ImapServer, trust: ssl.SSLContext) -> None:
    """Capabilities in plain text may be anybody's."""
    server.script("CAPABILITY", b"* CAPABILITY IMAP4rev1 STARTTLS LOGINDISABLED AUTH=PLAIN\r\nTAG OK done\r\n")
    imap = await Imap.connect(endpoint(server, "starttls", trust), LONG)
    await imap.log_in(USER, PASSWORD)
    assert "LOGIN" in server.commands
    await imap.close()


async def test_a_greeting_that_skips_the_login_is_not_believed_in_plain_text(
    server: ImapServer, trust: ssl.SSLContext
) -> None:
    """PREAUTH leaves no room for STARTTLS."""
    server.greeting = "* PREAUTH welcome"
    with pytest.raises(ImapUntrustedError, match="logged in"):
        await Imap.connect(endpoint(server, "starttls", trust), LONG)


async def test_the_wrong_kind_of_port_is_told(server: ImapServer, trust: ssl.SSLContext) -> None:
    """TLS to a port that speaks plain text at first; plain text to one that waits for TLS is a silence."""
    with pytest.raises(ImapLostError, match="no TLS on port"):
        await Imap.connect(endpoint(server, "tls", trust), LONG)
    async with ImapServer(server.needed_context, implicit=True) as other:
        with pytest.raises(ImapLostError):
            await Imap.connect(endpoint(other, "starttls", trust), SHORT)


async def test_a_capability_that_is_refused_is_an_error(server: ImapServer) -> None:
    """Not an empty list."""
    server.script("CAPABILITY", b"TAG NO no\r\n")
    with pytest.raises(ImapNoError):
        await Imap.connect(endpoint(server), LONG)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_bad_file_of_authorities_names_its_key(tmp_path: Path, content: str | None) -> None:
    """Missing, or something else."""
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ChannelFaultError) as raised:
        make_context(str(path))
    assert "tls_ca_file" in raised.value.advice


def test_the_usual_authorities_stay_trusted(authority: Authority) -> None:
    """A private one is added to them; names are checked."""
    context = make_context(str(authority.ca_file))
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
